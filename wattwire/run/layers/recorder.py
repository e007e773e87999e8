"""Record the layers of messages in a run's processes, which load the library of `layerprof/`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.catalog import default_roots
from wattwire.catalog.layer_tables import layer_tables
from wattwire.model.layers import LOST_EVENTS, NO_WINDOW, UNJOINED, UNMARKED, Wrapper
from wattwire.model.verdict import Reason, Verdict
from wattwire.model.words import plural
from wattwire.rig.layer_library import layer_library, preload
from wattwire.run.layers.deliveries import Deliveries, deliveries
from wattwire.run.layers.paths import path_rows
from wattwire.run.layers.recordings import (
    Recording,
    absences,
    file_reasons,
    loss_advice,
    read_recordings,
)
from wattwire.run.layers.topics import topic_rows
from wattwire.store.files import write_table

TABLE = "layers.parquet"
RECORDINGS = "layers"
"""Folder of the processes' files in the folder of an attempt. It is removed after reading."""
UNMARKED_SHARE_MAX = 0.001
PATHS_MAX = 50
"""Maximum number of paths in a run document."""


def prepared_library() -> tuple[Path, tuple[Wrapper, ...]]:
    """Return the library with the wrappers of all tables, which is built if necessary.

    Raises UsageError for a damaged table, MissingError without a C compiler.
    """
    wrappers = layer_tables(default_roots())
    return layer_library(wrappers), wrappers


class LayerRecorder:
    """Layers of one run: the variables for its processes, and the results after their end."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._recordings = folder, folder / RECORDINGS
        self._recordings.mkdir(exist_ok=True)
        self._library, self._wrappers = prepared_library()

    def environment(self, own: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the variables that make a process and its children record their layers.

        `own` are further variables of the process, which replace those of wattwire.
        """
        return preload(self._library, self._recordings, {**os.environ, **(own or {})})

    def discard(self) -> None:
        """Remove the files of the processes of a run without results."""
        shutil.rmtree(self._recordings, ignore_errors=True)

    def collect(
        self,
        span: tuple[int, int],
        completed: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
    ) -> tuple[dict[str, Any], list[Reason]]:
        """Write the table of the deliveries in the span (ns), and remove the processes' files.

        `completed` adds columns to the table. Return the run document's part and the reasons
        against the run.
        """
        recordings = read_recordings(self._recordings)
        result = deliveries(recordings, span)
        table = completed(result.frame) if completed else result.frame
        write_table(table, self._folder / TABLE)
        self.discard()
        document = self._document(recordings, result)
        return document, [*_reasons(document, recordings), *file_reasons(recordings)]

    def _document(self, recordings: list[Recording], result: Deliveries) -> dict[str, Any]:
        paths = path_rows(result.frame)
        return {
            "processes": len(recordings),
            "events": sum(recording.events for recording in recordings),
            "lost_events": sum(recording.lost for recording in recordings),
            "deliveries": len(result.frame),
            "unmarked": int(result.unmarked),
            "outside": result.outside,
            "early": result.early,
            "unstamped": result.unstamped,
            "absent": absences(recordings, self._wrappers),
            "topics": topic_rows(result),
            "pids": _pids(result.frame),
            "paths": paths[:PATHS_MAX],
            "paths_left_out": max(0, len(paths) - PATHS_MAX),
        }


def _pids(frame: pl.DataFrame) -> dict[str, int]:
    """Return node → number of its process, of the nodes with deliveries."""
    ends = [frame.select(pl.col(end).alias("node"), pl.col(f"{end}_pid").alias("pid"))
            for end in ("sender", "receiver")]  # fmt: skip
    return {str(node): int(pid) for node, pid in pl.concat(ends).unique().sort("node").iter_rows()}


def _reasons(document: dict[str, Any], recordings: list[Recording]) -> list[Reason]:
    reasons = []
    if document["lost_events"]:
        text = (
            f"{plural(document['lost_events'], 'event')} of layers were lost, so their messages "
            f"lack marks: {loss_advice(recordings)}"
        )
        reasons.append(Reason(Verdict.INVALID, LOST_EVENTS, text))
    share = document["unmarked"] / document["deliveries"] if document["deliveries"] else 0.0
    if share > UNMARKED_SHARE_MAX:
        text = (
            f"{document['unmarked']} of {plural(document['deliveries'], 'delivery', 'deliveries')} "
            f"lack a mark of a layer; allowed: {UNMARKED_SHARE_MAX:.1%}"
        )
        reasons.append(Reason(Verdict.INVALID, UNMARKED, text))
    return reasons


def without_window() -> Reason:
    """Return the reason against a run that ended before the end of its window."""
    text = "the run ended before its window did, so it records no layers"
    return Reason(Verdict.INVALID, NO_WINDOW, text)


def unjoined(document: dict[str, Any]) -> list[Reason]:
    """Return the reason against a run of nodes of which no message was seen at both ends."""
    if document["deliveries"]:
        return []
    text = (
        "no message was recorded at both of its ends; the nodes must load the library that records "
        "layers (no static program), and call the client library's tracepoints (Jazzy or later)"
    )
    return [Reason(Verdict.INVALID, UNJOINED, text)]
