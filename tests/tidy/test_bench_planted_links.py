"""Test the computations of the bench of planted links."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.rigs.planted_links import (
    FRAME_BYTES,
    RIG,
    Values,
    estimate,
    estimate_above,
    half_width,
    holds,
    logged_values,
    messages_only,
    read_journal,
    table,
    toml,
    verdict_of,
)
from wattwire.catalog.manifest import tomllib
from wattwire.rig.emulator_log import RECORD, Fate


def records(delays_ms: list[int], fates: list[Fate]) -> np.ndarray:
    log = np.zeros(len(fates), RECORD)
    log["in_ns"] = 10**9 + np.arange(len(fates)) * 10**6
    log["out_ns"] = log["in_ns"] + np.array(delays_ms, np.uint64) * np.uint64(10**6)
    log["fate"], log["size_bytes"] = fates, FRAME_BYTES
    return log


def test_the_log_gives_delay_variation_loss_and_rate_of_delivered_frames() -> None:
    lost, ok = Fate.RANDOM_LOSS, Fate.DELIVERED
    values = logged_values(records([20, 0, 22, 27], [ok, lost, ok, ok]))
    assert values["delay"] == pytest.approx(23_000)
    assert values["delay variation"] == pytest.approx(2_000)
    assert values["loss share"] == 0.25
    assert values["rate"] == pytest.approx(2 * FRAME_BYTES * 8 / 10e3)  # 2 frames in 10 ms


def test_frames_of_other_kinds_and_directions_are_no_messages() -> None:
    log = records([1, 1, 1], [Fate.DELIVERED] * 3)
    log["size_bytes"][0], log["source"][1] = 42, 1
    assert messages_only(log).tolist() == log[2:].tolist()


def test_an_interval_is_that_of_the_report_over_runs() -> None:
    value = estimate(Values(np.exp([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])))
    error = 4.302653 / 3**0.5  # t quantile of 2 degrees of freedom; sd 1
    assert np.log([value["low"], value["high"]]) == pytest.approx([2 - error, 2 + error])
    assert value["log"] == 4 and holds(value)
    with pytest.raises(ValueError, match="no interval"):
        estimate(Values(np.array([1.0, 2.0]), np.array([1.0, 2.0])))


def test_the_delay_of_plain_runs_is_subtracted_on_both_sides() -> None:
    plain = Values(np.array([3.0, 3.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    value = estimate_above(Values(np.array([22.0, 23.0, 24.0]), np.full(3, 21.0)), plain)
    assert (value["low"] + value["high"]) / 2 == pytest.approx(20)
    assert value["log"] == 20
    assert half_width(value) == pytest.approx(4.302653 / 3**0.5 / 20)


@pytest.mark.parametrize(
    ("held", "seeds", "verdict"),
    [(52, 60, "passed"), (51, 60, "failed"), (3, 3, "undecided"), (10, 19, "failed"),
     (22, 30, "undecided"), (30, 40, "failed")],
)  # fmt: skip
def test_fewer_seeds_are_undecided_unless_too_many_have_missed(
    held: int, seeds: int, verdict: str
) -> None:
    assert verdict_of(held, seeds).startswith(verdict)


def test_a_journal_with_an_incomplete_line_is_continued(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    assert read_journal(journal) == {}
    value = {"low": 0.99, "high": 1.01, "log": 1.0}
    line = {"seed": 7, "estimates": {"loss share": value, "delay": {**value, "log": 2.0}}}
    journal.write_text(json.dumps(line) + '\n{"seed": 8, "est')
    assert read_journal(journal) == {7: line}
    rows = table([line]).splitlines()
    assert rows[2].startswith("| loss share | 1 of 1 ") and "≤ 20% | passed" in rows[2]
    assert rows[3].startswith("| delay | 0 of 1 ")


def test_the_rig_of_the_bench_as_toml_is_the_same_rig() -> None:
    assert tomllib.loads(toml(RIG)) == RIG
