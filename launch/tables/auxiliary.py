"""The public samples of an ensemble job: a table that every voter and participant has, with public bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from launch.jobfile.fields import MAX_NAME, Fields
from launch.jobfile.parties import PartySpec, column_facts, read_columns
from launch.tables.table import read_table
from protocols.ensemble.auxiliary import Auxiliary, bounded_rows
from protocols.schema import Column, Floats

OWNER = "auxiliary"


@dataclass(frozen=True)
class AuxiliaryTable:
    """[auxiliary]: CSV or Parquet, an id column that orders the samples, feature columns with bounds."""

    spec: PartySpec
    clip: bool

    @classmethod
    def read(cls, path: Path, fields: Fields) -> AuxiliaryTable:
        columns = read_columns(f"{path}: columns of [auxiliary]", fields.get("columns"))
        table = path.parent / fields.text("table")
        identifier = fields.text("id", longest=MAX_NAME)
        spec = PartySpec(OWNER, None, None, table=table, id=identifier, columns=columns, ledger=None, data_set=OWNER)
        return cls(spec, fields.switch("clip"))

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.spec.columns

    def at(self, table: Path | None) -> AuxiliaryTable:
        """The same samples in another file."""
        return self if table is None else replace(self, spec=replace(self.spec, table=table))

    def facts(self) -> dict[str, str]:
        return {**column_facts((self.spec,)), "clip": str(self.clip)}

    def features(self) -> Floats:
        """The columns in their own units, ordered by id: shape (samples, columns)."""
        return np.ascontiguousarray(read_table(self.spec, clip=self.clip, clip_in="[auxiliary]").columns.T)

    def load(self) -> Auxiliary:
        """The samples as the protocol has them."""
        return self.scaled(self.features())

    def scaled(self, features: Floats) -> Auxiliary:
        """Scaled to [0, 1] by the bounds, into the unit ball with an intercept, on the lattice."""
        return Auxiliary.of(bounded_rows(features, self.columns))
