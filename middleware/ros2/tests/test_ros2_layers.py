"""`exec --layers` on three unmodified rclpy scripts: their messages, layers, paths and delays."""

from __future__ import annotations

import json
import os
import re
import secrets
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.model.layers import LAYERS
from wattwire.rig import AgentClient, Builder

ROOT = Path(__file__).resolve().parents[3]
LAUNCH = Path(__file__).parent / "graph" / "launch.sh"
MESSAGES = 150
WORK_NS = 3_000_000
COLUMNS = [layer.column for layer in LAYERS]
DELAY_NS = 1_300_000
DELAYS = {
    "rmw_publish": ("rmw_publish", 3),
    "dds_take": (
        "_ZN8eprosima7fastdds3dds10DataReader4takeERNS1_18LoanableCollectionERNS1_16Loanable"
        "SequenceINS1_10SampleInfoESt17integral_constantIbLb1EEEEittt",
        7,
    ),
    "rcl_take": ("rcl_take", 4),
}
"""Layer → a function within it, and the number of its arguments."""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the Python of the environment of ROS 2."""
    client = AgentClient(tmp_path_factory.mktemp("agent"))
    try:
        return Builder(client).cell(Catalog([ROOT]).cell("ros2/python")).argv[0]
    except MissingError as reason:
        pytest.skip(str(reason))
    finally:
        client.close()


class Measured:
    """The results of one `exec --layers`."""

    def __init__(self, folder: Path, result: subprocess.CompletedProcess[str]) -> None:
        assert result.returncode == 0, result.stderr
        (run,) = folder.glob("runs/*")
        self.json = json.loads(result.stdout)
        self.document = json.loads((run / "run.json").read_text())["layers"]
        self.frame = pl.read_parquet(run / "layers.parquet")
        self.left = [path.name for path in run.iterdir() if path.name == "layers"]
        log = (run / "logs" / "command.out").read_text()
        self.sent = int(re.findall(r"talker sent (\d+)", log)[0])
        self.passed = int(re.findall(r"relay passed (\d+)", log)[0])
        self.ages_ns = [int(age) for age in re.findall(r"ages_ns([ \d]*)", log)[0].split()]

    def median_ns(self, topic: str, column: str) -> float:
        return float(self.frame.filter(pl.col("topic") == topic)[column].median())


@pytest.fixture(scope="module")
def measure(python: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Measured]:
    def run(**variables: str) -> Measured:
        folder = tmp_path_factory.mktemp("layers") / "campaign"
        domain = str(1 + secrets.randbelow(100))
        options = ["--layers", "--json", "--no-report", "--baseline", "0.4s", "-o", str(folder)]
        command = [str(LAUNCH), python, str(MESSAGES)]
        result = subprocess.run(
            [sys.executable, "-m", "wattwire", "exec", *options, "--", *command],
            env={**os.environ, "ROS_DOMAIN_ID": domain, "PYTHONPATH": str(ROOT), **variables},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return Measured(folder, result)

    return run


@pytest.fixture(scope="module")
def plain(measure: Callable[..., Measured]) -> Measured:
    return measure()


def test_every_message_of_the_scripts_is_seen_with_all_marks(plain: Measured) -> None:
    counts = dict(plain.frame.group_by("topic").len().iter_rows())
    assert plain.sent == MESSAGES
    assert counts == {"/chatter": plain.passed, "/relayed": len(plain.ages_ns)}
    assert not plain.frame["unmarked"].any()
    assert plain.document["lost_events"] == 0 and plain.document["absent"] == {}
    published = {row["topic"]: row["published"] for row in plain.document["topics"]}
    assert published["/chatter"] == plain.sent and published["/relayed"] == plain.passed
    assert plain.left == []


def test_the_layers_of_each_message_add_up_to_its_latency_to_the_nanosecond(
    plain: Measured,
) -> None:
    assert (plain.frame.select(pl.sum_horizontal(COLUMNS)).to_series()
            == plain.frame["latency_ns"]).all()  # fmt: skip
    times = plain.frame.select(COLUMNS)
    assert times.select(pl.min_horizontal(pl.all().min())).item() >= 0


def test_the_relays_work_is_in_the_relay_and_the_path_has_the_scripts_latency(
    plain: Measured,
) -> None:
    (path,) = (path for path in plain.document["paths"] if len(path["topics"]) == 2)
    assert path["nodes"] == ["/talker", "/relay", "/listener"]
    assert path["topics"] == ["/chatter", "/relayed"]
    assert path["started_by"] == "timer"
    assert path["messages"] == len(plain.ages_ns)
    chatter = plain.frame.filter(pl.col("topic") == "/chatter")
    relayed = plain.frame.filter(pl.col("topic") == "/relayed")
    ends = chatter["end_ns"].to_numpy()
    rows = {row: at for at, row in enumerate(_rows(plain.frame, "/chatter"))}
    taken_ns = ends[[rows[cause] for cause in relayed["cause"]]]
    work_ns = relayed["begin_ns"].to_numpy() - taken_ns
    assert work_ns.min() >= WORK_NS
    assert statistics.median(work_ns.tolist()) < 2 * WORK_NS
    assert path["p50_ns"] == pytest.approx(statistics.median(plain.ages_ns), rel=0.02)


def _rows(frame: pl.DataFrame, topic: str) -> list[int]:
    return [row for row, name in enumerate(frame["topic"]) if name == topic]


def delaying_library(folder: Path, symbol: str, arguments: int) -> Path:
    """Return a library that spins for DELAY_NS in the talker and listener's calls of a function."""
    names = ", ".join(f"a{at}" for at in range(arguments))
    parameters = ", ".join(f"long a{at}" for at in range(arguments))
    source = folder / "delay.c"
    source.write_text(
        f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static void *real;
static long now(void) {{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}}
static int look(struct dl_phdr_info *info, size_t size, void *found) {{
  (void)size;
  if (real || !strstr(info->dlpi_name, ".so") || strstr(info->dlpi_name, "delay") ||
      strstr(info->dlpi_name, "layerprof")) return 0;
  void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle) real = dlsym(handle, "{symbol}");
  return 0;
}}
long {symbol}({parameters}) {{
  if (!real) dl_iterate_phdr(look, 0);
  long end = now() + atol(getenv("PLANTED_NS"));
  while (now() < end) {{}}
  return ((long (*)({parameters}))real)({names});
}}
"""
    )
    library = folder / "libdelay.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"], check=True
    )
    return library


@pytest.mark.parametrize("layer", DELAYS)
def test_a_planted_delay_appears_in_its_layer_alone(
    layer: str, plain: Measured, measure: Callable[..., Measured], tmp_path: Path
) -> None:
    library = delaying_library(tmp_path, *DELAYS[layer])
    delayed = measure(LD_PRELOAD=str(library), PLANTED_NS=str(DELAY_NS))
    shifts = {
        column: delayed.median_ns("/chatter", column) - plain.median_ns("/chatter", column)
        for column in COLUMNS
        if plain.frame[column].null_count() == 0
    }
    own = shifts.pop(f"{layer}_ns")
    others: dict[str, Any] = {k: v for k, v in shifts.items() if v > own / 2}
    assert own > 0.95 * DELAY_NS
    assert others == {}
