"""Read the files that processes with the library of `layerprof/` write."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wattwire.model.layers import LOST_EVENTS, POINTS, Wrapper
from wattwire.model.verdict import Reason, Verdict
from wattwire.model.words import plural

MAGIC = b"WLAYERS2"
HEADER_BYTES, NOTES_BYTES, CHUNK_BYTES = 4096, 1 << 20, 16384
STATUSES_MAX, ARGUMENTS_MAX = 256, 2048
COMMAND_MAX = 80
LIBRARY_ABSENT, SYMBOL_ABSENT, FOUND, CALLERS_ABSENT = range(4)
"""Whether a process has the library and the function of a wrapper, as in layerprof/recorder.h."""

EVENT = np.dtype([("t", "<i8"), ("a", "<i8"), ("b", "<i8"), ("point", "<u4"), ("c", "<u4")])
HEADER = np.dtype(
    [
        ("magic", "S8"), ("pid", "<u4"), ("wrappers", "<u4"), ("chunks", "<u8"),
        ("chunks_used", "<u8"), ("lost", "<u8"), ("notes_used", "<u8"),
        ("loss_cause", "<u8"), ("reserved", "<u8"), ("statuses", "u1", STATUSES_MAX),
        ("arguments", f"S{ARGUMENTS_MAX}"),
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
    """Number of events for which the file had no room or the disk no space."""
    loss_cause: int = 0
    """Number of the error (errno) that first lost an event; 0 if the file was full."""
    problem: str = ""
    """What its file lacks, apart from lost events; empty for a complete file."""


def read_recordings(folder: Path) -> list[Recording]:
    """Return the recordings of all processes. A process without a readable file has a problem."""
    refused = [_refused(path) for path in sorted(folder.glob("*.events.refused"))]
    return [_read(path) for path in sorted(folder.glob("*.events"))] + refused


def file_reasons(recordings: Sequence[Recording]) -> list[Reason]:
    """Return the reason against a run of which files of processes are missing or damaged."""
    problems = [f"process {_name(r)} {r.problem}" for r in recordings if r.problem]
    if not problems:
        return []
    more = f"; and {len(problems) - 1} more" if len(problems) > 1 else ""
    text = (
        f"the layers of {plural(len(problems), 'process', 'processes')} were not recorded "
        f"completely, so their messages lack marks: {problems[0]}{more}"
    )
    return [Reason(Verdict.INVALID, LOST_EVENTS, text)]


def _name(recording: Recording) -> str:
    """Return the number of a process, with the begin of its command line if it is known."""
    command = " ".join(recording.arguments).strip()
    return f"{recording.pid} ({command[:COMMAND_MAX]})" if command else str(recording.pid)


def loss_advice(recordings: Sequence[Recording]) -> str:
    """Return why events were lost, and what the user can do."""
    causes = sorted({r.loss_cause for r in recordings if r.lost})
    errors = [os.strerror(cause) for cause in causes if cause]
    if errors:
        return f"a process could not extend its file ({'; '.join(errors)}); remove this cause"
    return (
        "they had no room in a process's file; measure a shorter time, or export "
        "WATTWIRE_LAYERS_MIB with more than 256"
    )


def _pid(path: Path) -> int:
    """Return the number of the process that wrote a file, whose name begins with it; else 0."""
    pid = path.name.partition("-")[0]
    return int(pid) if pid.isdecimal() else 0


def _refused(path: Path) -> Recording:
    """Return the recording of a process that could not open a file. A link names the error."""
    error = os.readlink(path) if path.is_symlink() else ""
    cause = os.strerror(int(error)) if error.isdecimal() else "unknown error"
    return Recording(_pid(path), (), {}, problem=f"could not create its file: {cause}")


def _read(path: Path) -> Recording:
    """Return the recording of a file. It can be damaged, because any process can write to it."""
    place = HEADER_BYTES + NOTES_BYTES
    try:
        size_bytes = path.stat().st_size
        header = np.fromfile(path, HEADER, 1)[0] if size_bytes >= place else None
        if header is None or header["magic"] != MAGIC:
            problem = "ended before it could write the header of its file"
            return Recording(_pid(path), (), {}, problem=problem)
        stated = int(min(header["chunks_used"], header["chunks"]))
        used = min(stated, (size_bytes - place) // CHUNK_BYTES)
        chunks = np.memmap(path, CHUNK, "r", place, (used,)) if used else np.zeros(0, CHUNK)
        publishers, subscriptions, malformed = _endpoints(_notes(path, int(header["notes_used"])))
    except OSError as error:
        problem = f"has a file that cannot be read: {error.strerror}"
        return Recording(_pid(path), (), {}, problem=problem)
    parts: dict[int, list[Events]] = {}
    for chunk in chunks:
        if chunk["used"]:
            parts.setdefault(int(chunk["thread"]), []).append(chunk["events"][: int(chunk["used"])])
    threads = {thread: np.concatenate(events) for thread, events in parts.items()}
    problems = []
    if used < stated:
        problems.append(f"has a truncated file ({used} of {stated} chunks)")
    if malformed:
        problems.append(f"has {plural(malformed, 'malformed note')} in its file")
    if header["notes_used"] > NOTES_BYTES:
        problems.append(f"has names of nodes and topics of more than {NOTES_BYTES} bytes")
    return Recording(
        int(header["pid"]),
        tuple(header["arguments"].decode(errors="replace").split("\0")),
        threads,
        publishers,
        subscriptions,
        tuple(int(status) for status in header["statuses"][: int(header["wrappers"])]),
        sum(map(len, threads.values())),
        int(header["lost"]),
        int(header["loss_cause"]),
        " and ".join(problems),
    )


def _notes(path: Path, used: int) -> Iterator[list[str]]:
    """Yield the words of each note. A killed process can leave a hole of zeros, which is none."""
    with open(path, "rb") as file:
        file.seek(HEADER_BYTES)
        text = file.read(min(used, NOTES_BYTES)).decode(errors="replace")
    for line in text.split("\n")[:-1]:
        yield line.lstrip("\0").split(" ")


def _endpoints(
    notes: Iterator[list[str]],
) -> tuple[dict[int, list[Endpoint]], dict[int, list[Endpoint]], int]:
    """Return publishers, subscriptions, and the number of malformed notes."""
    nodes: dict[str, str] = {}
    ends: dict[str, dict[int, list[Endpoint]]] = {"pub": {}, "sub": {}}
    malformed = 0
    for words in notes:
        try:
            since, kind, *values = words
            since_ns = _signed(int(since))
            if kind == "node":
                node, space, name = values
                nodes[node] = f"{space.rstrip('/')}/{name}"
            else:
                _, node, handle, _, topic = values
                endpoint = Endpoint(since_ns, topic, nodes.get(node, ""))
                ends[kind].setdefault(_signed(_address(handle)), []).append(endpoint)
        except (ValueError, KeyError):
            malformed += 1
    return ends["pub"], ends["sub"], malformed


def _address(text: str) -> int:
    return 0 if text == "(nil)" else int(text, 16)


def _signed(word: int) -> int:
    """Return a word of 64 bits as the number that it is in an event. Raises ValueError if wider."""
    if not 0 <= word < 1 << 64:
        raise ValueError(f"{word} has more than 64 bits")
    return word - (1 << 64) if word >> 63 else word


def absences(recordings: list[Recording], wrappers: tuple[Wrapper, ...]) -> dict[str, str]:
    """Return each point of the tables that no process can have → the reason."""
    present: set[str] = set()
    reasons: dict[str, list[str]] = {}
    for index, wrapper in enumerate(wrappers):
        statuses = {r.statuses[index] for r in recordings if index < len(r.statuses)}
        if FOUND in statuses:
            present.add(wrapper.point)
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
        if point not in present and point in POINTS
    }
