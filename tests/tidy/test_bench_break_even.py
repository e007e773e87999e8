"""Test the computations of the bench of planted break-evens, and of AES-128 engines."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest

from bench.coprocessing.engines import parsed_mb_per_s
from bench.coprocessing.planted_break_even import (
    TRUE_VALUE_TOLERANCE,
    Outcome,
    Planted,
    additive_errors,
    outcome_of,
    planted_times,
    round_trips_us,
    summary,
    true_break_even,
)
from bench.rigs.planted_links import read_journal

PLANTED = Planted(2000, 500)


def outcome(**changes: object) -> Outcome:
    known = Outcome(
        PLANTED, true=20.0, estimate=20.0, low=19.0, high=21.0,
        errors={"robot": 0.01, "device": 0.02}, reported_errors={}, not_additive=[],
    )  # fmt: skip
    return known._replace(**changes)


def test_the_true_break_even_is_the_crossing_of_the_round_trip_and_the_saved_time() -> None:
    # 30 + k / 10 = 1.5 k
    assert true_break_even({1.0: 30.1, 101.0: 40.1}, 1.5) == pytest.approx(30 / 1.4, abs=0.001)
    assert true_break_even({1.0: 1.0, 101.0: 1.0}, 1.5) == 1.0
    assert true_break_even({1.0: 200.0, 101.0: 200.0}, 1.5) == math.inf


def test_a_seed_always_has_the_same_planted_times() -> None:
    assert planted_times(3) == planted_times(3) != planted_times(4)
    assert all(planted_times(seed).saved_us > 0.3 for seed in range(100))


def test_round_trips_are_geometric_means_over_blocks_by_variant_reply_and_blocks() -> None:
    rows = [("robot", 56, "echo", 10.0), ("robot", 56, "echo", 40.0), ("robot", 72, "echo", 5.0)]
    names = ["factor.variant", "factor.payload_bytes", "factor.reply", "latency_p50_us"]
    trips = round_trips_us(pl.DataFrame(rows, schema=names, orient="row"))
    assert trips["robot", "echo"] == pytest.approx({1.0: 20.0, 2.0: 5.0})


def test_an_additive_error_is_relative_to_the_measured_round_trip() -> None:
    trips = {
        ("robot", "echo"): {10.0: 10.0}, ("robot", "encrypt"): {10.0: 30.0},
        ("device", "echo"): {10.0: 10.0}, ("device", "encrypt"): {10.0: 20.0},
    }  # fmt: skip
    errors = additive_errors(trips, PLANTED)
    assert errors == pytest.approx({"robot": 0.0, "device": 0.25})


@pytest.mark.parametrize(
    ("low", "high", "within_tolerance", "exactly"),
    [(19.0, 21.0, True, True), (20.1, 21.0, True, False), (20.3, 21.0, False, False),
     (19.0, 19.9, True, False), (19.0, 19.7, False, False), (math.nan, math.nan, False, False)],
)  # fmt: skip
def test_an_interval_holds_the_true_value_within_the_tolerance_or_exactly(
    low: float, high: float, within_tolerance: bool, exactly: bool
) -> None:
    assert TRUE_VALUE_TOLERANCE == 0.01
    result = outcome(low=low, high=high)
    assert result.contains_true_within_tolerance == within_tolerance
    assert result.contains_true == exactly


def test_an_additive_error_above_the_limit_needs_the_warning_of_its_worker() -> None:
    errors = {"robot": 0.01, "device": 0.16}
    assert outcome().is_additive_or_warned
    assert not outcome(errors=errors).is_additive_or_warned
    assert not outcome(errors=errors, not_additive=["robot"]).is_additive_or_warned
    assert outcome(errors=errors, not_additive=["device"]).is_additive_or_warned


def verdicts(results: list[Outcome]) -> list[str]:
    return [line.rpartition("| ")[2].strip(" |") for line in summary(results).splitlines()[2:]]


def test_three_misses_of_twenty_pass_and_four_fail() -> None:
    miss = outcome(low=10.0, high=11.0)
    assert verdicts([outcome()] * 17 + [miss] * 3) == ["passed", "", "passed", "passed"]
    assert verdicts([outcome()] * 16 + [miss] * 4)[0] == "failed"
    assert verdicts([outcome()] * 5)[0].startswith("undecided")


def test_a_wide_interval_or_none_fails_its_promise() -> None:
    wide, none = outcome(low=15.0, high=23.0), outcome(estimate="never", low=math.nan)
    assert wide.ratio > 1.5 and none.ratio == math.inf
    for result in (wide, none):
        assert verdicts([outcome()] * 19 + [result])[2] == "failed"


def test_a_seed_of_the_journal_is_the_same_outcome(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_text(json.dumps({"seed": 4, **outcome()._asdict()}) + "\n")
    assert outcome_of(read_journal(journal)[4]) == outcome()


def test_the_throughput_of_openssl_speed_is_the_last_field_of_its_line() -> None:
    assert parsed_mb_per_s("+H:16384\n+F:25:AES-128-ECB:183282346.67\n") == pytest.approx(
        183.28, 1e-4
    )
    with pytest.raises(RuntimeError, match="printed 0 results"):
        parsed_mb_per_s("+H:16384\n")
