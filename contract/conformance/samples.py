"""Read sample files (C-24, C-25) and report their breaches."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .cell import Problem
from .host import Place
from .roles import CODES, FEEDBACK, MESSAGE, RELAY, ROLE_CODES

UNKNOWN_NS = CODES["unknown_ns"]
UNKNOWN_PEER = CODES["unknown_peer"]
PROBE = CODES["probe_counter"]
WARM_UP, FAILED, TIMEOUT, CORRUPT = (
    CODES["flags"][name] for name in ("warm_up", "failed", "timeout", "corrupt")
)

_HEADER = struct.Struct("<8sHHHBBHHIQQQ16s")
_RECORD = struct.Struct("<QqqqIHBB")


class Record(NamedTuple):
    """One record of C-25; times are ns of the clock of the node's host."""

    seq: int
    intended_ns: int
    begin_ns: int
    end_ns: int
    bytes: int
    peer: int
    kind: int
    flags: int

    @property
    def node(self) -> int:
        return self.seq >> 48

    @property
    def arrival_ns(self) -> int:
        """Return the arrival at a subscriber or relay (C-27)."""
        return self.intended_ns if self.kind == RELAY else self.end_ns

    @property
    def counter(self) -> int:
        return self.seq & (2**48 - 1)


@dataclass(frozen=True)
class Samples:
    """The records of all files of one node."""

    records: list[Record]
    overflow: int
    problems: list[Problem]


def _header_problems(header: tuple[Any, ...], size: int, spec: dict[str, Any]) -> Iterator[str]:
    """Yield a text for each wrong field of a header; `size` is the size of the file in bytes."""
    magic, version, header_bytes, record_bytes, role, clock, node, pad, pad2 = header[:9]
    count, _overflow, seed, reserved = header[9:]
    expected = {
        "magic": (magic, b"WATTWIRE"),
        "version": (version, 1),
        "header_bytes": (header_bytes, 64),
        "record_bytes": (record_bytes, 40),
        "role": (role, ROLE_CODES.index(spec["role"])),
        "clock": (clock, 1),
        "node": (node, spec["node"]),
        "zeros": ((pad, pad2, reserved), (0, 0, bytes(16))),
        "seed": (seed, spec["payload.seed"]),
        "count (by the file's size)": (64 + 40 * count, size),
    }
    for name, (value, allowed) in expected.items():
        if value != allowed:
            yield f"{name}: found {value!r}, expected {allowed!r}"


def read_samples(out: Path, spec: dict[str, Any], label: str) -> Samples:
    """Return the content of OUT/samples*.bin. Malformed files become problems, not exceptions."""
    samples = read_files(sorted(out.glob("samples*.bin")), spec, label)
    if not (out / "samples.bin").is_file():
        missing = Problem("C-24", f"{label}: the node wrote no samples.bin")
        return Samples(samples.records, samples.overflow, [missing, *samples.problems])
    return samples


def read_files(files: Sequence[Path], spec: dict[str, Any], label: str) -> Samples:
    """Return the content of sample files. Malformed files become problems, not exceptions."""
    records: list[Record] = []
    overflow = 0
    problems: list[Problem] = []
    for path in files:
        data = path.read_bytes()
        where = f"{label}: {path.name}"
        if len(data) < 64:
            problems.append(
                Problem("C-24", f"{where}: the header is incomplete ({len(data)} of 64 bytes)")
            )
            continue
        header = _HEADER.unpack_from(data)
        problems += [
            Problem("C-24", f"{where}: {text}")
            for text in _header_problems(header, len(data), spec)
        ]
        overflow += header[10]
        records_bytes = (len(data) - 64) // 40 * 40
        records += map(Record._make, _RECORD.iter_unpack(data[64 : 64 + records_bytes]))
    return Samples(records, overflow, problems)


def converted(record: Record, own: Place, sender: Place) -> Record:
    """Return a record of a node with all times on the clock of this process.

    `sender` is the host that sent what the record describes: the time `begin_ns` of a received
    message or feedback is of the sender's clock (C-27). For a sent one, `sender` is `own`.
    """
    begin = sender if record.kind in (MESSAGE, FEEDBACK) else own
    return record._replace(
        intended_ns=own.controller_ns(record.intended_ns),
        begin_ns=begin.controller_ns(record.begin_ns),
        end_ns=own.controller_ns(record.end_ns),
    )
