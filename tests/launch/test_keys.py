"""`smpc keys new`: keys that work in a handshake, that only their owner reads and that nothing overwrites."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from cryptography import x509

from launch.keys import make_keys
from smpc.engine.tls import Contexts, Identity
from smpc.errors import InputError
from tests.launch.processes import SMPC


def shake(server: Contexts, client: Contexts) -> tuple[str | None, str | None, str | None]:
    """(whom the server sees, whom the client sees, TLS version) of one real handshake."""
    one, two = socket.socketpair()
    seen: list[str | None] = []

    def serve() -> None:
        with contextlib.suppress(OSError), server.server.wrap_socket(one, server_side=True) as connection:
            seen.append(server.peer(connection))
            connection.send(b"x")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with two, client.client.wrap_socket(two) as connection:
            assert connection.recv(1) == b"x"  # in TLS 1.3 a client learns only now whether it was let in
            return seen[0], client.peer(connection), connection.version()
    finally:
        thread.join()
        one.close()


def test_mutual_handshake_with_pinned_certificates(tmp_path: Path) -> None:
    keys = {name: make_keys(name, tmp_path) for name in ("a", "b")}
    certificates = {name: pair[1] for name, pair in keys.items()}
    a, b = (Contexts(Identity(name, *keys[name]), certificates) for name in ("a", "b"))
    assert shake(a, b) == ("b", "a", "TLSv1.3")
    assert shake(b, a) == ("a", "b", "TLSv1.3")


def test_a_key_that_the_job_does_not_pin_is_turned_away(tmp_path: Path) -> None:
    keys = {name: make_keys(name, tmp_path) for name in ("a", "b", "stranger")}
    certificates = {name: keys[name][1] for name in ("a", "b")}
    a = Contexts(Identity("a", *keys["a"]), certificates)
    stranger = Contexts(Identity("b", *keys["stranger"]), certificates)
    for server, client in ((a, stranger), (stranger, a)):
        with pytest.raises(OSError, match=r"unknown ca|CERTIFICATE_VERIFY_FAILED"):
            shake(server, client)


def test_files(tmp_path: Path) -> None:
    mask = os.umask(0)  # the key is private whatever the user's mask
    try:
        key, certificate = make_keys("clinic", tmp_path)
    finally:
        os.umask(mask)
    assert (key, certificate) == (tmp_path / "clinic.key", tmp_path / "clinic.crt")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    content = x509.load_pem_x509_certificate(certificate.read_bytes())
    assert content.subject.rfc4514_string() == "CN=clinic"
    assert b"PRIVATE" not in certificate.read_bytes()


def test_two_keys_of_one_name_differ(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one, two = make_keys("a", tmp_path), make_keys("a", tmp_path / "other")
    assert one[0].read_bytes() != two[0].read_bytes() and one[1].read_bytes() != two[1].read_bytes()


@pytest.mark.parametrize("suffix", ["key", "crt"])
def test_nothing_is_overwritten(tmp_path: Path, suffix: str) -> None:
    there = tmp_path / f"a.{suffix}"
    there.write_text("precious")
    with pytest.raises(InputError, match=f"a.{suffix} exists already; keys are never overwritten"):
        make_keys("a", tmp_path)
    assert there.read_text() == "precious" and [path.name for path in tmp_path.iterdir()] == [there.name]


@pytest.mark.parametrize("name", ["", "A", "a b", "../a", "a/b", "a" * 33, "ä", "-a", "a\n", "1a"])
def test_bad_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        make_keys(name, tmp_path)
    line = f"name {name!r}: must be small letters, digits, - and _, at most 32, a letter first"
    assert str(caught.value) == line
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder, reason in (
        (tmp_path / "none", "No such file or directory"),
        (tmp_path / "file", "Not a directory"),
        (Path("/proc/self"), "No such file or directory|Permission denied"),
    ):
        with pytest.raises(InputError, match=rf"folder .*: cannot be written to \(({reason})\); choose another --dir"):
            make_keys("a", folder)


def test_a_full_disk_leaves_neither_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def full(path: Path, flags: int, mode: int) -> int:
        if path.suffix == ".crt":
            raise OSError(28, "No space left on device")
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(InputError, match="No space left on device"):
        make_keys("a", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["missing", "another's", "with a password", "a certificate"])
def test_an_unusable_key_is_one_line(tmp_path: Path, kind: str) -> None:
    key, certificate = make_keys("a", tmp_path)
    other = make_keys("b", tmp_path)
    if kind == "missing":
        key.unlink()
    elif kind == "another's":
        key.write_bytes(other[0].read_bytes())
    elif kind == "a certificate":
        key.write_bytes(certificate.read_bytes())
    else:
        from cryptography.hazmat.primitives import serialization as s

        secret = s.load_pem_private_key(key.read_bytes(), None)
        locked = s.BestAvailableEncryption(b"secret")
        key.write_bytes(secret.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, locked))
    with pytest.raises(InputError) as caught:
        Contexts(Identity("a", key, certificate), {"a": certificate})
    wanted = (
        "does not exist; `smpc keys new` makes one, --key names it"
        if kind == "missing"
        else f"is no private key (PEM, no password) of the certificate {certificate}; name its key with --key, or make "
        "both anew with `smpc keys new` and give the others the certificate"
    )
    assert str(caught.value) == f"key {key}: {wanted}"


@pytest.mark.mpc
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o777])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    key, certificate = make_keys("a", tmp_path)
    Contexts(Identity("a", key, certificate), {"a": certificate})
    key.chmod(mode)
    with pytest.raises(InputError, match=rf"^key {key}: others .* \(mode {mode:o}\); chmod 600 {key}$"):
        Contexts(Identity("a", key, certificate), {"a": certificate})


def test_the_command(tmp_path: Path) -> None:
    done = subprocess.run([*SMPC, "keys", "new", "a"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "a.key  secret: keep it on this host",
        "a.crt  give it to the others: the job file names it",
    ]
    again = subprocess.run([*SMPC, "keys", "new", "a"], cwd=tmp_path, capture_output=True, text=True)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "smpc: a.key exists already; keys are never overwritten: choose another folder or name\n"
