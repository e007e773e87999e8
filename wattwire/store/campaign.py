"""Manage the directory of a campaign: create it, lock it, commit runs and read them."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wattwire.model import LazyModule
from wattwire.model.errors import MissingError, UsageError
from wattwire.model.paths import is_plain_name
from wattwire.model.stored_study import StoredStudy, stored_study
from wattwire.store import frozen
from wattwire.store.files import (
    RESTORE,
    atomic,
    for_spreadsheets,
    read_json,
    read_table,
    refuse_link,
    refuse_links,
    refuse_special,
    sync_file,
    sync_tree,
    write_atomically,
    write_by,
    write_table,
)
from wattwire.store.journal import Attempt, Journal
from wattwire.store.messages import Messages
from wattwire.store.run_documents import RunDocuments

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LazyModule("polars")

JOURNAL_FILES = ("journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm")
PROCESSES_TABLE = "processes"
"""Name of the table of the processes in the process trees of `exec`, per run and in total."""
ALIGNMENT, TRACE = "alignment.json", "trace.json"
"""Documents of the loads for the alignment of a trace, and of a trace that was put in later."""
TRACE_TABLE = "trace.parquet"
WARM_UP = "warm_up"
"""The journal's key for the warm-up from the settling runs."""
# Keys that every reader needs.
STUDY_KEYS = ("name",)
MACHINE_KEYS = ("hosts",)
SUMMARY_KEYS = ("attempt", "run", "verdict")


