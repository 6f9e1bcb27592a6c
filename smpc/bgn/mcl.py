"""The mcl C library for BLS12-381, as it lies inside the pymcl wheel: loaded once, checked before first use.

Exported symbols of a wheel are no contract. So the library is asked for what it must know (the generators' standard
encodings, bilinearity, vector results equal to single ones) and refused in one line if anything differs.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from smpc.errors import SmpcError

ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
WORDS = {"Fr": 4, "G1": 18, "G2": 36, "GT": 72}
BYTES = {"G1": 48, "G2": 96, "GT": 576}
# Compressed encodings of the standard generators (IETF draft on pairing-friendly curves, section 4.2.1).
GENERATORS = {
    "G1": bytes.fromhex(
        "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
    ),
    "G2": bytes.fromhex(
        "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
        "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
    ),
}
_BLS12_381 = 5
_COMPILED_WIDTHS = 46  # Fr of 4 words and Fp of 6, ten times the one plus the other
_POINTER, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "mclBnFr_setLittleEndian": (_INT, _POINTER, _POINTER, _SIZE),
    "mclBn_pairing": (None, _POINTER, _POINTER, _POINTER),
    "mclBn_millerLoopVec": (None, _POINTER, _POINTER, _POINTER, _SIZE),
    "mclBn_finalExp": (None, _POINTER, _POINTER),
    "mclBnGT_mul": (None, _POINTER, _POINTER, _POINTER),
    "mclBnGT_inv": (None, _POINTER, _POINTER),
    "mclBnGT_pow": (None, _POINTER, _POINTER, _POINTER),
    **{
        f"mcl{group}_{call}": signature
        for group in ("BnG1", "BnG2", "BnGT")
        for call, signature in {
            "isEqual": (_INT, _POINTER, _POINTER),
            "isValid": (_INT, _POINTER),
            "serialize": (_SIZE, _POINTER, _SIZE, _POINTER),
            "deserialize": (_SIZE, _POINTER, _POINTER, _SIZE),
        }.items()
    },
    **{
        f"mcl{group}_{call}": signature
        for group in ("BnG1", "BnG2")
        for call, signature in {
            "add": (None, _POINTER, _POINTER, _POINTER),
            "neg": (None, _POINTER, _POINTER),
            "mul": (None, _POINTER, _POINTER, _POINTER),
            "normalizeVec": (None, _POINTER, _POINTER, _SIZE),
        }.items()
    },
    "mclBn_G1EvaluatePolynomial": (_INT, _POINTER, _POINTER, _SIZE, _POINTER),
    "mclBn_G2EvaluatePolynomial": (_INT, _POINTER, _POINTER, _SIZE, _POINTER),
}


class CurveUnavailable(SmpcError):
    """The pairing library is missing or not what this code was written for."""


@cache
def library() -> Any:
    """The loaded and checked library. Raises CurveUnavailable, one line."""
    try:
        import pymcl

        lib = ctypes.CDLL(pymcl._pymcl.__file__)
        for name, (result, *arguments) in _SIGNATURES.items():
            call = getattr(lib, name)
            call.restype, call.argtypes = result, arguments
        failed = lib.mclBn_init(_BLS12_381, _COMPILED_WIDTHS)
    except (ImportError, AttributeError, OSError) as error:
        raise CurveUnavailable(f"the pairing library does not load ({error}): install pymcl==1.0.2") from None
    if not failed:
        lib.mclBn_setETHserialization(1)  # the standard compressed encodings
        lib.mclBn_verifyOrderG1(1)
        lib.mclBn_verifyOrderG2(1)
        failed = _check(lib)
    if failed:
        raise CurveUnavailable(f"the pairing library fails its check ({failed}): install pymcl==1.0.2")
    return lib


def scalar(lib: Any, value: int) -> Any:
    """`value` modulo the group order as mcl keeps it; pass it as a pointer."""
    out = (ctypes.c_uint64 * WORDS["Fr"])()
    lib.mclBnFr_setLittleEndian(out, (value % ORDER).to_bytes(32, "little"), 32)
    return out


def _check(lib: Any) -> str:
    """What is wrong, or nothing."""

    def new(group: str, count: int = 1) -> Any:
        return (ctypes.c_uint64 * (WORDS[group] * count))()

    p, q = new("G1"), new("G2")
    for group, point in (("G1", p), ("G2", q)):
        code, out = GENERATORS[group], ctypes.create_string_buffer(BYTES[group])
        if getattr(lib, f"mclBn{group}_deserialize")(point, code, len(code)) != len(code):
            return f"the generator of {group}"
        if getattr(lib, f"mclBn{group}_serialize")(out, len(code), point) != len(code) or out.raw != code:
            return f"the encoding of {group}"
    points = {"G1": new("G1", 3), "G2": new("G2", 3)}
    total: dict[str, Any] = {}
    for group, generator in (("G1", p), ("G2", q)):
        size = 8 * WORDS[group]
        total[group] = new(group)
        for i, factor in enumerate((3, 5, 2**200)):
            one = new(group)
            getattr(lib, f"mclBn{group}_mul")(one, generator, scalar(lib, factor))
            ctypes.memmove(ctypes.addressof(points[group]) + i * size, one, size)
            getattr(lib, f"mclBn{group}_add")(total[group], total[group], one)
        summed = new(group)
        getattr(lib, f"mclBn_{group}EvaluatePolynomial")(summed, points[group], 3, scalar(lib, 1))
        if not getattr(lib, f"mclBn{group}_isEqual")(summed, total[group]):
            return f"sums in {group}"
    single, together, power = new("GT"), new("GT"), new("GT")
    lib.mclBn_millerLoopVec(together, points["G1"], points["G2"], 3)
    lib.mclBn_finalExp(together, together)
    lib.mclBn_pairing(single, p, q)
    lib.mclBnGT_pow(power, single, scalar(lib, 3 * 3 + 5 * 5 + 2**400))
    return "" if lib.mclBnGT_isEqual(together, power) and lib.mclBnGT_isValid(single) else "bilinearity"
