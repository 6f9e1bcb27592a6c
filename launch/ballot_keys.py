"""Keys of a vote: a compute party's sealing key (X25519), a voter's signing key (Ed25519), the roster of voters.

Public keys that nobody's secret belongs to are refused: with a point of small order, which there are few of (RFC 7748,
section 6.1; RFC 8032), anybody can sign or unseal. So are second spellings of a number: every key has one text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from launch.jobfile.endpoints import NAME, NAME_RULE
from smpc.engine.tls import check_private
from smpc.errors import InputError

KEY_BYTES = 32
KEY_RULE = "64 hex digits that stand for a key"
SEAL, VOTER = ".seal", ".voter"
_HEADER = "voter,key"
_HEX = re.compile(rf"[0-9a-fA-F]{{{2 * KEY_BYTES}}}")
_FIELD = 2**255 - 19
_SIGN = 1 << 255  # of the other coordinate, in a key of Ed25519
_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7  # y of four of the points of order 8
_SMALL_ORDER = {0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8}  # y of the eight points


def make_sealing_key(name: str, directory: Path) -> tuple[Path, str]:
    """Write NAME.seal, readable by its owner only; its path, and the public key in hex for the job file."""
    key = X25519PrivateKey.generate()
    return _write(name, directory, SEAL, key.private_bytes_raw()), key.public_key().public_bytes_raw().hex()


def make_voter_key(name: str, directory: Path) -> tuple[Path, str]:
    """Write NAME.voter, readable by its owner only; its path, and the line for the roster."""
    key = Ed25519PrivateKey.generate()
    return _write(
        name, directory, VOTER, key.private_bytes_raw()
    ), f"{name},{key.public_key().public_bytes_raw().hex()}"


def read_sealing_key(path: Path) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(_read(path, "smpc keys sealing"))


def read_voter_key(path: Path) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(_read(path, "smpc keys voter"))


def public_sealing_key(text: str) -> X25519PublicKey:
    """From 64 hex digits. Raises ValueError for what is no key of anybody's."""
    data = _hex(text)
    if int.from_bytes(data, "little") >= _FIELD:
        raise ValueError("not below 2^255 - 19")
    key = X25519PublicKey.from_public_bytes(data)
    X25519PrivateKey.generate().exchange(key)  # refuses small order: the secret would be zero
    return key


def public_voter_key(text: str) -> Ed25519PublicKey:
    """From 64 hex digits. Raises ValueError for what is no key of anybody's."""
    data = _hex(text)
    y = int.from_bytes(data, "little") & ~_SIGN
    if y >= _FIELD or y in _SMALL_ORDER:
        raise ValueError("of small order, or not below 2^255 - 19")
    return Ed25519PublicKey.from_public_bytes(data)


def read_roster(path: Path) -> dict[str, Ed25519PublicKey]:
    """The registered voters, from a file of lines NAME,KEY under the header `voter,key`. Raises InputError."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})") from None
    if not lines or lines[0].strip() != _HEADER:
        raise InputError(f"{path}: the first line must be {_HEADER!r}; the lines of `smpc keys voter` follow")
    voters: dict[str, Ed25519PublicKey] = {}
    owners: dict[bytes, str] = {}
    for number, line in enumerate(lines[1:], 2):
        name, _, text = line.strip().partition(",")
        if not line.strip():
            continue
        if not NAME.fullmatch(name):
            raise InputError(f"{path}: line {number}: the voter {name[:40]!r} must be named by {NAME_RULE}")
        try:
            voters_key = public_voter_key(text)
        except ValueError:
            raise InputError(f"{path}: line {number}: the key of {name} must be {KEY_RULE}") from None
        other = owners.setdefault(voters_key.public_bytes_raw(), name)
        if name in voters or other != name:
            raise InputError(
                f"{path}: line {number}: {name} has {'the key of ' + other if other != name else 'two keys'}"
            )
        voters[name] = voters_key
    if not voters:
        raise InputError(f"{path}: has no voter; the lines of `smpc keys voter` follow the header")
    return voters


def _hex(text: str) -> bytes:
    if not _HEX.fullmatch(text):
        raise ValueError(f"not {2 * KEY_BYTES} hex digits")
    return bytes.fromhex(text)


def _read(path: Path, command: str) -> bytes:
    try:
        check_private(path)
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"key {path}: cannot be read ({error.strerror}); `{command}` makes one, --key names it"
        ) from None
    if len(data) != KEY_BYTES:
        raise InputError(f"key {path}: {len(data)} bytes, must be {KEY_BYTES}; `{command}` makes one")
    return data


def _write(name: str, directory: Path, suffix: str, secret: bytes) -> Path:
    if not NAME.fullmatch(name):
        raise InputError(f"name {name!r}: must be {NAME_RULE}")
    path = directory / f"{name}{suffix}"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"{path} exists already; keys are never overwritten: choose another folder or name") from None
    except OSError as error:
        raise InputError(f"folder {directory}: cannot be written to ({error.strerror}); choose another --dir") from None
    try:
        with open(descriptor, "wb") as file:
            file.write(secret)
    except OSError as error:
        path.unlink()
        raise InputError(f"{path}: cannot be written ({error.strerror}); make room, or choose another --dir") from None
    return path
