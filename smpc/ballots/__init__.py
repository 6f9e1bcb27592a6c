"""Ballots of voters who are no participants: sealed, signed, checked on shares, counted as they come in."""

from smpc.ballots.box import Box
from smpc.ballots.counting import Tally, tally
from smpc.ballots.envelope import BallotError, Reason
from smpc.ballots.poll import Poll

__all__ = ["BallotError", "Box", "Poll", "Reason", "Tally", "tally"]
