"""Store the journal of planned, started and finished runs: SQLite, WAL, synchronous=FULL.

A row of `attempt` gets the state `done` only after the run's files are synced and renamed, so the
journal never names a file that does not exist.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattwire.model.errors import MissingError, UsageError
from wattwire.model.paths import is_plain_name

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS run (
  run TEXT PRIMARY KEY, ordinal INTEGER NOT NULL UNIQUE, block INTEGER NOT NULL,
  position INTEGER NOT NULL, treatment TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS attempt (
  run TEXT NOT NULL REFERENCES run(run), attempt INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('begun', 'done', 'lost')),
  token TEXT NOT NULL, verdict TEXT, outcome TEXT, folder TEXT,
  begun_at TEXT NOT NULL, ended_at TEXT,
  PRIMARY KEY (run, attempt));
CREATE TABLE IF NOT EXISTS segment (
  segment INTEGER PRIMARY KEY, begun_at TEXT NOT NULL, machine TEXT NOT NULL,
  accepted TEXT NOT NULL);
"""


@dataclass(frozen=True)
class Attempt:
    """One execution of a planned run."""

    run: str
    attempt: int
    state: str
    token: str
    verdict: str | None
    outcome: str | None
    folder: str | None


SYSTEM_ERRORS = {
    "database or disk is full": errno.ENOSPC,
    "disk I/O error": errno.EIO,
    "attempt to write a readonly database": errno.EROFS,
}
"""SQLite's messages for disk errors, with the system's error numbers."""


class _Connection(sqlite3.Connection):
    """A connection that raises OSError if the disk fails, like a plain file."""

    path = ""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        try:
            return super().execute(*arguments)
        except sqlite3.OperationalError as error:
            code = SYSTEM_ERRORS.get(str(error))
            if code is None or not self.path:
                raise
            raise OSError(code, os.strerror(code), self.path) from error


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=10, isolation_level=None, factory=_Connection)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.executescript(_SCHEMA)
    db.path = str(path)  # set last, so that the caller reports earlier errors
    return db


def connected_to_read(path: Path) -> sqlite3.Connection:
    """Return a read-only connection to a journal.

    In a folder without write permission, SQLite cannot lock and therefore cannot read the
    write-ahead log. Raise MissingError if the log contains the latest entries.
    """
    if os.access(path.parent, os.W_OK):
        return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    wal_path = path.with_name(f"{path.name}-wal")
    if wal_path.is_file() and wal_path.stat().st_size:
        raise MissingError(
            f"{wal_path}: this file contains the latest entries, and reading them needs write "
            "access to the folder. Copy the campaign to a writable folder."
        )
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(address, uri=True, isolation_level=None)


