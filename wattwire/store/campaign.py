"""A campaign's directory: creating, locking, committing runs and reading them back."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.model.errors import MissingError, UsageError
from wattwire.model.paths import is_plain_name
from wattwire.store import frozen
from wattwire.store.files import (
    RESTORE,
    atomic,
    for_spreadsheets,
    read_json,
    read_table,
    refuse_link,
    refuse_links,
    sync_file,
    sync_tree,
    write_atomically,
    write_by,
    write_table,
)
from wattwire.store.journal import Attempt, Journal
from wattwire.store.messages import Messages

FORMAT_VERSION = 1
JOURNAL_FILES = ("journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm")
WARM_UP = "warm_up"
"""The journal's word for what the settling runs found."""
# What no reader does without. A campaign of any version of ours has it.
STUDY_KEYS = ("name",)
MACHINE_KEYS = ("hosts",)
RUN_KEYS = ("attempt", "cells", "levels", "nodes", "outcome", "run")
SUMMARY_KEYS = ("attempt", "run", "verdict")


class Campaign:
    """One directory with everything a study's execution left. Reading needs no lock."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        for name in JOURNAL_FILES:
            refuse_link(self.path / name)
        if not (self.path / "journal.sqlite").exists():
            raise UsageError(
                f"{self.path}: no campaign here (no journal.sqlite); give the directory that "
                "`wattwire run` printed"
            )
        self._lock: int | None = None
        self.journal = Journal(self.path / "journal.sqlite")

    @classmethod
    def create(cls, path: Path) -> Campaign:
        """Make a new campaign directory; one that is already there is refused, never reused."""
        path = Path(path)
        if (path / "journal.sqlite").exists():
            raise UsageError(
                f"{path}: there is a campaign here already. Go on with --resume {path}, or "
                "choose another directory with --campaign"
            )
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(
                f"{path}: this directory has other things in it; a campaign takes an empty or a "
                "new one. Choose it with --campaign DIR"
            )
        try:
            (path / "runs").mkdir(parents=True, exist_ok=True)
            Journal(path / "journal.sqlite").close()
        except OSError as error:
            raise MissingError(
                f"{path}: the campaign directory cannot be written ({error.strerror}); choose "
                "another with --campaign DIR"
            ) from error
        return cls(path)

    def lock(self) -> None:
        """Take the campaign for this process; a second controller is refused by name."""
        refuse_links(self.path)
        lock_path = self.path / "controller.lock"
        try:
            handle = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise MissingError(
                f"{lock_path}: cannot be written ({error.strerror}); a campaign is run, and its "
                "page written, where its folder may be written: copy it, or change its rights"
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 64).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise UsageError(
                f"{self.path}: another controller (process {holder}) is running this campaign; "
                "two would spoil each other's measurements. Watch it with `wattwire status`."
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        self._lock = handle

    def holder(self) -> str | None:
        """The process that runs this campaign now, or None."""
        try:
            handle = os.open(self.path / "controller.lock", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.read(handle, 64).decode(errors="replace").strip() or "unknown"
        finally:
            os.close(handle)
        return None

    def close(self) -> None:
        self.journal.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # -- documents ---------------------------------------------------------------------------

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON document so that either the old or the new one is there, never half."""
        write_atomically(self.path / name, json.dumps(value, indent=1).encode())

    def freeze(self, name: str, value: Any) -> None:
        """Write a document and note its digest, so that a later change of it by hand shows."""
        # First the journal: a controller that dies in between leaves the old, known version.
        self.journal.set(frozen.KEY, frozen.written(self.journal.get(frozen.KEY), name, value))
        self.write_json(name, value)

    @property
    def edited(self) -> tuple[str, ...]:
        """Names of the frozen documents that somebody changed since wattwire wrote them."""
        kept = {key: self.journal.get(key) for key in (frozen.KEY, "identity")}
        there = [name for name in frozen.DOCUMENTS if (self.path / name).is_file()]
        return tuple(n for n in there if frozen.is_edited(kept, n, self.read_json(n)))

    def keep(self, source: Path, name: str) -> None:
        """Keep a copy of a study's file, so that the campaign can be read without the study.

        Raises UsageError for a name that is a path or one of the campaign's own, and for a link.
        """
        if not is_plain_name(name) or name == "summary.csv" or (self.path / name).exists():
            raise UsageError(f"{source}: {name}: not a name for a study's file in a campaign")
        if source.is_symlink():
            raise UsageError(
                f"{source}: a symbolic link, and where it leads is no part of the study; put a "
                "copy of the file there"
            )
        if not source.is_file():
            raise UsageError(f"{source}: the study names this file, but it is not there")
        write_atomically(self.path / name, source.read_bytes())

    def read_json(self, name: str) -> Any:
        """A JSON document of the campaign. Raises UsageError where it is damaged or gone."""
        return read_json(self.path / name)

    @property
    def study(self) -> dict[str, Any]:
        return read_json(self.path / "study.json", STUDY_KEYS)

    @property
    def plan(self) -> list[dict[str, Any]]:
        path = self.path / "plan.json"
        rows: list[dict[str, Any]] = read_json(path)
        planned = {row.get("run") for row in rows if isinstance(row, dict)}
        # The journal may be ahead by runs that are planned and not begun.
        done = (a.run for a in self.journal.attempts() if a.state == "done")
        lacking = [run for run in done if run not in planned]
        if lacking:
            raise UsageError(f"{path}: damaged, without run {lacking[0]}. {RESTORE}")
        return rows

    @property
    def machine(self) -> dict[str, Any]:
        return read_json(self.path / "machine.json", MACHINE_KEYS)

    @property
    def stopping(self) -> dict[str, Any] | None:
        """The last look of a campaign that stops by width, as the run left it."""
        found: dict[str, Any] | None = self.journal.get("stopping")
        return found

    @property
    def warm_up(self) -> dict[str, Any] | None:
        """The warm-up that the settling runs found, in `calls`; None where there were none."""
        found: dict[str, Any] | None = self.journal.get(WARM_UP)
        return found

    # -- runs --------------------------------------------------------------------------------

    def open_attempt(self, run: str, attempt: int) -> Path:
        """Make the working folder of an attempt in flight; it is renamed when it is committed.

        The path is absolute, because processes with other working directories are given it.
        """
        folder = self.path.resolve() / "runs" / f".{run}-{attempt}.partial"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "logs").mkdir(parents=True)
        return folder

    def commit(self, run: str, attempt: int, partial: Path) -> str:
        """Sync all files of an attempt and rename its folder into place; returns its name."""
        final = self.path / "runs" / f"{run}-{attempt}"
        sync_tree(partial)
        if final.exists():  # renamed by a controller that died before it could note it
            shutil.rmtree(final)
        os.rename(partial, final)
        sync_file(final.parent)
        return final.name

    def holds(self, attempt: Attempt) -> bool:
        """Whether the folder of a finished attempt is there."""
        return (self.path / "runs" / str(attempt.folder)).is_dir()

    def drop_partials(self) -> list[str]:
        """Remove the working folders that a dead controller left; returns their names."""
        leftovers = sorted((self.path / "runs").glob(".*.partial"))
        for folder in leftovers:
            shutil.rmtree(folder, ignore_errors=True)
        return [folder.name for folder in leftovers]

    def folder(self, run: str) -> Path:
        """The folder of a run: of its attempt that counts, or of `RUN-ATTEMPT` when so given."""
        direct = self.path / "runs" / run
        if direct.is_dir():
            return direct
        done = [a for a in self.journal.attempts(run) if a.state == "done" and a.folder]
        if not done:
            raise UsageError(f"{self.path}: no finished run {run}; see `wattwire status`")
        return self.path / "runs" / str(used_attempt([vars(a) for a in done])["folder"])

    def run(self, run: str) -> dict[str, Any]:
        return read_json(self.folder(run) / "run.json", RUN_KEYS)

    def row(self, folder: str) -> dict[str, Any]:
        """The summary row of the attempt in this folder."""
        return read_json(self.path / "runs" / folder / "summary.json", SUMMARY_KEYS)

    def messages(self, run: str) -> pl.DataFrame:
        return read_table(self.folder(run) / "messages.parquet")

    def recorded(self, run: str) -> Messages:
        """A run's messages for who takes them in parts: there may be more than memory holds."""
        return Messages.at(self.folder(run) / "messages.parquet")

    def quantities(self, run: str) -> pl.DataFrame:
        return read_table(self.folder(run) / "quantities.parquet")

    # -- summary -----------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """The summary row of every finished attempt, with `used` set on the one that counts."""
        rows: list[dict[str, Any]] = []
        for run in self.journal.runs():
            done = [vars(a) for a in self.journal.attempts(run) if a.state == "done"]
            if not done:
                continue
            counts = used_attempt(done)["attempt"]
            for attempt in done:
                row = self.row(attempt["folder"])
                usable = row["verdict"] == "ok" and attempt["attempt"] == counts
                usable = usable and not row.get("control")
                rows.append({**row, "used": usable})
        return rows

    def write_summary(self, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Any]) -> None:
        """Write summary.parquet, summary.csv and columns.json: a row per attempt."""
        frame = frame_of(rows)
        with atomic(self.path / "summary.parquet") as path:
            write_table(frame, path)
        with atomic(self.path / "summary.csv") as path:
            write_by(for_spreadsheets(frame).write_csv, path)
        self.write_json("columns.json", {k: columns[k] for k in frame.columns if k in columns})

    def summary(self) -> pl.DataFrame:
        """One row per finished attempt, as last written; made anew where none was written."""
        path = self.path / "summary.parquet"
        return read_table(path) if path.exists() else frame_of(self.rows())


def used_attempt(attempts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The attempt that counts: the first that is ok, else the last."""
    for attempt in attempts:
        if attempt["verdict"] == "ok":
            return attempt
    return attempts[-1]


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """A frame whose columns are the union of all rows' keys, in order of first appearance."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    return pl.DataFrame([_column(name, [row.get(name) for row in rows]) for name in names])


def _column(name: str, values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:  # a whole number in one run must not turn the others into integers
        return pl.Series(name, values, dtype=pl.Float64, strict=False)
    if len(kinds) > 1:  # levels of a factor may differ in type; as text they stay apart
        return pl.Series(name, [None if v is None else str(v) for v in values])
    return pl.Series(name, values)