class Campaign:
    """The directory with all results of a campaign. Reading does not need the lock."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        refuse_special(self.path)
        for name in JOURNAL_FILES:
            refuse_link(self.path / name)
        if not (self.path / "journal.sqlite").exists():
            raise UsageError(
                f"{self.path}: this directory has no campaign (no journal.sqlite); use the "
                "directory that "
                "`wattwire run` printed"
            )
        self._lock: int | None = None
        self._run_documents = RunDocuments()
        self.journal = Journal(self.path / "journal.sqlite")

    @classmethod
    def create(cls, path: Path) -> Campaign:
        """Create a campaign directory. Raise UsageError for a directory that is not empty."""
        path = Path(path)
        if (path / "journal.sqlite").exists():
            raise UsageError(
                f"{path}: this directory already has a campaign. Continue it with `wattwire "
                f"run --resume {path}`, or choose another directory with --campaign"
            )
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(
                f"{path}: this directory is not empty; use --campaign with an empty or new "
                "directory"
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
        """Lock the campaign for this process.

        Raise UsageError if another controller has the lock; the error names it.
        """
        refuse_links(self.path)
        lock_path = self.path / "controller.lock"
        try:
            handle = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise MissingError(
                f"{lock_path}: cannot be written ({error.strerror}). To run a campaign or "
                "write its page, its folder must be writable. Copy the campaign, or change its "
                "permissions."
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 64).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise UsageError(
                f"{self.path}: another controller (process {holder}) is running this campaign; "
                "two controllers would disturb each other's measurements. Watch it with "
                "`wattwire status`."
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        self._lock = handle

    def holder(self) -> str | None:
        """Return the process that has locked this campaign, or None."""
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
        """Write a JSON document atomically."""
        write_atomically(self.path / name, json.dumps(value, indent=1).encode())

    def freeze(self, name: str, value: Any) -> None:
        """Write a document and store its digest, so that later manual changes are detected."""
        # The journal is written first. If the controller dies then, the document is the old
        # version.
        self.journal.set(frozen.KEY, frozen.written(self.journal.get(frozen.KEY), name, value))
        self.write_json(name, value)

    @property
    def edited(self) -> tuple[str, ...]:
        """Return the names of the documents that were edited after wattwire wrote them."""
        digests = self.journal.get(frozen.KEY)
        present = [name for name in frozen.DOCUMENTS if (self.path / name).is_file()]
        return tuple(n for n in present if frozen.is_edited(digests, n, self.read_json(n)))

    def keep(self, source: Path, name: str) -> None:
        """Store a copy of a study's file, so that the campaign can be read without the study.

        Raise UsageError for a link, and for a name that is a path or that the campaign reserves.
        """
        if not is_plain_name(name) or name == "summary.csv" or (self.path / name).exists():
            raise UsageError(
                f"{source}: {name}: a campaign cannot store a study's file with this name"
            )
        if source.is_symlink():
            raise UsageError(
                f"{source}: this is a symbolic link, and its target is not part of the study. "
                "Replace it with a copy of the file."
            )
        if not source.is_file():
            raise UsageError(f"{source}: the study names this file, but it does not exist")
        write_atomically(self.path / name, source.read_bytes())

    def read_json(self, name: str) -> Any:
        """Return a JSON document of the campaign. Raise UsageError if it is damaged or missing."""
        return read_json(self.path / name)

    @property
    def study_document(self) -> dict[str, Any]:
        """Return the study as stored before the first run."""
        return read_json(self.path / "study.json", STUDY_KEYS)

    @cached_property
    def study(self) -> StoredStudy:
        return stored_study(self.study_document, str(self.path / "study.json"))

    @property
    def plan(self) -> list[dict[str, Any]]:
        path = self.path / "plan.json"
        rows: list[dict[str, Any]] = read_json(path)
        planned = {row.get("run") for row in rows if isinstance(row, dict)}
        # The journal may contain additional runs that were planned but not started.
        done = (a.run for a in self.journal.attempts() if a.state == "done")
        lacking = [run for run in done if run not in planned]
        if lacking:
            raise UsageError(f"{path}: damaged; run {lacking[0]} is missing. {RESTORE}")
        return rows

    @property
    def machine(self) -> dict[str, Any]:
        return read_json(self.path / "machine.json", MACHINE_KEYS)

    @property
    def stopping(self) -> dict[str, Any] | None:
        """Return the stored last look of a campaign that stops by width."""
        last_look: dict[str, Any] | None = self.journal.get("stopping")
        return last_look

    @property
    def warm_up(self) -> dict[str, Any] | None:
        """Return the warm-up that the settling runs determined; None without settling runs."""
        document: dict[str, Any] | None = self.journal.get(WARM_UP)
        return document

    # -- runs --------------------------------------------------------------------------------

    def open_attempt(self, run: str, attempt: int) -> Path:
        """Create the working folder of an attempt. `commit` renames it.

        The path is absolute, because processes with other working directories use it.
        """
        folder = self.path.resolve() / "runs" / f".{run}-{attempt}.partial"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "logs").mkdir(parents=True)
        return folder

    def commit(self, run: str, attempt: int, partial: Path) -> str:
        """Sync all files of an attempt and rename its folder; return the final name."""
        final = self.path / "runs" / f"{run}-{attempt}"
        sync_tree(partial)
        if final.exists():  # renamed by a controller that died before it wrote the journal entry
            shutil.rmtree(final)
        os.rename(partial, final)
        sync_file(final.parent)
        return final.name

    def holds(self, attempt: Attempt) -> bool:
        """Return whether the folder of a finished attempt exists."""
        return (self.path / "runs" / str(attempt.folder)).is_dir()

    def drop_partials(self) -> list[str]:
        """Remove the working folders of a dead controller and return their names."""
        leftovers = sorted((self.path / "runs").glob(".*.partial"))
        for folder in leftovers:
            shutil.rmtree(folder, ignore_errors=True)
        return [folder.name for folder in leftovers]

    def folder(self, run: str) -> Path:
        """Return the folder of RUN-ATTEMPT, or of the attempt of RUN that counts."""
        if not is_plain_name(run):  # the name of a run can come from a stranger's plan.json
            raise UsageError(f"{self.path}: no run {run!r}; allowed: a name without folders")
        direct = self.path / "runs" / run
        if direct.is_dir():
            return direct
        done = [a for a in self.journal.attempts(run) if a.state == "done" and a.folder]
        if not done:
            raise UsageError(f"{self.path}: no finished run {run}; see `wattwire status`")
        return self.path / "runs" / str(used_attempt([vars(a) for a in done])["folder"])

    def run(self, run: str) -> dict[str, Any]:
        """Return run.json with the content of deployment.json."""
        return next(self.documents([run]))

    def documents(self, runs: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Yield the documents of many runs; see `run`. Their equal parts are the same object."""
        yield from self._run_documents.read([self.folder(run) for run in runs])

    def row(self, folder: str) -> dict[str, Any]:
        """Return the summary row of the attempt in this folder."""
        return read_json(self.path / "runs" / folder / "summary.json", SUMMARY_KEYS)

    def messages(self, run: str) -> pl.DataFrame:
        return read_table(self.records_path(run))

    def recorded(self, run: str) -> Messages:
        """Return the messages of a run, to be read in parts because they may not fit in memory."""
        return Messages.at(self.records_path(run))

    def records_path(self, run: str) -> Path:
        """Return the path of the records of a run."""
        return self.folder(run) / "messages.parquet"

    def quantities(self, run: str) -> pl.DataFrame:
        return read_table(self.folder(run) / "quantities.parquet")

    # -- summary -----------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """Return the summary row of every finished attempt.

        `used` is true for the valid attempts that answers use.
        """
        rows: list[dict[str, Any]] = []
        for done in self.finished().values():
            used_number = used_attempt([vars(attempt) for attempt in done])["attempt"]
            for attempt in done:
                row = self.row(str(attempt.folder))
                usable = row["verdict"] == "valid" and attempt.attempt == used_number
                usable = usable and not row.get("control")
                rows.append({**row, "used": usable})
        return rows

    def finished(self) -> dict[str, list[Attempt]]:
        """Return the finished attempts of each run that has any, in the order of the plan."""
        done: dict[str, list[Attempt]] = {}
        for attempt in self.journal.attempts():
            if attempt.state == "done":
                done.setdefault(attempt.run, []).append(attempt)
        return {run: done[run] for run in self.journal.runs() if run in done}

    def write_summary(self, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Any]) -> None:
        """Write summary.parquet, summary.csv and columns.json, with one row per attempt."""
        tables = {"summary": frame_of(rows)}
        if (processes := self.processes()) is not None:
            tables[PROCESSES_TABLE] = processes
        for name, frame in tables.items():
            with atomic(self.path / f"{name}.parquet") as path:
                write_table(frame, path)
            with atomic(self.path / f"{name}.csv") as path:
                write_by(for_spreadsheets(frame).write_csv, path)
        names = dict.fromkeys(name for frame in tables.values() for name in frame.columns)
        self.write_json("columns.json", {k: columns[k] for k in names if k in columns})

    def alignment_loads(self) -> list[dict[str, Any]] | None:
        """Return the loads by which a trace can be aligned; None in a campaign without them."""
        path = self.path / ALIGNMENT
        return list(read_json(path, ("loads",))["loads"]) if path.exists() else None

    def write_trace(self, trace: pl.DataFrame, about: Mapping[str, Any]) -> None:
        """Store a trace (`time_s`, `power_w`) of an instrument that ended after the campaign."""
        write_table(trace, self.path / TRACE_TABLE)
        self.write_json(TRACE, dict(about))

    def trace(self) -> tuple[pl.DataFrame, dict[str, Any]] | None:
        """Return the stored trace with its facts, or None."""
        if not (self.path / TRACE).exists():
            return None
        return read_table(self.path / TRACE_TABLE), read_json(self.path / TRACE)

    def processes(self) -> pl.DataFrame | None:
        """Return one row per process of the trees that `exec` measured, in the order of the runs.

        The result is None for a campaign of nodes.
        """
        done = [a for a in self.journal.attempts() if a.state == "done" and a.folder]
        order = {run: place for place, run in enumerate(self.journal.runs())}
        done.sort(key=lambda attempt: (order.get(attempt.run, 0), attempt.attempt))
        paths = [self.path / "runs" / str(a.folder) / f"{PROCESSES_TABLE}.parquet" for a in done]
        frames = [read_table(path) for path in paths if path.exists()]
        return pl.concat(frames, how="diagonal_relaxed") if frames else None

    def summary(self) -> pl.DataFrame:
        """Return one row per finished attempt, from the stored summary if there is one."""
        path = self.path / "summary.parquet"
        return read_table(path) if path.exists() else frame_of(self.rows())


def used_attempt(attempts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the attempt that represents the run: the first valid one, or the last attempt."""
    for attempt in attempts:
        if attempt["verdict"] == "valid":
            return attempt
    return attempts[-1]


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return a frame whose columns are the keys of all rows, in order of first occurrence."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    return pl.DataFrame([_column(name, [row.get(name) for row in rows]) for name in names])


def _column(name: str, values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:  # integers and floats together give a float column
        return pl.Series(name, values, dtype=pl.Float64, strict=False)
    if len(kinds) > 1:  # levels of a factor may differ in type; texts remain distinct
        return pl.Series(name, [None if v is None else str(v) for v in values])
    return pl.Series(name, values)
