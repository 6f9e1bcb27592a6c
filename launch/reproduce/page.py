"""A page of results: text, tables and figures, written as one folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from launch.outputs import write_folder
from launch.reproduce.figure import Figure, draw


@dataclass(frozen=True)
class Table:
    """Cells as they are shown; every row as long as `columns`."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row of {self.rows} has not the {len(self.columns)} cells of {self.columns}")
        lines = (self.columns, ("---",) * len(self.columns), *self.rows)
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


Part = str | Table | Figure


@dataclass(frozen=True)
class Page:
    """NAME.md: a title, then Markdown text, tables and figures in order."""

    name: str
    title: str
    parts: tuple[Part, ...]

    def markdown(self) -> str:
        return "\n\n".join([f"# {self.title}", *self._blocks()]) + "\n"

    def _blocks(self) -> Iterator[str]:
        for part in self.parts:
            if isinstance(part, Figure):
                yield f"![{part.name}]({part.name}.png)"
            else:
                yield part.markdown() if isinstance(part, Table) else part.strip()

    def write(self, out: Path) -> None:
        """The page and its figures as the new folder `out`."""
        figures = [part for part in self.parts if isinstance(part, Figure)]
        write_folder(out, {f"{self.name}.md": self.markdown(), **{f"{f.name}.png": draw(f) for f in figures}})
