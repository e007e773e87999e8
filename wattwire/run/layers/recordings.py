"""Read the files that processes with the library of `layerprof/` write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wattwire.model.layers import POINTS, Wrapper

MAGIC = b"WLAYERS1"
HEADER_BYTES, NOTES_BYTES, CHUNK_BYTES = 4096, 1 << 20, 16384
STATUSES_AT, STATUSES_MAX, ARGUMENTS_MAX = 64, 256, 2048
LIBRARY_ABSENT, SYMBOL_ABSENT, FOUND, CALLERS_ABSENT = range(4)
"""Whether a process has the library and the function of a wrapper, as in layerprof/recorder.h."""

EVENT = np.dtype([("t", "<i8"), ("a", "<i8"), ("b", "<i8"), ("point", "<u4"), ("c", "<u4")])
HEADER = np.dtype(
    [
        ("magic", "S8"), ("pid", "<u4"), ("wrappers", "<u4"), ("chunks", "<u8"),
        ("chunks_used", "<u8"), ("lost", "<u8"), ("notes_used", "<u8"), ("wall", "<i8"),
        ("reserved", "<u8"), ("statuses", "u1", STATUSES_MAX), ("arguments", f"S{ARGUMENTS_MAX}"),
    ]
)  # fmt: skip
CHUNK = np.dtype([("thread", "<u4"), ("used", "<u4"), ("reserved", "V24"), ("events", EVENT, 511)])

Events = npt.NDArray[np.void]
Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Endpoint:
    """A publisher or a subscription, which exists since a time (ns)."""

    since_ns: int
    topic: str
    node: str


@dataclass(frozen=True)
class Recording:
    """The events of one process: an array per thread, in the order of their recording."""

    pid: int
    arguments: tuple[str, ...]
    threads: dict[int, Events]
    publishers: dict[int, list[Endpoint]] = field(default_factory=dict)
    """Handle of the middleware's publisher → its endpoints, because handles are used again."""
    subscriptions: dict[int, list[Endpoint]] = field(default_factory=dict)
    statuses: tuple[int, ...] = ()
    """For each wrapper, whether the process has its library and its function."""
    events: int = 0
    lost: int = 0
    """Number of events for which the file had no room."""

    @property
    def nodes(self) -> list[str]:
        """Return the names of the nodes with a publisher or a subscription."""
        ends = (*self.publishers.values(), *self.subscriptions.values())
        return list(dict.fromkeys(endpoint.node for end in ends for endpoint in end))


def read_recordings(folder: Path) -> list[Recording]:
    """Return the recordings of all processes, without those that ended before the first event."""
    return [r for path in sorted(folder.glob("*.events")) if (r := _read(path)) is not None]


def _read(path: Path) -> Recording | None:
    if path.stat().st_size < HEADER_BYTES + NOTES_BYTES:
        return None
    header = np.fromfile(path, HEADER, 1)[0]
    if header["magic"] != MAGIC:
        return None
    used = int(min(header["chunks_used"], header["chunks"]))
    place = HEADER_BYTES + NOTES_BYTES
    chunks = np.memmap(path, CHUNK, "r", place, (used,)) if used else np.zeros(0, CHUNK)
    parts: dict[int, list[Events]] = {}
    for chunk in chunks:
        parts.setdefault(int(chunk["thread"]), []).append(chunk["events"][: int(chunk["used"])])
    threads = {thread: np.concatenate(events) for thread, events in parts.items()}
    publishers, subscriptions = _endpoints(_notes(path, int(header["notes_used"])))
    return Recording(
        int(header["pid"]),
        tuple(header["arguments"].decode(errors="replace").split("\0")),
        threads,
        publishers,
        subscriptions,
        tuple(int(status) for status in header["statuses"][: int(header["wrappers"])]),
        sum(map(len, threads.values())),
        int(header["lost"]) + max(0, int(header["notes_used"]) - NOTES_BYTES),
    )


def _notes(path: Path, used: int) -> Iterator[list[str]]:
    with open(path, "rb") as file:
        file.seek(HEADER_BYTES)
        text = file.read(min(used, NOTES_BYTES)).decode(errors="replace")
    for line in text.split("\n")[:-1]:
        words = line.lstrip("\0").split(" ")
        if words[0].isdecimal():
            yield words


def _endpoints(
    notes: Iterator[list[str]],
) -> tuple[dict[int, list[Endpoint]], dict[int, list[Endpoint]]]:
    nodes: dict[str, str] = {}
    ends: dict[str, dict[int, list[Endpoint]]] = {"pub": {}, "sub": {}}
    for since_ns, kind, *words in notes:
        if kind == "node" and len(words) == 3:
            nodes[words[0]] = f"{words[1].rstrip('/')}/{words[2]}"
        elif kind in ends and len(words) == 5:
            _, node, handle, _, topic = words
            endpoint = Endpoint(int(since_ns), topic, nodes.get(node, ""))
            ends[kind].setdefault(int(handle, 16), []).append(endpoint)
    return ends["pub"], ends["sub"]


def absences(recordings: list[Recording], wrappers: tuple[Wrapper, ...]) -> dict[str, str]:
    """Return each point of the tables that no process can have → the reason."""
    found: set[str] = set()
    reasons: dict[str, list[str]] = {}
    for index, wrapper in enumerate(wrappers):
        statuses = {r.statuses[index] for r in recordings if index < len(r.statuses)}
        if FOUND in statuses:
            found.add(wrapper.point)
        elif SYMBOL_ABSENT in statuses:
            text = f"{wrapper.library} has no {wrapper.symbol} ({wrapper.table})"
            reasons.setdefault(wrapper.point, []).append(text)
        elif CALLERS_ABSENT in statuses:
            text = f"no process loads {' or '.join(wrapper.callers)} ({wrapper.table})"
            reasons.setdefault(wrapper.point, []).append(text)
        elif statuses:
            text = f"no process loads {wrapper.library}"
            reasons.setdefault(wrapper.point, []).append(text)
    return {
        point: "; ".join(dict.fromkeys(texts))
        for point, texts in reasons.items()
        if point not in found and point in POINTS
    }
