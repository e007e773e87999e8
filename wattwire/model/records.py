"""Read the binary sample files of nodes and the binary readings of the sampler."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from wattwire.model.errors import WattwireError
from wattwire.model.sample_codes import (
    ALL_FLAGS,
    HEADER_BYTES,
    KINDS,
    MAGIC,
    RECORD_BYTES,
    ROLES,
    VERSION,
)

COUNTER_MASK = 2**48 - 1

MESSAGE_HEADER = np.dtype(
    [("magic", "S8"), ("version", "<u2"), ("header_bytes", "<u2"), ("record_bytes", "<u2"),
     ("role", "u1"), ("clock", "u1"), ("node", "<u2"), ("pad16", "<u2"), ("pad32", "<u4"),
     ("count", "<u8"), ("overflow", "<u8"), ("seed", "<u8"), ("reserved", "V16")]
)  # fmt: skip
MESSAGE_RECORD = np.dtype(
    [("seq", "<u8"), ("intended_ns", "<i8"), ("begin_ns", "<i8"), ("end_ns", "<i8"),
     ("bytes", "<u4"), ("peer", "<u2"), ("kind", "u1"), ("flags", "u1")]
)  # fmt: skip
READING_RECORD = np.dtype(
    [("t_ns", "<i8"), ("series", "<u4"), ("read_ns", "<u4"), ("value", "<f8")]
)
RECORDS_MAX = 10**9
"""Maximum number of records in a sample file for a node of unknown capacity."""
CHUNK_RECORDS = 1 << 17
"""Number of records that are read at a time (5 MiB)."""


class SampleFileError(WattwireError):
    """A sample file violates the contract (truncated, of another run, of another version)."""


def read_regular(path: Path, bytes_max: int) -> bytes:
    """Return the content of a regular file without blocking.

    A node may leave any kind of file, such as a pipe without a writer, a link to an endless device,
    or a file larger than the memory. Raises SampleFileError for these files.
    """
    with _regular(path, bytes_max) as (file, size):
        return file.read(size)


@contextlib.contextmanager
def _regular(path: Path, bytes_max: int) -> Iterator[tuple[BinaryIO, int]]:
    """Open a regular file, and yield it and its size in bytes.

    Raises SampleFileError for any other kind of file, and for a file of more than `bytes_max`
    bytes.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise SampleFileError(f"{path}: cannot be opened ({error.strerror})") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise SampleFileError(f"{path}: not a regular file")
        if status.st_size > bytes_max:
            raise SampleFileError(
                f"{path}: {status.st_size:,} bytes; allowed: at most {bytes_max:,}"
            )
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file, status.st_size
    finally:
        os.close(descriptor)


Records = npt.NDArray[np.void]
"""Array of shape (n,) and dtype MESSAGE_RECORD."""


class Samples(Protocol):
    """The records of a node process, in memory or in a file."""

    @property
    def role(self) -> str: ...

    @property
    def node(self) -> int: ...

    @property
    def overflow(self) -> int: ...

    @property
    def count(self) -> int: ...

    def chunks(self, begin: int = 0, end: int | None = None) -> Iterator[Records]:
        """Yield the records from `begin` to `end` in chunks of at most CHUNK_RECORDS."""


@dataclass(frozen=True)
class NodeSamples:
    """The records of a node process in memory."""

    role: str
    node: int
    overflow: int
    records: Records

    @property
    def count(self) -> int:
        return len(self.records)

    def chunks(self, begin: int = 0, end: int | None = None) -> Iterator[Records]:
        for first, last in _spans(begin, self.count if end is None else end):
            yield self.records[first:last]


@dataclass(frozen=True)
class SampleFile:
    """The records of a node process, read from its file on demand.

    Each read validates the file again, because a process may have replaced it.
    """

    path: Path
    role: str
    node: int
    overflow: int
    count: int

    def chunks(self, begin: int = 0, end: int | None = None) -> Iterator[Records]:
        """Yield the records in chunks. Raises SampleFileError if the file has changed."""
        due_bytes = HEADER_BYTES + MESSAGE_RECORD.itemsize * self.count
        with _regular(self.path, due_bytes) as (file, file_bytes):
            file.seek(HEADER_BYTES + MESSAGE_RECORD.itemsize * begin)
            for first, last in _spans(begin, self.count if end is None else end):
                data = file.read((last - first) * MESSAGE_RECORD.itemsize)
                if file_bytes != due_bytes or len(data) != (last - first) * MESSAGE_RECORD.itemsize:
                    raise SampleFileError(f"{self.path}: changed while it was read")
                yield self._checked(np.frombuffer(data, MESSAGE_RECORD))

    def _checked(self, records: Records) -> Records:
        """Validate and return `records`. Raises SampleFileError for an undefined kind or flag."""
        for field, most in (("kind", len(KINDS) - 1), ("flags", ALL_FLAGS)):
            if int(records[field].max()) > most:
                raise SampleFileError(
                    f"{self.path}: found a record with {field} = {int(records[field].max())}; "
                    f"allowed: 0 to {most}"
                )
        return records