class Journal:
    """The journal of a campaign. Every method commits before it returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # An archived campaign, or a campaign of another user, can still be read.
            writable = os.access(path.parent, os.W_OK) or not path.exists()
            self._db = _opened(path) if writable else connected_to_read(path)
            self._check_version()
        except sqlite3.OperationalError as error:
            raise MissingError(
                f"{path}: the journal cannot be written ({error}). The folder must be writable "
                "and its disk must have space; nothing was run."
            ) from error
        except sqlite3.DatabaseError as error:
            raise UsageError(
                f"{path}: not a journal, or damaged ({error}). Restore it from a copy."
            ) from error

    def _check_version(self) -> None:
        version = self.get("schema_version")
        if version is None:
            self.set("schema_version", SCHEMA_VERSION)
        elif version != SCHEMA_VERSION:
            raise UsageError(
                f"{self.path}: found schema version {version}; this wattwire reads version "
                f"{SCHEMA_VERSION}"
            )

    def close(self) -> None:
        self._db.close()

    def get(self, key: str) -> Any:
        """Return the value stored under `key`, or None."""
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def set(self, key: str, value: Any) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def write_plan(self, rows: Iterable[tuple[str, int, int, str]], **meta: Any) -> None:
        """Write (run, block, position, treatment key) of all runs in their order.

        Later calls append runs. `meta` is stored in the same transaction.
        """
        with self._transaction():
            first = self._db.execute("SELECT COALESCE(MAX(ordinal) + 1, 0) FROM run").fetchone()[0]
            for ordinal, row in enumerate(rows, first):
                run, block, position, treatment = row
                self._db.execute(
                    "INSERT INTO run VALUES (?, ?, ?, ?, ?)",
                    (run, ordinal, block, position, treatment),
                )
            for key, value in meta.items():
                self.set(key, value)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite ends some transactions itself
                self._db.execute("ROLLBACK")
            raise

    def begin(self, run: str, token: str, now: str) -> int:
        """Record the start of an attempt and return its number, counted from 1."""
        with self._transaction():
            row = self._db.execute(
                "SELECT COALESCE(MAX(attempt), 0) + 1 FROM attempt WHERE run = ?", (run,)
            ).fetchone()
            number = int(row[0])
            self._db.execute(
                "INSERT INTO attempt VALUES (?, ?, 'begun', ?, NULL, NULL, NULL, ?, NULL)",
                (run, number, token, now),
            )
        return number

    def finish(
        self, run: str, attempt: int, verdict: str, outcome: str, folder: str, now: str
    ) -> None:
        self._db.execute(
            "UPDATE attempt SET state='done', verdict=?, outcome=?, folder=?, ended_at=? "
            "WHERE run=? AND attempt=?",
            (verdict, outcome, folder, now, run, attempt),
        )

    def add_finished(self, attempts: Iterable[Attempt], now: str) -> None:
        """Record attempts that are already finished, in one transaction.

        A commit per attempt waits for the disk each time.
        """
        with self._transaction():
            for a in attempts:
                self._db.execute(
                    "INSERT INTO attempt VALUES (?, ?, 'done', ?, ?, ?, ?, ?, ?)",
                    (a.run, a.attempt, a.token, a.verdict, a.outcome, a.folder, now, now),
                )

    def lose(self, run: str, attempt: int, now: str) -> None:
        """Mark an attempt as lost because it was interrupted."""
        self._db.execute(
            "UPDATE attempt SET state='lost', ended_at=? WHERE run=? AND attempt=?",
            (now, run, attempt),
        )

    def attempts(self, run: str | None = None) -> list[Attempt]:
        query = "SELECT run, attempt, state, token, verdict, outcome, folder FROM attempt"
        order = " ORDER BY run, attempt"
        if run is None:
            rows = self._db.execute(query + order)
        else:
            rows = self._db.execute(query + " WHERE run = ?" + order, (run,))
        return [self._checked(Attempt(*row)) for row in rows]

    def _checked(self, attempt: Attempt) -> Attempt:
        """Return the attempt. Raise UsageError if its folder is outside the campaign."""
        name = f"{attempt.run}-{attempt.attempt}"
        if attempt.state == "done" and (attempt.folder != name or not is_plain_name(name)):
            raise UsageError(
                f"{self.path}: damaged: attempt {attempt.attempt} of run {attempt.run!r} names the "
                f"folder {attempt.folder!r}; allowed: RUN-ATTEMPT. Restore the file from a copy."
            )
        return attempt

    def runs(self, first_block: int = 0) -> list[str]:
        """Return the planned runs in order, beginning with a block.

        Block 0 has the settling runs.
        """
        query = "SELECT run FROM run WHERE block >= ? ORDER BY ordinal"
        return [row[0] for row in self._db.execute(query, (first_block,))]

    def add_segment(self, machine: dict[str, Any], accepted: list[str], now: str) -> int:
        cursor = self._db.execute(
            "INSERT INTO segment (begun_at, machine, accepted) VALUES (?, ?, ?)",
            (now, json.dumps(machine), json.dumps(accepted)),
        )
        return int(cursor.lastrowid or 0)

    def segments(self) -> list[dict[str, Any]]:
        rows = self._db.execute("SELECT segment, begun_at, machine, accepted FROM segment")
        return [
            {"segment": s, "begun_at": b, "machine": json.loads(m), "accepted": json.loads(a)}
            for s, b, m, a in rows
        ]
