"""Test the break-even of a simulated campaign, and what a study may request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.offloading.break_even import break_evens
from wattwire.analysis.responses import resolve
from wattwire.model.errors import UsageError
from wattwire.model.output_requests import parse_shown
from wattwire.report.tables import break_even
from wattwire.report.tests.phrase_search import only, phrases_in
from wattwire.report.tests.planted import planted
from wattwire.stats import Interval
from wattwire.stats.break_even import InSomeBlocks, NeverUpTo, Without

SPEC = {
    "title": "When does it pay?", "response": "latency_p50_us", "size": "payload_bytes",
    "frame": 40, "unit": 16, "unit_title": "blocks", "work": "reply", "idle": "echo",
    "busy": "encrypt", "by": "variant", "workers": ["slow", "fast"],
}  # fmt: skip
SIZES = (56, 200, 1640, 16040)
PER_BLOCK_US = {"slow": 2.0, "fast": 0.5}
FIXED_US, PER_BYTE_US = {"slow": 40.0, "fast": 40.0, "tcp": 300.0}, 0.001


def campaign(folder: Path, blocks: int = 5, extra: float = 0.0) -> Evidence:
    """Return a campaign of two workers and one other carrier; `extra` is work that echoes lack."""
    factors = {"variant": ["slow", "fast", "tcp"], "payload_bytes": list(SIZES),
               "reply": ["echo", "encrypt"]}  # fmt: skip
    treatments = [
        {"variant": variant, "payload_bytes": size, "reply": reply}
        for variant in factors["variant"]
        for size in SIZES
        for reply in (("echo", "encrypt") if variant in PER_BLOCK_US else ("echo",))
    ]

    document = {
        "factors": factors,
        "variants": {name: {} for name in factors["variant"]},
        "plan": {"blocks": blocks, "primary": "variant"}, "break_even": [SPEC],
    }  # fmt: skip
    return planted(folder, document, treatments, lambda t: latency_us(t, extra), blocks)


def latency_us(treatment: Mapping[str, Any], extra: float = 0.0) -> float:
    variant, size = treatment["variant"], treatment["payload_bytes"]
    echo_us = FIXED_US[variant] + PER_BYTE_US * size
    if treatment["reply"] == "echo":
        return echo_us
    return echo_us + PER_BLOCK_US[variant] * (size - 40) / 16 + extra


def true_break_even(carrier: str) -> float:
    """Return k of FIXED + PER_BYTE · (40 + 16 k) + 0.5 k = 2 k."""
    saved = PER_BLOCK_US["slow"] - PER_BLOCK_US["fast"] - 16 * PER_BYTE_US
    return (FIXED_US[carrier] + 40 * PER_BYTE_US) / saved


def test_each_carrier_has_the_break_even_of_the_faster_worker_and_the_slower_never_pays(tmp_path):
    evidence = campaign(tmp_path / "c")
    (spec,) = evidence.study.shown.break_evens
    results = break_evens(evidence, spec, resolve(spec.response))
    assert [worker.level for worker in results.workers] == ["slow", "fast"]
    assert all(worker.is_additive for worker in results.workers)
    for worker in results.workers:
        assert np.mean(list(worker.per_unit.values())) == pytest.approx(
            PER_BLOCK_US[worker.level], rel=0.05
        )
    result_by_pair = {(o.carrier, o.worker): o.result for o in results.offloads}
    assert set(result_by_pair) == {(c, w) for c in FIXED_US for w in PER_BLOCK_US}
    for carrier in FIXED_US:
        interval = result_by_pair[carrier, "fast"]
        assert isinstance(interval, Interval)
        assert interval.estimate == pytest.approx(true_break_even(carrier), rel=0.05)
        assert interval.high / interval.low < 1.5
        assert result_by_pair[carrier, "slow"] == NeverUpTo((SIZES[-1] - 40) / 16, 5)


def test_the_page_separates_workers_that_never_pay_and_says_how_many_blocks_an_interval_needs(
    tmp_path,
):
    evidence = campaign(tmp_path / "c", blocks=2)
    (spec,) = evidence.study.shown.break_evens
    parts = break_even.parts(evidence, spec, 1)
    assert len(phrases_in(parts, "break_even.additive")) == 2
    tables = {part.id: part for part in parts if hasattr(part, "rows")}
    rows = tables["break-even-1"].rows
    assert {(row["carrier"], row["worker"], row["own"]) for row in rows} == {
        (carrier, "fast", "slow") for carrier in FIXED_US
    }
    assert all(row["result"].key == "break_even.without" for row in rows)
    assert len(phrases_in(parts, "break_even.never")) == 3


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (NeverUpTo(61.5, 3), "does not pay up to 61 blocks, the largest message"),
        (InSomeBlocks(61400.0, 61400.4, 1, 3, 65500.0), "61 400 in 1 of 3 blocks of runs"),
        (InSomeBlocks(20.0, 30.0, 2, 3, 65500.0), "20.0 to 30.0 in 2 of 3 blocks of runs"),
        (Without(12.0, 1), "12.0 (no interval: 1 block of runs)"),
    ],
)
def test_a_result_has_whole_units_and_separates_blocks_of_runs_from_blocks_of_work(result, shown):
    text = break_even.shown(result, "blocks")
    assert text.replace("\u202f", " ").replace("\u00a0", " ").startswith(shown)


def test_round_trips_that_are_not_additive_are_named(tmp_path):
    evidence = campaign(tmp_path / "c", extra=200.0)
    (spec,) = evidence.study.shown.break_evens
    parts = break_even.parts(evidence, spec, 1)
    named = phrases_in(parts, "break_even.not_additive")
    assert len(named) == 2 and all(phrase.values["error"] > 0.15 for phrase in named)


def test_without_two_measured_workers_the_page_gives_the_reason(tmp_path):
    evidence = campaign(tmp_path / "c", blocks=1)
    (spec,) = evidence.study.shown.break_evens
    alone = evidence.usable.filter(evidence.usable["factor.variant"] != "fast")
    evidence.usable = alone
    parts = break_even.parts(evidence, spec, 1)
    assert only(parts, "break_even.no_worker").values["workers"] == ["slow", "fast"]


def test_runs_at_other_levels_than_where_do_not_enter_the_break_even(tmp_path):
    """Paced round trips are longer by 1 ms here, which would move every break-even."""
    at_levels = [
        {"variant": variant, "payload_bytes": size, "reply": reply, "loop": loop}
        for variant in PER_BLOCK_US
        for size in SIZES
        for reply in ("echo", "encrypt")
        for loop in ("closed", "open")
    ]
    factors = {"variant": ["slow", "fast"], "payload_bytes": list(SIZES),
               "reply": ["echo", "encrypt"], "loop": ["closed", "open"]}  # fmt: skip
    spec = {**SPEC, "where": {"loop": "closed"}}
    document = {"factors": factors, "variants": {"slow": {}, "fast": {}}, "break_even": [spec]}

    def paced_us(treatment: Mapping[str, Any]) -> float:
        return latency_us(treatment) + (1000.0 if treatment["loop"] == "open" else 0.0)

    evidence = planted(tmp_path / "c", document, at_levels, paced_us)
    (shown,) = evidence.study.shown.break_evens
    results = break_evens(evidence, shown, resolve(shown.response))
    (interval,) = [o.result for o in results.offloads if (o.carrier, o.worker) == ("slow", "fast")]
    assert interval.estimate == pytest.approx(true_break_even("slow"), rel=0.05)


KNOWN = {"variant": ("slow", "fast"), "payload_bytes": (56, 72), "reply": ("echo", "encrypt")}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": "reply"}, 'size: found "reply"; allowed: a factor whose levels are numbers'),
        ({"unit": 0}, "unit: found 0; allowed: a number above 0"),
        ({"busy": "encrpt"}, 'busy: unknown level of reply "encrpt".*Did you mean "encrypt"'),
        ({"workers": ["slow", "fats"]}, 'workers: unknown level of variant "fats"'),
        ({"workers": ["slow"]}, "workers: found .*allowed: two or more levels"),
        ({"busy": "echo"}, "busy: found 'echo'; allowed: another level than idle"),
        ({"where": {"reply": "ehco"}}, "where.reply: found 'ehco'; allowed: 'echo', 'encrypt'"),
        ({"by": "cell"}, 'by: unknown factor "cell"'),
        ({"frame": math.nan}, "frame: found nan"),
    ],
)
def test_a_bad_request_names_the_key_the_value_and_what_is_allowed(change, message):
    with pytest.raises(UsageError, match=f"break_even 1: {message}"):
        parse_shown({"break_even": [{**SPEC, **change}]}, KNOWN, "study.toml")
