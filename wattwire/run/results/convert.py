"""Convert the processes' binary files into tables."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.deployment import HOST, MEMBER, Deployment, Node, role_of_process, service_of
from wattwire.model.records import (
    CHUNK_RECORDS,
    COUNTER_MASK,
    MESSAGE_RECORD,
    Records,
    SampleFile,
    SampleFileError,
    Samples,
    open_samples,
    read_readings,
)
from wattwire.model.sample_codes import KINDS, UNKNOWN_NS, UNKNOWN_PEER
from wattwire.run.node_specs import RunNode

PROCESS_SCOPE = "process"
FILES_MAX = 1_000
"""Sample files per node: one for each of its processes (C-24)."""
MESSAGE_SCHEMA = {
    "run": pl.String,
    "flow": pl.String,
    "node": pl.UInt16,
    "host": pl.String,
    "sender": pl.UInt16,
    "counter": pl.UInt64,
    "kind": pl.String,
    "peer": pl.UInt16,
    "hop": pl.UInt8,
    "intended_ns": pl.Int64,
    "begin_ns": pl.Int64,
    "end_ns": pl.Int64,
    "bytes": pl.UInt32,
    "flags": pl.UInt8,
}
QUANTITY_SCHEMA = {
    **dict.fromkeys(("run", "host", "process", "process_kind"), pl.String),
    **dict.fromkeys(("scope", "subject", "meter", "quantity", "unit"), pl.String),
    "kind": pl.String,
    "t_ns": pl.Int64,
    "value": pl.Float64,
}


def open_all_samples(folder: Path, nodes: Sequence[RunNode]) -> dict[int, list[Samples]]:
    """Return node number → samples of each file, for nodes that wrote files.

    Raise SampleFileError if a file is invalid.
    """
    samples_by_node: dict[int, list[Samples]] = {}
    for node in nodes:
        files: list[Samples] = [_open_samples(path, node) for path in _files_of(folder, node)]
        if files:
            samples_by_node[node.node] = files
    return samples_by_node


def _files_of(folder: Path, node: RunNode) -> list[Path]:
    """Return the sample files of a node. Each part of a member has one, with its number (C-42)."""
    files = sample_files(folder, node.process)
    if role_of_process(node.process) != MEMBER:
        return files
    return [path for path in files if path.name == f"samples-{node.node}.bin"]


def sample_files(folder: Path, process: str) -> list[Path]:
    """Return the sample files of a node (C-24).

    Raise SampleFileError if the node replaced its folder or wrote too many files.
    """
    out = folder / "out" / process
    if out.is_symlink():
        raise SampleFileError(f"{out}: C-24: the node replaced its folder with a link")
    files = [out / "samples.bin", *itertools.islice(out.glob("samples-*.bin"), FILES_MAX)]
    if len(files) > FILES_MAX:
        raise SampleFileError(f"{out}: C-24: found more than {FILES_MAX:,} sample files")
    return [path for path in sorted(files) if os.path.lexists(path)]


def _open_samples(path: Path, node: RunNode) -> SampleFile:
    spec = node.spec
    try:
        file = open_samples(
            path, spec["payload.seed"], node.role, node.node, spec["record.capacity"]
        )
        for _ in file.chunks():  # reading a file also checks it
            pass
        return file
    except SampleFileError as error:
        raise SampleFileError(f"C-24: {error}") from error


def messages_frame(
    run: str, deployment: Deployment, samples: Mapping[int, Sequence[Samples]]
) -> pl.DataFrame:
    """Return all records of a run (MESSAGE_SCHEMA). Unknown times, peers and flows are null."""
    return pl.concat(
        [pl.DataFrame(schema=MESSAGE_SCHEMA), *message_batches(run, deployment, samples)]
    )


def message_batches(
    run: str, deployment: Deployment, samples: Mapping[int, Sequence[Samples]]
) -> Iterator[pl.DataFrame]:
    """Yield all records of a run in batches, sorted by node, end and counter.

    Records with an unknown end are last. At any time, memory contains only two columns of one node
    and one batch of its records.
    """
    for node in sorted(deployment.nodes, key=lambda node: node.node):
        files = samples.get(node.node, ())
        order = _order(files)
        for begin in range(0, len(order), CHUNK_RECORDS):
            records = _records_at(files, order[begin : begin + CHUNK_RECORDS])
            yield _frame(run, deployment, node, records)


def _order(files: Sequence[Samples]) -> npt.NDArray[np.int64]:
    """Return the indices of a node's records in all its files, sorted by end and counter."""
    ends_ns = np.empty(sum(file.count for file in files), np.int64)
    counters = np.empty(len(ends_ns), np.uint64)
    begin = 0
    for records in itertools.chain.from_iterable(file.chunks() for file in files):
        end = begin + len(records)
        ends_ns[begin:end] = records["end_ns"]
        counters[begin:end] = records["seq"] & np.uint64(COUNTER_MASK)
        begin = end
    ends_ns[ends_ns == UNKNOWN_NS] = np.iinfo(np.int64).max
    return np.lexsort((counters, ends_ns))


