"""Define the content of the authors' data: planned runs, recordings, memory, unused files."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from wattwire.imports import SetAside

RUN_S = 180.0
"""How long a run lasts: exec_time of every run table."""
FULL_SHARE = 0.9
"""A recording is of full length from this share of a run's time on."""
OVER_S = 200.0
"""A recording longer than this holds more than its run."""
CORES = 8
"""The measured processor's hardware threads: CPU use is told as a share of all of them."""
PATTERNS = {
    "cpp_py_ros2_pub_sub": "topic",
    "cpp_py_ros2_pub_sub_0_1": "topic",
    "cpp_py_ros2_service": "service",
    "cpp_py_ros2_action": "action",
}
"""The experiments' folders, with the pattern of each."""
SIDES = ("server", "client")
"""What files call the two metered nodes, whatever the pattern."""
ROLES = {
    ("topic", "server"): "publisher",
    ("topic", "client"): "subscriber",
    ("service", "server"): "server",
    ("service", "client"): "client",
    ("action", "server"): "action_server",
    ("action", "client"): "action_client",
}
RUN = ["folder", "run_id"]
NODE = ["folder", "run_id", "side"]
TREATMENT = ["pattern", "language", "interval_s", "clients"]

PLANNED = {
    "folder": pl.String,
    "run_id": pl.String,
    "pattern": pl.String,
    "language": pl.String,
    "interval_s": pl.Float64,
    "clients": pl.Int64,
    "repetition": pl.Int64,
    "number": pl.Int64,
    "here": pl.Boolean,
}
"""A row per run of the run tables; `here` says whether its data are at hand."""
RECORDINGS = {
    "folder": pl.String,
    "run_id": pl.String,
    "side": pl.String,
    "path": pl.String,
    "start": pl.Datetime("ms"),
    "duration_s": pl.Float64,
    "rows": pl.Int64,
    "not_numbers": pl.Int64,
    "rows_from_3w": pl.Int64,
    "cpu_percent": pl.Float64,
    "sum_w": pl.Float64,
    "power_below_3w": pl.Float64,
    "power_all_w": pl.Float64,
    "window_s": pl.Float64,
    "window_rows": pl.Int64,
    "window_energy_j": pl.Float64,
    "window_cpu_percent": pl.Float64,
    "rank": pl.Int64,
    "picked": pl.Boolean,
}
"""A row per recording of a node's process.

`rows` are those with a power, `not_numbers` those without. `cpu_percent` (of one core), `sum_w`,
`power_below_3w` and `power_all_w` are over the whole file, as the authors take it; `window_*`
over the run's time only, null where the file's rows cannot be told apart. `rank` counts from the
earliest; `picked` marks the file that the authors' script took, null where that is not known.
"""
MEMORY = {
    "folder": pl.String,
    "run_id": pl.String,
    "side": pl.String,
    "memory_path": pl.String,
    "memory_kib": pl.Float64,
    "memory_all_kib": pl.Float64,
    "memory_rows": pl.Int64,
    "memory_left_out": pl.Int64,
}
"""A row per node and run whose resident memory is known; `memory_all_kib` counts samples of 0."""


@dataclass(frozen=True)
class Material:
    """All that was found below a source; frames have the columns of PLANNED, RECORDINGS, MEMORY.

    `source` says in words what was read; `samples` whether files were, with their time stamps,
    rather than a table of what they come to.
    """

    planned: pl.DataFrame
    recordings: pl.DataFrame
    memory: pl.DataFrame
    set_aside: tuple[SetAside, ...]
    source: str
    samples: bool = True


def full_length() -> pl.Expr:
    """Whether a recording covers the run's time."""
    return pl.col("window_s") >= FULL_SHARE * RUN_S


def ranked(recordings: pl.DataFrame) -> pl.DataFrame:
    """Recordings with their rank inside run and side, earliest first."""
    order = pl.struct("start", "path").rank("ordinal").over(NODE)
    return recordings.with_columns(rank=order.cast(pl.Int64))
