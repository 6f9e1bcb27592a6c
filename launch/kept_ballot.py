"""A voter's sealed ballot on disk, until all compute parties have it: what is sent again has to be the same."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch.outputs import write_file
from smpc.ballots.envelope import Envelope
from smpc.ballots.poll import Poll
from smpc.engine import public_json
from smpc.errors import InputError


@dataclass(frozen=True)
class KeptBallot:
    """Of one voter and job, readable by this user only."""

    path: Path

    def read(self, poll: Poll, voter: str) -> dict[str, Envelope] | None:
        """The envelope for each party, if there is a ballot of this voter for this poll. Raises InputError for another
        file."""
        try:
            pieces: Any = public_json.read(self.path.read_bytes())
            ballot = {party: Envelope.read(base64.b64decode(pieces[party])) for party in poll.parties}
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror}); it holds your ballot") from None
        except (ValueError, TypeError, KeyError):
            raise InputError(f"{self.path}: is no ballot that `smpc vote` has kept; move it away") from None
        if any(envelope.voter != voter for envelope in ballot.values()):
            raise InputError(f"{self.path}: is a ballot of another voter; move it away")
        return ballot if all(envelope.poll == poll.id for envelope in ballot.values()) else None

    def write(self, ballot: Mapping[str, Envelope]) -> None:
        """In the place of a ballot for an earlier run. Raises InputError."""
        pieces = {party: base64.b64encode(envelope.to_bytes()).decode() for party, envelope in ballot.items()}
        write_file(self.path, json.dumps(pieces) + "\n", private=True)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