def _records_at(files: Sequence[Samples], indices: npt.NDArray[np.int64]) -> Records:
    """Return the records at these indices.

    Files are almost sorted, so only a few chunks are read.
    """
    selected = np.empty(len(indices), MESSAGE_RECORD)
    first = 0
    for file in files:
        chunk_numbers = (indices - first) // CHUNK_RECORDS
        in_file = (indices >= first) & (indices < first + file.count)
        for chunk_number in np.unique(chunk_numbers[in_file]):
            in_chunk = in_file & (chunk_numbers == chunk_number)
            begin = int(chunk_number) * CHUNK_RECORDS
            (records,) = file.chunks(begin, min(file.count, begin + CHUNK_RECORDS))
            selected[in_chunk] = records[indices[in_chunk] - first - begin]
        first += file.count
    return selected


def _frame(run: str, deployment: Deployment, node: Node, records: Records) -> pl.DataFrame:
    # Only steps of NumPy and of single series: for a few thousand records, expressions of Polars
    # would take longer than all other steps.
    count = len(records)
    senders = (records["seq"] >> np.uint64(48)).astype(np.uint16)
    flows = list(deployment.flow_names.items())
    flow_numbers = np.full(np.iinfo(np.uint16).max + 1, len(flows), np.uint32)
    flow_numbers[[sender for sender, _ in flows]] = np.arange(len(flows))
    flow_names = pl.Series([*(name for _, name in flows), None], dtype=pl.String)
    columns = {
        "run": pl.Series([run]).new_from_index(0, count),
        "flow": flow_names.gather(flow_numbers[senders]),
        "node": np.full(count, node.node, np.uint16),
        "host": pl.Series([deployment.host_of(node)]).new_from_index(0, count),
        "sender": senders,
        "counter": records["seq"] & np.uint64(COUNTER_MASK),
        "kind": pl.Series(np.array(KINDS, dtype=object)[records["kind"]], dtype=pl.String),
        "peer": known(records["peer"], UNKNOWN_PEER),
        "hop": np.full(count, node.hop, np.uint8),
        **{
            name: known(records[name], UNKNOWN_NS) for name in ("intended_ns", "begin_ns", "end_ns")
        },
        "bytes": records["bytes"].copy(),
        "flags": records["flags"].copy(),
    }
    return pl.DataFrame(columns, schema=MESSAGE_SCHEMA)


def known(values: npt.NDArray[Any], unknown: int) -> pl.Series:
    """Return the values of a column, with null for unknown ones."""
    return pl.Series(values.copy()).set(pl.Series(values == unknown), None)


def quantities_frame(
    run: str, deployment: Deployment, path: Path, series: list[dict[str, Any]], host: str = HOST
) -> pl.DataFrame:
    """Return a host's readings as a long table (QUANTITY_SCHEMA), in the order of its series.

    For readings of a process, `process` is its name in the deployment, which a restarted service
    keeps, and `process_kind` is its kind there. Other readings have null.
    """
    readings = read_readings(path)
    unknown = np.setdiff1d(readings["series"], [int(entry["series"]) for entry in series])
    if len(unknown):
        raise SampleFileError(
            f"{path}: contains readings of series {unknown[0]}, which is not declared"
        )
    table = pl.DataFrame(
        {
            "series": pl.Series([int(entry["series"]) for entry in series], dtype=pl.UInt32),
            **{
                name: [str(entry[name]) for entry in series]
                for name in ("scope", "subject", "meter", "quantity", "unit", "kind")
            },
            **_owners(deployment, series),
        }
    )
    values = pl.DataFrame(
        {
            "series": readings["series"].copy(),
            "t_ns": readings["t_ns"].copy(),
            "value": readings["value"].copy(),
        }
    )
    return (
        values.join(table, on="series", how="inner")
        .select(
            pl.lit(run).alias("run"),
            pl.lit(host).alias("host"),
            "process",
            "process_kind",
            "scope",
            "subject",
            "meter",
            "quantity",
            "unit",
            "kind",
            "t_ns",
            "value",
        )
        .sort("meter", "quantity", "subject", "t_ns")
    )


def _owners(deployment: Deployment, series: list[dict[str, Any]]) -> dict[str, pl.Series]:
    """Return the process and its kind of each series."""
    processes = [
        deployment.by_process.get(service_of(_process_of(entry)))
        if entry["scope"] == PROCESS_SCOPE
        else None
        for entry in series
    ]
    values: dict[str, list[str | None]] = {
        "process": [process.name if process else None for process in processes],
        "process_kind": [process.kind if process else None for process in processes],
    }
    return {name: pl.Series(owners, dtype=pl.String) for name, owners in values.items()}


def _process_of(series: Mapping[str, Any]) -> str:
    """Return the process of a series, whose subject may also name a CPU."""
    return str(series.get("info", {}).get("process", series["subject"]))
