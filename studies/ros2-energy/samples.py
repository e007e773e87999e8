"""Reading thousands of small tables at once: samples of power, CPU and memory to one row a file."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from wattwire.imports import SetAside

from . import material

BATCH_BYTES = 48 << 20
"""So much text is parsed at once: enough to keep two cores busy, little to hold."""
PORTION, READERS = 512, 4
"""Files that are read at a time, and how many side by side: most of it is waiting."""
ERRAND = 32
"""Files that a reader is sent for at once: small ones are read sooner than handed over."""
TIME = "%Y-%m-%d %H:%M:%S"
ENERGY_HEADER = b"Date,CPU Utilization,CPU Power"
MEMORY_HEADER = b"run,package,interval,language,exec_time,num_clients,cpu_percentage,memory_usage"
MEMORY_FIELDS = 9
"""A row has the sample's time before what the header names."""
MAP_HEADER = b"exec,label,timestamp,cpu,mem"


@dataclass(frozen=True)
class File:
    """A file of a run; `path` is below the source."""

    kind: str
    folder: str
    run_id: str
    side: str
    path: str


def energy(source: Path, files: Sequence[File]) -> tuple[pl.DataFrame, list[SetAside]]:
    """A row per recording (material.RECORDINGS), and what was left out of them."""

    def refused(data: bytes, header: bytes, body: bytes) -> str:
        known = header == ENERGY_HEADER and bool(body.strip())
        return "" if known else _refused(data, ENERGY_HEADER)

    frame, set_aside = _per_file(source, files, refused, _energy_batch)
    frame = frame.with_columns(rank=pl.lit(None, pl.Int64), picked=pl.lit(None, pl.Boolean))
    set_aside += _energy_left_out(frame)
    frame = material.ranked(frame.filter(pl.col("rows") > 0))
    return frame.select(list(material.RECORDINGS)).cast(material.RECORDINGS), set_aside


def _per_file(
    source: Path,
    files: Sequence[File],
    refused: Callable[[bytes, bytes, bytes], str],
    parse: Callable[[Sequence[tuple[int, bytes]]], pl.DataFrame],
) -> tuple[pl.DataFrame, list[SetAside]]:
    """What `parse` makes of the files' rows, a row per file; and the files that are refused.

    Files are read side by side a portion at a time, and parsed when enough text is together.
    """

    def read(errand: Sequence[File]) -> list[bytes]:
        return [_content(f"{source}/{file.path}") for file in errand]

    set_aside: list[SetAside] = []
    kept: list[File] = []
    parts: list[pl.DataFrame] = []
    batch: list[tuple[int, bytes]] = []
    size = 0
    with ThreadPoolExecutor(READERS) as pool:
        for at in range(0, len(files), PORTION):
            portion = files[at : at + PORTION]
            errands = [portion[i : i + ERRAND] for i in range(0, len(portion), ERRAND)]
            texts = itertools.chain.from_iterable(pool.map(read, errands))
            for file, data in zip(portion, texts, strict=True):
                header, _, body = data.partition(b"\n")
                why = refused(data, header.strip(), body)
                if why:
                    set_aside.append(SetAside(file.path, 0, why))
                    continue
                batch.append((len(kept), body))
                kept.append(file)
                size += len(body)
            if size > BATCH_BYTES:
                parts.append(parse(batch))
                batch, size = [], 0
    parts.append(parse(batch))
    return pl.concat(parts).join(_named(kept), on="file", how="right"), set_aside


def _content(path: str) -> bytes:
    # Without the layers of a file object: they take longer than the reading of a small file.
    handle = os.open(path, os.O_RDONLY)
    try:
        pieces = [os.read(handle, os.fstat(handle).st_size + 1)]
        while pieces[-1]:
            pieces.append(os.read(handle, BATCH_BYTES))
    finally:
        os.close(handle)
    return b"".join(pieces)


def _refused(data: bytes, header: bytes) -> str:
    if not data.strip():
        return "empty file"
    return "a header and no row" if data.startswith(header) else "a header that is not known"


def _named(files: Sequence[File]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "file": range(len(files)),
            "folder": [file.folder for file in files],
            "run_id": [file.run_id for file in files],
            "side": [file.side for file in files],
            "path": [file.path for file in files],
        },
        schema_overrides={"file": pl.Int32, "folder": pl.String, "run_id": pl.String,
                          "side": pl.String, "path": pl.String},
    )  # fmt: skip


def _parsed(
    batch: Sequence[tuple[int, bytes]], fields: Mapping[int, tuple[str, pl.DataType]]
) -> pl.DataFrame:
    """These fields (place in the line -> name, type) of a batch's files, behind the file's number.

    The number goes in front of every line, so that no short, long or blank line can shift rows
    from one file to another. Text where a number belongs becomes null.
    """
    text = io.BytesIO()
    for number, body in batch:
        mark = b"%d," % number
        text.write(mark + body.rstrip(b"\r\n").replace(b"\n", b"\n" + mark) + b"\n")
    text.seek(0)
    named = {"file": pl.Int32(), **dict(fields.values())}
    every = {"file": named["file"]}
    for place in range(max(fields) + 1):
        name, kind = fields.get(place, (f"unread {place}", pl.String()))
        every[name] = kind
    lazy = pl.scan_csv(
        text, has_header=False, schema=every, ignore_errors=True, truncate_ragged_lines=True,
        encoding="utf8-lossy", quote_char=None, glob=False,
    )  # fmt: skip
    return lazy.select(list(named)).collect()


