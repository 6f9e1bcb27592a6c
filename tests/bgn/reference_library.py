"""The pairing library's calls on py_ecc, slow and plain. As a pytest plugin it takes the library's place.

    python -m pytest -p tests.bgn.reference_library tests/bgn/test_keys.py

Elements lie in memory as their coordinates' 48 little-endian bytes, in py_ecc's coordinates.
"""

from __future__ import annotations

import atexit
import ctypes
import shutil
import tempfile
from pathlib import Path
from typing import Any

from py_ecc import optimized_bls12_381 as ecc

from smpc.bgn import curve, dlog, mcl
from tests.bgn.reference import IN_G1, IN_G2

COORDINATE = 48
FIELDS: dict[str, tuple[Any, int]] = {"G1": (ecc.FQ, 1), "G2": (ecc.FQ2, 2), "GT": (ecc.FQ12, 12)}
CODECS = {"G1": IN_G1, "G2": IN_G2}


def _address(pointer: Any) -> int:
    return pointer if isinstance(pointer, int) else ctypes.addressof(pointer)


def _numbers(pointer: Any, count: int) -> list[int]:
    data = ctypes.string_at(_address(pointer), COORDINATE * count)
    return [int.from_bytes(data[i : i + COORDINATE], "little") for i in range(0, len(data), COORDINATE)]


def _keep(pointer: Any, numbers: list[int]) -> None:
    data = b"".join(int(number).to_bytes(COORDINATE, "little") for number in numbers)
    ctypes.memmove(_address(pointer), data, len(data))


def _scalar(pointer: Any) -> int:
    return int.from_bytes(ctypes.string_at(_address(pointer), 32), "little")


class PointCalls:
    """G1 or G2: points are three coordinates, zeros for the neutral one."""

    def __init__(self, name: str) -> None:
        self.codec, self.size = CODECS[name], mcl.BYTES[name]
        self.field, self.degree = FIELDS[name]
        self.check_order = True

    def read(self, pointer: Any) -> Any:
        numbers = _numbers(pointer, 3 * self.degree)
        parts = [numbers[i : i + self.degree] for i in range(0, len(numbers), self.degree)]
        return tuple(self.field(part[0] if self.degree == 1 else part) for part in parts)

    def write(self, pointer: Any, point: Any) -> None:
        if ecc.is_inf(point):
            point = (self.field.zero(),) * 3
        coordinates = [[part.n] if self.degree == 1 else part.coeffs for part in point]
        _keep(pointer, [int(number) for part in coordinates for number in part])

    def add(self, out: Any, a: Any, b: Any) -> None:
        self.write(out, ecc.add(self.read(a), self.read(b)))

    def neg(self, out: Any, a: Any) -> None:
        self.write(out, ecc.neg(self.read(a)))

    def mul(self, out: Any, a: Any, scalar: Any) -> None:
        self.write(out, ecc.multiply(self.read(a), _scalar(scalar)))

    def isEqual(self, a: Any, b: Any) -> int:
        one, other = self.read(a), self.read(b)
        if ecc.is_inf(one) or ecc.is_inf(other):
            return ecc.is_inf(one) and ecc.is_inf(other)
        return ecc.eq(one, other)

    def normalizeVec(self, out: int, points: int, count: int) -> None:
        step = 3 * self.degree * COORDINATE
        for offset in range(0, count * step, step):
            point = self.read(points + offset)
            self.write(out + offset, point if ecc.is_inf(point) else (*ecc.normalize(point), self.field.one()))

    def evaluate(self, out: Any, points: Any, count: int, at: Any) -> int:
        step, total = 3 * self.degree * COORDINATE, self.codec.zero
        for i in reversed(range(count)):
            total = ecc.add(ecc.multiply(total, _scalar(at)), self.read(_address(points) + i * step))
        self.write(out, total)
        return 0

    def verify_order(self, check: int) -> None:
        self.check_order = bool(check)

    def serialize(self, out: Any, size: int, a: Any) -> int:
        point = self.read(a)
        data = self.codec.encode(self.codec.zero if ecc.is_inf(point) else point)
        ctypes.memmove(_address(out), data, self.size)
        return self.size

    def deserialize(self, out: Any, data: Any, size: int) -> int:
        code = data if isinstance(data, bytes) else ctypes.string_at(data, self.size)
        try:
            point = self.codec.decode(code)
        except ValueError:
            return 0
        if self.check_order and not ecc.is_inf(ecc.multiply(point, mcl.ORDER)):
            return 0
        self.write(out, point)
        return self.size


