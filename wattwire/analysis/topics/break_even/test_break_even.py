"""Test the break-even of a simulated campaign, and what a study may request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.break_even.numbers import (
    BreakEvens,
    Offload,
    Request,
    Worker,
    break_evens,
)
from wattwire.model.errors import UsageError
from wattwire.model.output_requests import ShownBreakEven, parse_shown
from wattwire.report.parts import Fold, Table
from wattwire.report.tests.planted import planted
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.stats import Interval
from wattwire.stats.break_even import InSomeBlocks, NeverUpTo, Without

SENTENCES = Sentences("break_even")
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


WORKERS = (Worker("A", {1: 2.0, 2: 2.0}, 0.01), Worker("B", {1: 4.0, 2: 4.0}, 0.2))
TIMES = Interval(12.0, 10.0, 14.0, 0.95, 3, "t, log scale")
OFFLOADS = (
    Offload("tcp", *WORKERS, TIMES, "blocks"),
    Offload("tcp", *WORKERS, Without(12.0, 1), "blocks"),
    Offload("tcp", *reversed(WORKERS), NeverUpTo(61.5, 3), "blocks"),
)


def true_break_even(carrier: str) -> float:
    """Return k of FIXED + PER_BYTE · (40 + 16 k) + 0.5 k = 2 k."""
    saved = PER_BLOCK_US["slow"] - PER_BLOCK_US["fast"] - 16 * PER_BYTE_US
    return (FIXED_US[carrier] + 40 * PER_BYTE_US) / saved


def test_each_carrier_has_the_break_even_of_the_faster_worker_and_the_slower_never_pays(tmp_path):
    evidence = campaign(tmp_path / "c")
    (request,) = break_evens(evidence).requests
    assert [worker.title for worker in request.workers] == ["slow", "fast"]
    assert all(worker.is_additive for worker in request.workers)
    for worker in request.workers:
        assert np.mean(list(worker.per_unit.values())) == pytest.approx(
            PER_BLOCK_US[worker.title], rel=0.05
        )
    result_by_pair = {(o.carrier, o.worker.title): o.result for o in request.offloads}
    assert set(result_by_pair) == {(c, w) for c in FIXED_US for w in PER_BLOCK_US}
    for carrier in FIXED_US:
        interval = result_by_pair[carrier, "fast"]
        assert isinstance(interval, Interval)
        assert interval.estimate == pytest.approx(true_break_even(carrier), rel=0.05)
        assert interval.high / interval.low < 1.5
        assert result_by_pair[carrier, "slow"] == NeverUpTo((SIZES[-1] - 40) / 16, 5)


def test_workers_that_never_pay_are_separate_and_two_blocks_give_no_interval(tmp_path):
    (request,) = break_evens(campaign(tmp_path / "c", blocks=2)).requests
    assert [worker.is_additive for worker in request.workers] == [True, True]
    assert {(row.carrier, row.worker.title, row.own.title) for row in request.faster} == {
        (carrier, "fast", "slow") for carrier in FIXED_US
    }
    assert {(row.interval, row.kind) for row in request.faster} == {(None, "without")}
    assert [row.kind for row in request.slower] == ["never"] * 3


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (NeverUpTo(61.5, 3), "does not pay up to 61 blocks, the largest message"),
        (InSomeBlocks(61400.0, 61400.4, 1, 3, 65500.0), "61 400 in 1 of 3 blocks of runs"),
        (InSomeBlocks(20.0, 30.0, 2, 3, 65500.0), "20.0 to 30.0 in 2 of 3 blocks of runs"),
        (Without(12.0, 1), "12.0 (no interval: 1 block of runs)"),
    ],
)
def test_a_result_has_whole_units_and_separates_blocks_of_runs_from_blocks_of_work(result, text):
    sentence = SENTENCES.without_interval(Offload("tcp", *WORKERS, result, "blocks"))
    assert sentence.replace("\u202f", " ").replace("\u00a0", " ").startswith(text)


def test_round_trips_that_are_not_additive_are_named(tmp_path):
    evidence = campaign(tmp_path / "c", extra=200.0)
    (request,) = break_evens(evidence).requests
    assert len(request.workers) == 2
    assert all(worker.error > 0.15 and not worker.is_additive for worker in request.workers)


def test_without_two_measured_workers_the_page_gives_the_reason(tmp_path):
    evidence = campaign(tmp_path / "c", blocks=1)
    alone = evidence.usable.filter(evidence.usable["factor.variant"] != "fast")
    evidence.usable = alone
    result = break_evens(evidence)
    (request,) = result.requests
    assert (request.spec.workers, len(request.workers)) == (("slow", "fast"), 1)
    (_, title), (_, text) = topic_page("break_even", result).parts
    assert title.words == "When does it pay?"
    assert (text.tone, text.key, text.value) == ("warning", "break_even.workers", "1")
    assert "two of slow and fast." in text.words


def request_of(number: int = 1, **fields: Any) -> Request:
    """Return a request that has results."""
    spec = ShownBreakEven(**{**SPEC, "note": "A note.", "workers": ("a", "b")})
    return Request(number, spec, "µs", **{"workers": WORKERS, "offloads": OFFLOADS, **fields})


def test_the_page_has_intervals_or_sentences_and_folds_workers_that_never_pay():
    page = topic_page("break_even", BreakEvens((request_of(offloads=()), request_of(2))))
    parts = [part for _, part in page.parts]
    assert [part.id for part in parts if isinstance(part, Table)] == [
        "break-even-workers-1", "break-even-workers-2", "break-even-2",
    ]  # fmt: skip
    workers, faster = [part for part in parts if isinstance(part, Table)][1:]
    assert [(row["worker"], row["blocks"]) for row in workers.rows] == [("A", 2), ("B", 2)]
    assert workers.columns[2].unit == "µs"
    assert faster.rows[0] == {"carrier": "tcp", "own": "B", "worker": "A", "result": TIMES}
    assert faster.rows[1]["result"].startswith("12.0 (no interval")
    assert faster.columns[3].title == faster.title == "Break-even (blocks)"
    (fold,) = [part for part in parts if isinstance(part, Fold)]
    (slower,) = fold.parts
    assert (slower.id, slower.note) == ("break-even-slower-2", "")
    assert [row["result"] for row in slower.rows] == [
        "does not pay up to 61 blocks, the largest message"
    ]


def test_each_worker_has_a_note_or_a_warning_on_its_prediction():
    page = topic_page("break_even", BreakEvens((request_of(offloads=()),)))
    texts = [part for _, part in page.parts if not isinstance(part, Table)]
    errors = [text for text in texts if text.key == "break_even.error"]
    assert [(text.tone, text.value) for text in errors] == [("note", "0.01"), ("warning", "0.2")]
    assert "up to 20 % (limit 15 %) from" in errors[1].words
    assert [text.tone for text in texts if not text.key] == ["question", "", "note"]


def test_factors_that_also_vary_are_named():
    page = topic_page("break_even", BreakEvens((request_of(varied=("rate", "size")),)))
    (_, _), (_, text) = page.parts
    assert text.value == "2" and "because rate and size also vary." in text.words


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
    (request,) = break_evens(evidence).requests
    pair = ("slow", "fast")
    (interval,) = [o.result for o in request.offloads if (o.carrier, o.worker.title) == pair]
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
