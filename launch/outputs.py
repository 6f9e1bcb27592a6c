"""Result files: all of them or none, under their names only when complete."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from protocols.release import Release
from smpc.errors import InputError


def check_free(out: Path) -> None:
    """Refuse an output folder that holds something, before any work is done."""
    if os.path.lexists(out) and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"--out {out}: exists and is not an empty folder; name another, or remove it")
    parent = out.absolute().parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"--out {out}: {parent} is not a folder that can be written to; make it first")


def write_folder(out: Path, files: Mapping[str, str | bytes]) -> None:
    """Write `files` (name to text or bytes) as the new folder `out` in one rename."""
    check_free(out)
    temporary = None
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.absolute().parent))
        for name, content in files.items():
            with open(temporary / name, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
        temporary.chmod(0o755)
        if out.exists():
            out.rmdir()
        temporary.rename(out)
    except OSError as error:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise InputError(f"--out {out}: cannot be written ({error.strerror}); nothing was kept") from None


def model_json(release: Release, about: Mapping[str, Any]) -> str:
    coefficients = dict(zip(release.names, (float(v) for v in release.values), strict=True))
    return json.dumps({**about, "coefficients": coefficients}, indent=1) + "\n"


def cost_json(reports: Mapping[str, object]) -> str:
    """Cost reports, as dictionaries, by participant."""
    return json.dumps({"participants": reports}, indent=1) + "\n"
