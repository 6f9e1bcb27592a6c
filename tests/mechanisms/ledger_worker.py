"""A job in a process of its own: charges again and again, and says so after each charge (its "opening")."""

import sys
from fractions import Fraction

from mechanisms.coalition import Coalition
from mechanisms.guarantee import Row
from mechanisms.ledger import BudgetError, Ledger
from mechanisms.neighbours import ReplaceRecord

path, epsilon = sys.argv[1:]
row = Row(Coalition(frozenset({"server"})), ReplaceRecord(), Fraction(epsilon), Fraction(0), "noise", "pure sum")
ledger = Ledger(path)
print("ready", flush=True)
while True:
    try:
        ledger.reserve("patients", row, job="worker")
    except BudgetError as refusal:
        print(f"refused {refusal}", flush=True)
        break
    print("opened", flush=True)
