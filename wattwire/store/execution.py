"""Manage the folder of an `exec` measurement, with rows per process instead of per message."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.model.errors import MissingError, UsageError
from wattwire.store.campaign import frame_of
from wattwire.store.files import (
    atomic,
    for_spreadsheets,
    sync_file,
    sync_tree,
    write_atomically,
    write_by,
)

FORMAT_VERSION = 1
DOCUMENT = "exec.json"


class Execution:
    """Folder with `exec.json`, `machine.json`, `runs/<k>/` and the tables of a measurement."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        if not (self.path / DOCUMENT).exists():
            raise UsageError(f"{self.path}: not a folder of `wattwire exec` (it has no {DOCUMENT})")

    @classmethod
    def create(cls, path: Path, document: Mapping[str, Any]) -> Execution:
        """Create a folder. Raise UsageError for a folder that is not empty."""
        path = Path(path)
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(
                f"{path}: this directory is not empty; use --out with an empty or new directory"
            )
        try:
            (path / "runs").mkdir(parents=True, exist_ok=True)
            text = json.dumps({"format_version": FORMAT_VERSION, **document}, indent=1)
            write_atomically(path / DOCUMENT, text.encode())
        except OSError as error:
            raise MissingError(
                f"{path}: cannot be written ({error.strerror}); choose another with --out DIR"
            ) from error
        return cls(path)

    @property
    def document(self) -> dict[str, Any]:
        return json.loads((self.path / DOCUMENT).read_text(encoding="utf-8"))

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON document atomically."""
        write_atomically(self.path / name, json.dumps(value, indent=1).encode())

    def open_repeat(self, repeat: int) -> Path:
        """Create the working folder of a repeat and return its absolute path.

        `commit_repeat` renames the folder.
        """
        folder = self.path.resolve() / "runs" / f".{repeat:04}.partial"
        (folder / "logs").mkdir(parents=True)
        return folder

    def commit_repeat(self, repeat: int, partial: Path) -> Path:
        """Sync the files of a repeat and rename its folder; return the final path."""
        sync_tree(partial)
        final = partial.with_name(f"{repeat:04}")
        os.rename(partial, final)
        sync_file(final.parent)
        return final

    def write_tables(
        self,
        processes: Sequence[Mapping[str, Any]],
        repeats: Sequence[Mapping[str, Any]],
        columns: Mapping[str, Any],
    ) -> None:
        """Write the tables `processes` and `summary` as Parquet and CSV, and columns.json."""
        for name, rows in (("processes", processes), ("summary", repeats)):
            frame = frame_of(rows)
            safe = for_spreadsheets(frame)
            for suffix, write in ((".parquet", frame.write_parquet), (".csv", safe.write_csv)):
                with atomic(self.path / f"{name}{suffix}") as partial:
                    write_by(write, partial)
        self.write_json("columns.json", columns)

    def processes(self) -> pl.DataFrame:
        """Return one row per process and repeat."""
        return pl.read_parquet(self.path / "processes.parquet")

    def summary(self) -> pl.DataFrame:
        """Return one row per repeat."""
        return pl.read_parquet(self.path / "summary.parquet")
