"""Read the records of a run in parts that fit in memory.

Every count and latency depends on a single (sender, counter). Each counter is in only one part, so
the results of the parts add up to the result of the whole run.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wattwire.model import LazyModule
from wattwire.model.hosts.clocks import ONE_CLOCK, NodeClocks
from wattwire.store.files import readable_table, regular, scan_table

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LazyModule("polars")

PART_RECORDS = 1 << 18
"""Approximate records per part; in use, a part takes ten times the memory of its columns."""
COUNTERS_PER_BUCKET = 1 << 12
COLUMNS = (
    "node", "sender", "counter", "kind", "intended_ns", "begin_ns", "end_ns", "bytes", "flags",
)  # fmt: skip
"""The columns required for counts, latencies and throughput."""
_ORIGIN = ("node", "sender", "kind")


def together(paths: Sequence[Path]) -> pl.DataFrame | None:
    """Return the records of several short runs, with the index of each record's file in `file`.

    One scan of all files takes a fraction of the time of a scan per file. The result is None if the
    files cannot be read together; reading each of them then gives the reason.
    """
    index_of = {str(regular(path)): index for index, path in enumerate(paths)}
    try:
        frame = pl.scan_parquet(list(index_of), glob=False, include_file_paths="file")
        schema = frame.collect_schema()
        known = frame.select([name for name in COLUMNS if name in schema] + ["file"])
        file = pl.col("file").replace_strict(index_of, return_dtype=pl.Int64)
        return known.with_columns(file).collect()
    except (pl.exceptions.PolarsError, OSError):
        return None


class Messages:
    """The records of one run in the order of its file, with only the columns COLUMNS."""

    def __init__(
        self, frame: pl.LazyFrame, part_records: int = PART_RECORDS, path: Path = Path("messages")
    ) -> None:
        schema = frame.collect_schema()
        self._frame = frame.select([name for name in COLUMNS if name in schema])
        self._part_records, self._path = part_records, path
        self._clocks = ONE_CLOCK
        # Records that fit into one part are read and counted at once.
        head = self._frame.head(part_records + 1).collect()
        self._whole = head if head.height <= part_records else None
        self.count = (
            head.height if self._whole is not None else int(frame.select(pl.len()).collect().item())
        )

    @classmethod
    def of(cls, frame: pl.DataFrame, part_records: int = PART_RECORDS) -> Messages:
        """Return the messages of a frame in memory."""
        return cls(frame.lazy(), part_records)

    @classmethod
    def at(cls, path: Path, part_records: int = PART_RECORDS) -> Messages:
        """Return the messages of a file. Raise UsageError if it is damaged or missing."""
        with readable_table(path):
            return cls(scan_table(path), part_records, path)

    def on_one_clock(self, clocks: NodeClocks) -> Messages:
        """Return the same messages with all times on the reference clock of `clocks`."""
        converted = copy.copy(self)
        converted._clocks = clocks
        return converted

    @functools.cached_property
    def origins(self) -> frozenset[tuple[int, int, str]]:
        """Return the distinct (node, sender, kind) of all records."""
        records = self._buckets if self._whole is None else self._whole
        return frozenset(records.select(_ORIGIN).unique().iter_rows())

    def parts(self) -> Iterator[pl.DataFrame]:
        """Yield frames of all records by ascending counters; each counter is in one frame.

        The times are those of the file, or of one clock (`on_one_clock`).
        """
        if self._whole is not None:
            yield self._clocks.converted(self._whole)
            return
        for low, high in self._spans():
            with readable_table(self._path):
                part = self._frame.filter(pl.col("counter").is_between(low, high)).collect()
            yield self._clocks.converted(part)

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last counter of each part.

        A part consists of as many buckets as fit, but at least one bucket.
        """
        sizes = self._buckets.group_by("bucket").agg(pl.col("records").sum()).sort("bucket")
        low, high, records = None, 0, 0
        for bucket, added in sizes.select("bucket", "records").iter_rows():
            if low is not None and records + added > self._part_records:
                yield low, high
                low, records = None, 0
            low = bucket * COUNTERS_PER_BUCKET if low is None else low
            high, records = (bucket + 1) * COUNTERS_PER_BUCKET - 1, records + added
        if low is not None:
            yield low, high

    @functools.cached_property
    def _buckets(self) -> pl.DataFrame:
        """Return the number of records for each origin and each bucket of counters."""
        keys = (*_ORIGIN, "bucket")
        keys_frame = self._frame.select(
            *_ORIGIN, bucket=(pl.col("counter") // COUNTERS_PER_BUCKET).cast(pl.UInt64)
        )
        with readable_table(self._path):
            counts = [
                keys_frame.slice(begin, self._part_records).collect().group_by(keys).len("records")
                for begin in range(0, max(1, self.count), self._part_records)
            ]
        return pl.concat(counts).group_by(keys).agg(pl.col("records").sum())