def _energy_batch(batch: Sequence[tuple[int, bytes]]) -> pl.DataFrame:
    fields = {0: ("date", pl.String()), 1: ("cpu", pl.Float64()), 2: ("power", pl.Float64())}
    if not batch:
        return _energy_by_file(pl.DataFrame(schema={"file": pl.Int32(), **dict(fields.values())}))
    return _energy_by_file(_parsed(batch, fields))


def _energy_by_file(rows: pl.DataFrame) -> pl.DataFrame:
    """Per file: as the authors take it, and over the run's time with the time stamps' steps.

    A sample stands for the time since the one before it; the first for one second, which is the
    recorder's period.
    """
    rows = rows.filter(pl.col("date").str.len_bytes() > 0)  # a blank line is no sample
    at = pl.col("date").str.to_datetime(TIME, time_unit="ms", strict=False)
    rows = rows.with_columns(at=at).with_columns(
        power=pl.when(pl.col("at").is_not_null() & pl.col("power").is_finite()).then("power")
    )
    known = rows.filter(pl.col("power").is_not_null()).with_columns(
        since_s=(pl.col("at") - pl.col("at").first().over("file")).dt.total_milliseconds() / 1e3
    )
    step = pl.col("since_s").diff().over("file").fill_null(1.0)
    inside = (pl.col("since_s") >= 0) & (pl.col("since_s") < material.RUN_S)
    known = known.with_columns(step_s=step.clip(lower_bound=0.0), inside=inside)
    below = pl.col("power") < 3.0
    percent = 100.0 * material.CORES
    used = pl.col("inside")
    weight = pl.col("step_s").filter(used)
    per_file = known.group_by("file").agg(
        start=pl.col("at").first(),
        duration_s=pl.col("since_s").last(),
        rows=pl.len().cast(pl.Int64),
        rows_from_3w=(~below).sum().cast(pl.Int64),
        cpu_percent=pl.col("cpu").mean() * percent,
        sum_w=pl.col("power").sum(),
        power_below_3w=pl.col("power").filter(below).mean(),
        power_all_w=pl.col("power").mean(),
        window_s=weight.sum(),
        window_rows=used.sum().cast(pl.Int64),
        window_energy_j=(pl.col("power").filter(used) * weight).sum(),
        window_cpu_percent=(pl.col("cpu").filter(used) * weight).sum() / weight.sum() * percent,
    )
    counts = rows.group_by("file").agg(not_numbers=pl.col("power").null_count().cast(pl.Int64))
    return counts.join(per_file, on="file", how="left").with_columns(pl.col("rows").fill_null(0))


def _energy_left_out(frame: pl.DataFrame) -> list[SetAside]:
    found = []
    columns = ("path", "rows", "not_numbers", "window_rows", "window_s")
    for path, rows, broken, used, window_s in frame.select(columns).iter_rows():
        if not rows:
            found.append(SetAside(path, 0, "no row with a time and a power"))
            continue
        if broken:
            found.append(SetAside(path, broken, "no number: a header line inside the file"))
        if rows > used:
            found.append(SetAside(path, rows - used, "after the run's 180 s"))
        if window_s < material.FULL_SHARE * material.RUN_S:
            found.append(SetAside(path, used, "recording shorter than the run"))
    return found


def memory(source: Path, files: Sequence[File]) -> tuple[pl.DataFrame, list[SetAside]]:
    """A row per node whose resident memory is known (material.MEMORY), and what was left out."""
    frame, set_aside = _per_file(source, files, _no_memory, _memory_batch)
    left_out = frame.filter(pl.col("memory_left_out") > 0)
    for path, count in left_out.select("path", "memory_left_out").iter_rows():
        set_aside.append(SetAside(path, count, "no memory in this row"))
    frame = frame.rename({"path": "memory_path"}).filter(pl.col("memory_rows") > 0)
    return frame.select(list(material.MEMORY)).cast(material.MEMORY), set_aside


def _no_memory(data: bytes, header: bytes, body: bytes) -> str:
    """Why a file tells nothing of the node's memory; empty where it does."""
    if header == MAP_HEADER:
        return "memory is one line of the launcher's map, not the node's"
    if header != MEMORY_HEADER or not body.strip():
        return _refused(data, MEMORY_HEADER)
    fields = body.partition(b"\n")[0].count(b",") + 1
    if fields != MEMORY_FIELDS:
        return f"{fields} fields under eight names: of which process is not told"
    return ""


def _memory_batch(batch: Sequence[tuple[int, bytes]]) -> pl.DataFrame:
    fields = {MEMORY_FIELDS - 1: ("memory", pl.Float64())}
    if batch:
        rows = _parsed(batch, fields)
    else:
        rows = pl.DataFrame(schema={"file": pl.Int32(), **dict(fields.values())})
    known = pl.col("memory").is_finite() & (pl.col("memory") > 0)
    return rows.group_by("file").agg(
        memory_kib=pl.col("memory").filter(known).mean() / 1024,
        memory_all_kib=pl.col("memory").filter(pl.col("memory").is_finite()).mean() / 1024,
        memory_rows=known.sum().cast(pl.Int64),
        memory_left_out=(pl.len() - known.sum()).cast(pl.Int64),
    )
