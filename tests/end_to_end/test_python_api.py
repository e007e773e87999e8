"""Test that the examples of docs/python.md run unchanged on a measured campaign."""

from __future__ import annotations

import re
import sys
from typing import Any

import polars as pl
import pytest

from wattwire.catalog import home
from wattwire.model.metrics import ENERGY, METRICS, SYSTEM_CALLS

pytestmark = pytest.mark.slow
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_example_computes_what_the_summary_holds(cli, mini, tmp_path):
    assert cli("run", mini, "--campaign", tmp_path / "c", "--plain", "--no-report").code == 0
    page = (home() / "docs" / "python.md").read_text(encoding="utf-8")
    code = "".join(BLOCK.findall(page)).replace('"my-campaign"', repr(str(tmp_path / "c")))
    values: dict[str, Any] = {}
    exec(compile(code, "docs/python.md", "exec"), values)  # code of our documentation
    summary = pl.read_parquet(tmp_path / "c" / "summary.parquet", glob=False)
    assert values["medians"].height == summary["factor.pattern"].n_unique() == 3
    by_pattern = dict(values["medians"][["factor.pattern", "latency_p50_us"]].rows())
    (topic,) = summary.filter((pl.col("factor.pattern") == "topic") & pl.col("used")).to_dicts()
    assert by_pattern["topic"] == topic["latency_p50_us"]
    # Derived metrics are stored with measured metrics.
    assert topic["time_us_per_message"] == pytest.approx(1e6 / topic["rate_hz_achieved"])
    # The median of 20 messages is the tenth by rank, not the mean of two messages.
    assert sorted(values["latency_us"])[9] == topic["latency_p50_us"]


def test_every_column_that_is_written_is_described_and_every_metric_is_written(cli, mini, tmp_path):
    """The written columns and the registered metrics must agree."""
    closed = ("--set", "loop=closed", "--set", "count=20", "--set", 'pattern=["service"]')
    for name, changes in (("open", ()), ("closed", closed)):
        done = cli("run", mini, "--campaign", tmp_path / name, "--plain", "--no-report", *changes)
        assert done.code == 0, done.err
    code = "import time\nfor n in range(8): print('received', n, flush=True); time.sleep(0.2)"
    options = ("--for", "3s", "--count-from", r"received (?P<n>\d+)", "--no-report")
    command = ("--", sys.executable, "-c", code)
    assert cli("exec", "--out", tmp_path / "command", *options, *command).code == 0
    names = ("open", "closed", "command")
    frames = [pl.read_parquet(tmp_path / name / "summary.parquet", glob=False) for name in names]
    written = {column.split(".")[0] for frame in frames for column in frame.columns}
    assert written <= set(METRICS)
    absent = {
        name
        for name, metric in METRICS.items()
        if name not in written and metric.needs not in (ENERGY, SYSTEM_CALLS)
    }
    absent -= {"relay_time_p50_us"}  # written for pipelines only
    absent -= {"value"}  # written only for figures that a command prints (--value-from)
    # These are written only for cells with an emulated device.
    absent -= {"emulated_device", "instructions_per_block"}
    # These are written only for flows between hosts, over emulated links, or with such services.
    absent -= {"clock_band_us", "emulator_cpu_share", "inner_frames", "service_counter"}
    absent -= {"link_late_p99_ms", "link_lost_share", "link_queue_full_share"}
    # These are written only for studies with a drive.
    absent -= {name for name in METRICS if name.startswith(("drift_", "drive_end_", "commands_"))}
    absent -= {"watchdog_stops"}
    # These are written only for runs that prove security, and for meters outside the machine.
    absent -= {"uninvited_received", "uninvited_delivered", "fill_on_link"}
    absent -= {"energy_source_second", "energy_too_short"}
    # Metrics without a sensor on this machine, and estimates that need a processor model.
    assert absent <= {
        "temperature_celsius", "energy_estimate_low_j", "energy_estimate_high_j",
        "datagrams_dropped", "datagrams_unassembled",
    }  # fmt: skip
