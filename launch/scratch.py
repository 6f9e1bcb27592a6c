"""What the user hears when there is no room in the temporary folder, which no option of theirs names."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from smpc.errors import InputError, SmpcError

_FULL = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


@contextmanager
def naming_tmpdir(folder: Path) -> Iterator[None]:
    """A full disk where the temporary `folder` is becomes an InputError that says how to have it elsewhere."""
    try:
        yield
    except (OSError, SmpcError) as error:
        full = next((reason for reason in _FULL if reason in str(error)), None)
        unnamed = isinstance(error, OSError) and error.filename is None  # by a write; whoever opens a file names it
        if full is None or not (unnamed or str(folder) in str(error)):
            raise
        raise InputError(
            f"{folder.parent}: cannot be written to ({full}); make room, or name another folder in the variable TMPDIR"
        ) from None
