"""Processor seconds, bytes and memory of one of six parties that mix 1e6 records of 11 columns to 2,000 rows.

`python -m tests.bench.bench_data_release [RECORDS ROWS]`. Beside it: the same product with stored int8 signs, converted
block by block to float64 and multiplied by BLAS, which is inexact for large records and needs n x k bytes.
"""

from __future__ import annotations

import os
import sys
import time
import tracemalloc
from fractions import Fraction

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from protocols.data_release.plan import BITS, ReleasePlan
from protocols.data_release.protocol import release
from protocols.data_release.sign_matrix import signed_sums
from protocols.schema import Column, Schema
from smpc.cast import Cast
from smpc.cost import peak_memory
from smpc.forecast import Forecast
from smpc.values import Held

RECORDS, ROWS = map(int, sys.argv[1:] or ("1000000", "2000"))
BLOCK = 2048


def main() -> None:
    features = {f"P{p + 1}": tuple(Column(f"x{2 * p + i}", -1, 1) for i in range(2)) for p in range(5)} | {"P6": ()}
    schema = Schema(RECORDS, features, "P6", Column("y", -1, 1))
    plan = ReleasePlan.make(schema, epsilon=Fraction(1), delta=Fraction(1, 10**5), rows=ROWS)
    table = np.random.default_rng(0).uniform(-1, 1, (2, RECORDS))
    start = time.process_time()
    columns = plan.prepare("P1", table)
    prepared = time.process_time() - start
    start = time.process_time()
    sums = signed_sums(bytes(32), ROWS, columns)
    mixed = time.process_time() - start
    tracemalloc.start()
    signed_sums(bytes(32), ROWS, columns[:, : RECORDS // 20])
    _, extra = tracemalloc.get_traced_memory()  # the same for any number of records: test_sign_matrix.py
    tracemalloc.stop()
    peak = peak_memory()
    reals = columns.astype(np.float64)
    start = time.process_time()
    streamed = streamed_int8(reals)
    floats = time.process_time() - start
    forecast = Forecast(Cast(tuple(features), dealer=None))
    release(forecast, {party: Held(party) for party in features}, plan, "")
    print(f"{RECORDS:,} records, k = {ROWS:,}; a party with 2 columns, and the column of ones")
    print(f"  fixed point      {prepared:6.2f} s")
    print(f"  B D, exact       {mixed:6.2f} s, {extra / 1e6:.1f} MB beside the columns")
    print(f"  whole process    {peak / 1e6:6.0f} MB at most until then, with table and columns")
    print(f"  int8 x float64   {floats:6.2f} s for the same shape")
    print(
        f"  bytes sent       {forecast.sent('P2') / 1000:,.1f} kB; with the ones {forecast.sent('P1') / 1000:,.1f} kB"
    )
    print(f"  largest sums     {np.abs(sums).max() / 2**BITS:,.0f} and {np.abs(streamed).max() / 2**BITS:,.0f}")


def streamed_int8(columns: np.ndarray) -> np.ndarray:
    """The product with signs that are int8 already: one block of them stands for all."""
    signs = np.random.default_rng(1).choice(np.array([-1, 1], np.int8), (BLOCK, ROWS))
    total = np.zeros((len(columns), ROWS))
    for start in range(0, columns.shape[1] - BLOCK, BLOCK):
        total += columns[:, start : start + BLOCK] @ signs.astype(np.float64)
    return total


if __name__ == "__main__":
    main()
