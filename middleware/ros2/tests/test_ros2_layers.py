"""`exec --layers` on unmodified nodes of rclpy and rclcpp: messages, layers, paths and delays."""

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

import polars as pl
import pytest

from bench.recorded_layers.delays import PLACES, planted
from middleware.ros2.tests.graph_kills import ros_build
from middleware.ros2.tests.installations import GRAPH_CPP, built_cpp_nodes
from wattwire.model.errors import MissingError
from wattwire.model.layers import LAYERS
from wattwire.rig import CellBuild
from wattwire.rig.builds import merge_env
from wattwire.store import Campaign

# The latencies of two runs are compared, or those of the tool and of the scripts within 2 %.
pytestmark = pytest.mark.quiet

ROOT = Path(__file__).resolve().parents[3]
LAUNCH = Path(__file__).parent / "graph" / "launch.sh"
MESSAGES = 150
WORK_NS = 3_000_000
COLUMNS = [layer.column for layer in LAYERS]
DELAY_NS = 1_300_000


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> CellBuild:
    try:
        return ros_build(tmp_path_factory.mktemp("agent"))
    except MissingError as reason:
        pytest.skip(str(reason))


class Measured:
    """The results of one `exec --layers`."""

    def __init__(self, folder: Path, result: subprocess.CompletedProcess[str]) -> None:
        assert result.returncode == 0, result.stderr
        run = max(folder.glob("runs/*"))  # the last attempt
        self.json = json.loads(result.stdout)
        self.document = json.loads((run / "run.json").read_text())["layers"]
        self.frame = pl.read_parquet(run / "layers.parquet", glob=False)
        campaign = Campaign(folder)
        (self.row,) = campaign.summary().to_dicts()
        campaign.close()
        self.left = [path.name for path in run.iterdir() if path.name == "layers"]
        log = (run / "logs" / "command.out").read_text()
        self.sent = int(re.findall(r"talker sent (\d+)", log)[0])
        self.passed = int(re.findall(r"relay passed (\d+)", log)[0])
        self.ages_ns = [int(age) for age in re.findall(r"ages_ns([ \d]*)", log)[0].split()]

    def median_ns(self, topic: str, column: str) -> float:
        return float(self.frame.filter(pl.col("topic") == topic)[column].median())


@pytest.fixture(scope="module", params=["rclpy", "rclcpp"])
def launch(
    request: pytest.FixtureRequest, build: CellBuild, tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """Return the command that starts the three nodes, without the number of messages."""
    if request.param == "rclpy":
        return [str(LAUNCH), build.words["python"]]
    node = built_cpp_nodes(build, tmp_path_factory.mktemp("nodes"))
    return [str(GRAPH_CPP / "launch.sh"), str(node)]


@pytest.fixture(scope="module")
def measure(launch: list[str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Measured]:
    def run(**variables: str) -> Measured:
        folder = tmp_path_factory.mktemp("layers") / "campaign"
        domain = str(1 + secrets.randbelow(100))
        options = ["--layers", "--json", "--no-report", "--for", "60s", "--baseline", "0.4s"]
        command = [*launch, str(MESSAGES)]
        result = subprocess.run(
            [sys.executable, "-m", "wattwire", "exec", *options, "-o", str(folder), "--", *command],
            env={**os.environ, "ROS_DOMAIN_ID": domain, **variables}, cwd=ROOT,
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
    not_taken = {row["topic"]: row["not_taken"] for row in plain.document["topics"]
                 if row["receiver"] is not None}  # fmt: skip
    assert not_taken["/chatter"] == plain.sent - plain.passed - plain.document["early"]
    assert not_taken["/relayed"] == plain.passed - len(plain.ages_ns)
    assert plain.document["reasons"] == []
    assert {row["topic"] for row in plain.json["layers"]["topics"]} == {"/chatter", "/relayed"}
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
    # The minimum, because on a busy machine the relay also waits for a CPU.
    assert WORK_NS <= work_ns.min() < 2 * WORK_NS
    assert path["p50_ns"] == pytest.approx(statistics.median(plain.ages_ns), rel=0.02)
    row = plain.row
    assert row["value.chatter_to_relayed_path_p50_us"] == pytest.approx(path["p50_ns"] / 1000)
    assert row["value.chatter_to_relayed_path_p95_us"] == pytest.approx(path["p95_ns"] / 1000)
    hop_us = plain.median_ns("/chatter", "latency_ns") / 1000
    assert row["value.chatter_hop_p50_us"] == pytest.approx(hop_us)


def _rows(frame: pl.DataFrame, topic: str) -> list[int]:
    return [row for row, name in enumerate(frame["topic"]) if name == topic]


@pytest.mark.parametrize("layer", ["rmw_publish", "executor", "dds_take"])
def test_a_planted_delay_appears_in_its_layer_alone(
    layer: str,
    plain: Measured,
    measure: Callable[..., Measured],
    build: CellBuild,
    tmp_path: Path,
) -> None:
    (place,) = (place for place in PLACES if place.layer == layer)
    symbols = place.symbols(merge_env(dict(os.environ), build.env))
    delayed = measure(**planted(tmp_path, place, symbols, DELAY_NS))
    shifts = {
        column: delayed.median_ns("/chatter", column) - plain.median_ns("/chatter", column)
        for column in COLUMNS
        if plain.frame[column].null_count() == 0
    }
    own = shifts.pop(f"{layer}_ns")
    assert own > 0.9 * DELAY_NS
    assert {name: ns for name, ns in shifts.items() if ns > own / 2} == {}
