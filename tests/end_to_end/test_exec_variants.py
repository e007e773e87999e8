"""Test that `exec` finds what became worse between two commands, and is silent about equal ones."""

from __future__ import annotations

import json
import shlex
import sys

import polars as pl
import pytest

from bench.relay_variants import RELAY

pytestmark = pytest.mark.slow


@pytest.mark.quiet
@pytest.mark.parametrize(
    ("head_ms", "verdicts"),
    [
        (4, {"worse"}),
        pytest.param(3, {"not worse", "cannot tell"}, marks=pytest.mark.matrix),
    ],
)
def test_a_relay_with_more_work_is_worse_and_an_equal_one_is_not(cli, head_ms, verdicts):
    relay = shlex.join([sys.executable, "-S", str(RELAY)])
    result = cli(
        "exec", "--json", "--campaign", "out", "--no-report", "--baseline", "0.1s", "--repeat", "4",
        "--for", "0.8s", "--warmup", "0.2s", "--value-from", r"p50_ms=([\d.]+)", "--margin", "12%",
        "--variant", f"base={relay} 3", "--variant", f"head={relay} {head_ms}",
    )  # fmt: skip
    comparison = json.loads(result.out.splitlines()[-1])
    assert comparison["verdict"] in verdicts, comparison["first_line"]
    assert result.code == {"worse": 1, "not worse": 0, "cannot tell": 5}[comparison["verdict"]]
    items = {item["response"]: item for item in comparison["items"]}
    assert {"cpu_s", "value.p50_ms"} < {*items}
    assert items["cpu_s"]["noise_factor"] >= 1.0
    rows = pl.read_parquet(cli.folder / "out" / "summary.parquet", glob=False)
    design = rows.filter(pl.col("control") == "")
    for name, work_ms in (("base", 3), ("head", head_ms)):
        own = design.filter(pl.col("factor.variant") == name)
        # The start of the interpreter is in the warm-up; 40 messages need 3 or 4 ms each.
        assert own["value.p50_ms"].min() >= work_ms
        assert own["cpu_s"].max() < 3 * 40 * work_ms / 1e3


FIGURES = """
import os, sys
with open(sys.argv[1], "a") as file:
    file.write("x")
print("score: 90 points\\nscore: 50 points\\nlate_ms=1\\nlate_ms=nan", file=sys.stderr)
"""


def test_printed_figures_are_gated_by_their_direction_and_by_limits(cli, tmp_path):
    def scoring(name: str, score: int) -> str:
        code = FIGURES.replace("50", str(score))
        return shlex.join([sys.executable, "-S", "-c", code, str(tmp_path / name)])

    result = cli(
        "exec", "--campaign", "out", "--baseline", "0.1s", "--repeat", "3", "--warmup", "2runs",
        "--value-from", r"score=score: (\d+)", "--value-from", "late_ms",
        "--response", "value.score", "--response", "wall_s",
        "--higher-is-better", "score", "--max", "memory_peak_kib=1", "--min", "value.score=45",
        "--max", "value.late_ms=3", "--variant", f"base={scoring('b', 60)}",
        "--variant", f"head={scoring('h', 50)}",
    )  # fmt: skip
    assert result.code == 1, result.err
    output = " ".join(result.out.split())
    assert "score" in output and "0.833 times" in output
    assert "which is not a finite number" in result.err
    assert "late_ms has no value in any repeat" in output
    # Two rounds of settling runs, and three blocks of both variants and three control runs.
    assert [len((tmp_path / name).read_text()) for name in "bh"] == [2 + 3 * 4, 2 + 3]
    assert "a run of the warm-up, which no value includes: variant=" in result.err
    compared = cli("compare", "out", "--json")
    document = json.loads(compared.out)
    verdicts = {item["response"]: item["verdict"] for item in document["items"]}
    assert verdicts["value.score"] == "worse" and "window_s" in verdicts
    limits = {limit["limit"].split()[0]: limit["verdict"] for limit in document["limits"]}
    assert sorted(limits.values()) == ["broken", "cannot tell", "holds"], document["limits"]
    table = cli("status", "out").out
    assert "4 of 4 settling runs" in table


def test_a_limit_on_one_command_sets_the_exit_code(cli):
    command = ("--", "sh", "-c", "echo p50_ms=4.5")
    limited = ("exec", "--baseline", "0.1s", "--repeat", "3", "--value-from", "p50_ms",
               "--no-report", "--junit", "junit.xml")  # fmt: skip
    broken = cli(*limited, "--out", "a", "--max", "value.p50_ms=4", *command)
    assert broken.code == 1 and "broken" in broken.out, broken.err
    assert "<failure" in (cli.folder / "junit.xml").read_text()
    held = cli(*limited, "--out", "b", "--max", "value.p50_ms=5", *command)
    assert held.code == 0, held.out + held.err
    undecided = cli(
        *limited, "--out", "c", "--max", "latency_p50_us=5", "--warmup", "1run", *command
    )
    assert undecided.code == 5, undecided.out
    refused = cli("compare", "a", "c")
    assert refused.code == 2 and "exec.warmup_runs: 0 against 1" in refused.err