def _spans(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield consecutive (first, end) ranges of at most CHUNK_RECORDS records."""
    for first in range(begin, end, CHUNK_RECORDS):
        yield first, min(end, first + CHUNK_RECORDS)


def open_samples(
    path: Path,
    seed: int | None = None,
    role: str = "",
    node: int | None = None,
    capacity: int = RECORDS_MAX,
) -> SampleFile:
    """Open a sample file (contract C-24, C-25) and validate its header.

    The header must have the given seed, role and node, and the file at most `capacity` records
    (C-26). Records are validated when they are read. Raises SampleFileError for a file that is too
    short, too long or of another run.
    """
    with _regular(path, HEADER_BYTES + MESSAGE_RECORD.itemsize * capacity) as (file, file_bytes):
        data = file.read(HEADER_BYTES)
    if len(data) < HEADER_BYTES:
        raise SampleFileError(
            f"{path}: the file is shorter than its header ({len(data)} of {HEADER_BYTES} bytes). "
            "The node did not finish writing, so the run cannot be used."
        )
    header = np.frombuffer(data, MESSAGE_HEADER)[0]
    _check_header(path, header, seed)
    identity = ROLES[int(header["role"])], int(header["node"])
    if identity != (role or identity[0], identity[1] if node is None else node):
        raise SampleFileError(
            f"{path}: found records of {identity[0]} {identity[1]}; expected: {role} {node}"
        )
    count, due_bytes = int(header["count"]), HEADER_BYTES + RECORD_BYTES * int(header["count"])
    if file_bytes != due_bytes:
        raise SampleFileError(
            f"{path}: found {file_bytes} bytes; expected: {due_bytes} bytes, because its "
            "header gives "
            f"the number of records as {count}. The file was truncated or extended, so the run "
            "cannot be used."
        )
    return SampleFile(path, *identity, int(header["overflow"]), count)


def read_node_samples(
    path: Path,
    seed: int | None = None,
    role: str = "",
    node: int | None = None,
    capacity: int = RECORDS_MAX,
) -> NodeSamples:
    """Return all records of a sample file. Raises the errors of `open_samples` and `chunks`."""
    file = open_samples(path, seed, role, node, capacity)
    records = np.concatenate([np.empty(0, MESSAGE_RECORD), *file.chunks()])
    return NodeSamples(file.role, file.node, file.overflow, records)


def _check_header(path: Path, header: np.void, seed: int | None) -> None:
    magic = bytes(header["magic"])
    if magic != MAGIC:
        raise SampleFileError(f"{path}: begins with {magic!r}; a sample file begins with {MAGIC!r}")
    expected = {"version": VERSION, "header_bytes": HEADER_BYTES, "record_bytes": RECORD_BYTES}
    expected["clock"] = 1
    for key, value in expected.items():
        if int(header[key]) != value:
            raise SampleFileError(f"{path}: {key} is {int(header[key])}; allowed: {value}")
    if int(header["pad16"]) or int(header["pad32"]) or any(bytes(header["reserved"])):
        raise SampleFileError(f"{path}: damaged; some reserved bytes of the header are not 0")
    if int(header["role"]) >= len(ROLES):
        raise SampleFileError(
            f"{path}: found role {int(header['role'])}; allowed: 0 to {len(ROLES) - 1}"
        )
    if seed is not None and int(header["seed"]) != seed:
        raise SampleFileError(f"{path}: seed {int(header['seed'])} is not this run's seed {seed}")


def read_readings(path: Path) -> npt.NDArray[np.void]:
    """Return the readings in a sampler file, shape (n,), dtype READING_RECORD.

    Raises SampleFileError for another format, an incomplete last record, or a reading that is not
    finite.
    """
    data = path.read_bytes()
    if len(data) < HEADER_BYTES or data[:8] != b"WWSAMPLE":
        raise SampleFileError(
            f"{path}: not a sampler file; it has {len(data)} bytes and begins with {data[:8]!r}"
        )
    version, record_bytes = np.frombuffer(data[8:12], "<u2")
    if (version, record_bytes) != (1, READING_RECORD.itemsize) or any(data[12:HEADER_BYTES]):
        raise SampleFileError(
            f"{path}: found version {version} with {record_bytes} bytes per record; allowed: "
            "version 1 with 24 bytes per record and zeros in the rest of the header"
        )
    records_bytes = len(data) - HEADER_BYTES
    if records_bytes % READING_RECORD.itemsize:
        raise SampleFileError(
            f"{path}: the file is truncated, because its records have {records_bytes} bytes, "
            "which is "
            f"not a multiple of the record size ({READING_RECORD.itemsize} bytes)"
        )
    readings = np.frombuffer(data, READING_RECORD, offset=HEADER_BYTES)
    if not np.isfinite(readings["value"]).all():
        raise SampleFileError(
            f"{path}: a reading is not a finite number; meters write only finite numbers"
        )
    return readings
