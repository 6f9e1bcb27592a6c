"""Errors a caller can meet. Each message is one line: what, which value, which range or party, what to do."""

from __future__ import annotations


def printable(text: str) -> str:
    """Fit for one line of a terminal: control characters and line breaks are shown as question marks."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


class SmpcError(Exception):
    """Base of every error of this toolkit."""


class InputError(SmpcError, ValueError):
    """Something the user gave is not usable."""


class HolderError(SmpcError):
    """A protocol step reads a value that another party holds."""


class UnprotectedError(SmpcError):
    """A protocol opens a value that carries no noise and does not say so."""


class PeerError(SmpcError):
    """Another participant died, fell silent, broke the message format or is at another step."""
