"""Read the files of a probe: facts about the graph, and records of messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

RECORD = np.dtype([
    ("source_ns", "<i8"), ("received_ns", "<i8"), ("taken_ns", "<i8"), ("monotonic_ns", "<i8"),
    ("stamp_ns", "<i8"), ("sequence", "<u8"), ("bytes", "<u4"), ("stream", "<u4"),
])  # fmt: skip
NO_STAMP = np.iinfo(np.int64).min
NO_SEQUENCE = np.iinfo(np.uint64).max
FACTS = "facts.jsonl"
Records = NDArray[Any]


@dataclass
class Graph:
    """What a probe knows about the graph; each fact is the latest of its kind."""

    probe: dict[str, Any] = field(default_factory=dict)
    scan: dict[str, Any] = field(default_factory=dict)
    """Numbers of topics, and the names of the topics that are not read."""
    nodes: dict[str, Any] = field(default_factory=dict)
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    streams: dict[int, dict[str, Any]] = field(default_factory=dict)
    readers: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """Topic and gid → a subscription of another node than the probe."""
    gone_ns: dict[int, int] = field(default_factory=dict)
    """Index of a stream → monotonic time (ns) at which the graph no longer had its publisher."""
    mismatches: list[dict[str, Any]] = field(default_factory=list)
    scans: list[tuple[int, int]] = field(default_factory=list)
    """Begin and end (wall clock, ns) of each scan of the graph, without a take."""
    usage: list[dict[str, Any]] = field(default_factory=list)
    """CPU time and memory of the probe, once per second."""

    def take(self, fact: Mapping[str, Any]) -> None:
        """Add a fact. Unknown kinds are ignored."""
        kind = fact["kind"]
        if kind == "probe":
            self.probe = dict(fact)
        elif kind == "graph":
            self.scan = dict(fact)
        elif kind == "nodes":
            self.nodes = dict(fact)
        elif kind == "topic":
            self.topics[fact["topic"]] = dict(fact)
        elif kind == "stream":
            self.streams.setdefault(fact["index"], {}).update(fact)
            self.gone_ns.pop(fact["index"], None)
        elif kind == "reader":
            self.readers[fact["topic"], fact["gid"]] = dict(fact)
        elif kind == "gone":
            self.gone_ns[fact["index"]] = fact["monotonic_ns"]
        elif kind == "mismatch":
            self.mismatches.append(dict(fact))
        elif kind == "scan":
            self.scans.append((fact["begin_ns"], fact["end_ns"]))
        elif kind == "usage":
            self.usage.append(dict(fact))


class ProbeFiles:
    """The files of a probe, which may still grow."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._facts_at = 0
        self._full: list[Records] = []
        self.graph = Graph()

    def read_facts(self) -> Graph:
        """Return the graph with all facts that have been written."""
        path = self._folder / FACTS
        if not path.exists():
            return self.graph
        with path.open("rb") as file:
            file.seek(self._facts_at)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._facts_at += len(whole)
        for line in whole.splitlines():
            self.graph.take(json.loads(line.decode(errors="replace")))
        return self.graph

    def read_records(self) -> Records:
        """Return all records that have been written, in the order of their arrival."""
        paths = sorted(self._folder.glob("records-*.bin"))
        parts = list(self._full)
        for path in paths[len(self._full) :]:
            # The file is preallocated: it ends with records whose time is 0.
            count = int(np.count_nonzero(np.fromfile(path, dtype=RECORD)["monotonic_ns"]))
            # The probe writes the time last. Only a second reading surely has what precedes it.
            parts.append(np.fromfile(path, dtype=RECORD, count=count))
        if len(paths) > 1:
            self._full = parts[: len(paths) - 1]  # only the last file still grows
        return np.concatenate(parts) if parts else np.empty(0, dtype=RECORD)