class TargetCalls:
    """GT: elements are twelve coordinates."""

    def read(self, pointer: Any) -> Any:
        return ecc.FQ12(_numbers(pointer, 12))

    def write(self, pointer: Any, element: Any) -> None:
        _keep(pointer, [int(number) for number in element.coeffs])

    def mul(self, out: Any, a: Any, b: Any) -> None:
        self.write(out, self.read(a) * self.read(b))

    def inv(self, out: Any, a: Any) -> None:
        self.write(out, self.read(a).inv())

    def pow(self, out: Any, a: Any, exponent: Any) -> None:
        self.write(out, self.read(a) ** _scalar(exponent))

    def isEqual(self, a: Any, b: Any) -> int:
        return int(self.read(a) == self.read(b))

    def isValid(self, a: Any) -> int:
        return int(self.read(a) ** mcl.ORDER == ecc.FQ12.one())

    def serialize(self, out: Any, size: int, a: Any) -> int:
        ctypes.memmove(_address(out), _address(a), 12 * COORDINATE)
        return 12 * COORDINATE

    def deserialize(self, out: Any, data: Any, size: int) -> int:
        numbers = _numbers(data, 12)
        if max(numbers) >= ecc.field_modulus:
            return 0
        _keep(out, numbers)
        return 12 * COORDINATE


class ReferenceLibrary:
    """What `smpc.bgn.mcl.library` returns, for those calls that `smpc.bgn` makes."""

    def __init__(self) -> None:
        for name in ("G1", "G2"):
            points = PointCalls(name)
            for call in ("add", "neg", "mul", "isEqual", "normalizeVec", "serialize", "deserialize"):
                setattr(self, f"mclBn{name}_{call}", getattr(points, call))
            setattr(self, f"mclBn_{name}EvaluatePolynomial", points.evaluate)
            setattr(self, f"mclBn_verifyOrder{name}", points.verify_order)
        self._g1, self._g2, self._gt = PointCalls("G1"), PointCalls("G2"), TargetCalls()
        for call in ("mul", "inv", "pow", "isEqual", "isValid", "serialize", "deserialize"):
            setattr(self, f"mclBnGT_{call}", getattr(self._gt, call))

    def mclBnFr_setLittleEndian(self, out: Any, data: bytes, size: int) -> None:
        ctypes.memmove(out, data, size)

    def mclBn_pairing(self, out: Any, a: Any, b: Any) -> None:
        self.mclBn_millerLoopVec(out, a, b, 1)
        self.mclBn_finalExp(out, out)

    def mclBn_millerLoopVec(self, out: Any, a: Any, b: Any, count: int) -> None:
        total = ecc.FQ12.one()
        for i in range(count):
            first = self._g1.read(a + i * 8 * mcl.WORDS["G1"])
            second = self._g2.read(b + i * 8 * mcl.WORDS["G2"])
            total = total * ecc.pairing(second, first, final_exponentiate=False)
        self._gt.write(out, total)

    def mclBn_finalExp(self, out: Any, a: Any) -> None:
        self._gt.write(out, ecc.final_exponentiate(self._gt.read(a)))


def pytest_configure() -> None:
    """Everything above the library works with the reference from now on, on tables of its own."""
    lib = ReferenceLibrary()
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    dlog.cache_folder = lambda: folder
    for module in (mcl, curve, dlog):
        module.library = lambda: lib  # type: ignore[attr-defined]
