"""Tests of the comparison in the terminal, on simulated campaigns with known effects."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.topics.answers.gaps import Gaps, gaps_of
from wattwire.analysis.topics.interactions.numbers import by_level
from wattwire.cli.try_table import compare
from wattwire.model.stored_study import stored_study
from wattwire.report.tests.answered import answered_study, headline
from wattwire.report.topic_page import Sentences, topic_page

DRIFT = (1.0, 1.1, 0.9, 1.05, 0.97)
"""Factor by which each block multiplies all its runs. It cancels in ratios within a block."""


@dataclass
class Made:
    """A simulated campaign. Latencies of a (cell, level) are multiplied by the block's drift.

    The level is one of the factor `other`.
    """

    latency_us: dict
    other: str = "payload_bytes"
    blocks: int = 5
    verdict: str = "valid"
    lost: int = 0
    skipped: list = field(default_factory=list)
    delivery: dict = field(default_factory=dict)
    outcome: str = "completed"
    path = None

    def __post_init__(self):
        self.cells = list(dict.fromkeys(cell for cell, _ in self.latency_us))
        self.payloads = sorted({payload for _, payload in self.latency_us})
        several = len(self.payloads) > 1
        fixed = {"payload_bytes": 64} | ({} if several else {self.other: self.payloads[0]})
        fixed.pop(self.other if several else "", None)
        document = {
            "title": "made up",
            "factors": {
                "cell": self.cells,
                **({self.other: self.payloads} if several else {}),
            },
            "fixed": fixed,
            "plan": {"primary": "cell"},
            "question": [
                {
                    "id": "T1",
                    "factors": ["cell", *([self.other] if several else [])],
                    "responses": ["latency_p50_us", "cpu_us_per_message"],
                }
            ],
            "answers": {"baseline": {"cell": self.cells[0]}},
        }
        self.study = stored_study(document, "made up")
        self.machine = {}
        self.rows, self.facts_by_run, self.plan = [], {}, list(self.skipped)
        for block in range(self.blocks):
            for at, ((cell, payload), latency) in enumerate(self.latency_us.items()):
                # Without scatter, the residual variance is zero, and a ratio has no interval.
                scatter = 1.0 + 2e-8 * math.sin(7.0 * (block * len(self.latency_us) + at))
                self._add(f"b{block + 1}-p{at}", block, cell, payload, latency * scatter)

    def _add(self, run, block, cell, payload, latency):
        levels = {"payload_bytes": 64, "cell": cell, self.other: payload}
        self.plan.append({"run": run, "treatment": levels, "levels": levels, "skipped": None})
        self.rows.append(
            {
                "run": run, "attempt": 1, "block": block + 1, "verdict": self.verdict,
                "used": self.verdict == "valid", "outcome": self.outcome, "control": "",
                **{f"factor.{name}": level for name, level in levels.items()},
                "sent": 100, "expected": 100, "lost": self.lost,
                "latency_p50_us": latency * DRIFT[block], "cpu_us_per_message": 2.0 * latency,
            }
        )  # fmt: skip
        ready = {"guarantee": {"delivery": self.delivery.get(cell, "reliable")}}
        busy = {"code": "other_load", "detail": "a busy machine"}
        self.facts_by_run[run] = {
            "levels": levels, "treatment": levels,
            "nodes": [{"cell": cell, "role": "client", "ready": ready}],
            "outcome": self.outcome, "outcome_detail": "why", "reasons": [busy],
        }  # fmt: skip

    def summary(self):
        return pl.DataFrame(self.rows)

    def run(self, run):
        return self.facts_by_run[run]

    def documents(self, runs):
        return map(self.run, runs)


def test_the_ratio_of_a_planted_factor_is_found_inside_the_blocks():
    compared = compare(Made({("slow", 64): 300.0, ("fast", 64): 100.0}))
    fast, slow = compared.rows
    assert (fast.cell, slow.cell) == ("fast", "slow") and slow.ratio is None
    assert fast.ratio.interval.estimate == pytest.approx(1 / 3)
    assert fast.ratio.interval.high - fast.ratio.interval.low < 1e-6  # the drift is the only noise
    assert fast.latency_us.low < 100.0 < fast.latency_us.high
    assert fast.cpu_us == pytest.approx(200.0)
    assert compared.answer.startswith("fast is better than slow in all 2 responses. slow had 3.00 ")


def shaken(made):
    for at, row in enumerate(made.rows):
        row["latency_p50_us"] *= 1.0 + 0.2 * math.sin(7.0 * at)
    return made


@pytest.mark.parametrize("verdict", ["valid", "invalid"])
def test_what_stands_in_the_terminal_is_what_the_page_says(verdict):
    made = shaken(Made({("a", 64): 30.0, ("b", 64): 10.0, ("c", 64): 90.0}, verdict=verdict))
    evidence, compared = gather(made), compare(made)
    answers = answer_all(evidence)
    of_page = {
        answer.level: answer.result if verdict == "valid" else answer.with_all
        for answer in answers.items
        if answer.response.column == "latency_p50_us"
    }
    assert len(of_page) == 2
    assert {row.cell: row.ratio for row in compared.rows if row.cell != "a"} == of_page
    assert compared.answer.startswith(headline(evidence, answers))
    assert compared.family == 4
    basis = " ".join(" ".join(compared.lines()).split())
    assert "Ratios are relative to the first cell, a, within blocks" in basis
    assert "the 4 intervals of the page are simultaneous at 95 %" in basis


def test_each_payload_has_its_own_fastest_and_the_ratio_that_the_page_has_there():
    made = shaken(Made({("a", 64): 10.0, ("b", 64): 20.0, ("a", 1024): 80.0, ("b", 1024): 40.0}))
    evidence, compared = gather(made), compare(made)
    assert [(r.cell, r.payload_bytes) for r in compared.rows] == [
        ("a", 64), ("b", 64), ("b", 1024), ("a", 1024),
    ]  # fmt: skip
    of_page = {
        row.level: row.result
        for row in by_level(evidence, answer_all(evidence))
        if row.answer.response.column == "latency_p50_us" and row.answer.factor == "cell"
    }
    assert {r.payload_bytes: r.ratio for r in compared.rows if r.cell == "b"} == of_page
    assert all(r.ratio is None for r in compared.rows if r.cell == "a")
    text = " ".join(" ".join(compared.lines()).split())
    assert "the 95 % intervals are per payload, not simultaneous" in text


OTHER_FACTORS = {
    "settings.qos": (0, 1),
    "settings.nodelay": (False, True),
    "rate_hz": (5.0, 1000.0),
    "clients": (1, 2),
    "payload_bytes": (64, 1024),
    "pattern": ("pingpong", "service"),
}


@pytest.mark.parametrize("factor", OTHER_FACTORS)
def test_each_level_of_a_factor_has_a_row_and_its_ratio_whatever_the_factor(factor):
    low, high = OTHER_FACTORS[factor]
    alone = compare(shaken(Made({("a", low): 10.0, ("a", high): 30.0}, other=factor)))
    assert [row.level for row in alone.rows] == [low, high] and alone.factor == factor
    assert alone.rows[0].ratio is None
    assert alone.rows[1].ratio.interval.estimate == pytest.approx(3.0, rel=0.2)
    assert all(row.title in "\n".join(alone.lines()) for row in alone.rows)
    planted = {("a", low): 10.0, ("b", low): 20.0, ("a", high): 80.0, ("b", high): 40.0}
    compared = compare(shaken(Made(planted, other=factor)))
    rows = [(row.cell, dict(row.others)[factor]) for row in compared.rows]
    assert rows == [("a", low), ("b", low), ("b", high), ("a", high)]
    ratios = [row.ratio.interval.estimate for row in compared.rows if row.cell == "b"]
    assert ratios == [pytest.approx(2.0, rel=0.2), pytest.approx(0.5, rel=0.2)]
    levels = [row["levels"] for row in compared.to_json()["rows"]]
    assert levels == [{"cell": cell, factor: level} for cell, level in rows]


def test_different_promises_of_the_levels_of_a_setting_are_named():
    made = Made({("a", 0): 10.0, ("a", 1): 20.0}, other="settings.qos")
    for document in made.facts_by_run.values():
        delivery = "at_least_once" if document["levels"]["settings.qos"] else "at_most_once"
        ready = {"guarantee": {"delivery": delivery}}
        document["nodes"] = [{"cell": "a", "role": "client", "ready": ready}]
    text = " ".join(" ".join(compare(made).lines()).split())
    assert "at least once" in text and "at most once" in text


def test_one_block_has_ratios_without_an_interval():
    compared = compare(Made({("a", 64): 10.0, ("b", 64): 20.0}, blocks=1))
    assert isinstance(compared.rows[1].ratio, stats.TooFew)
    text = "\n".join(compared.lines())
    assert "too few" in text and "No question has a numeric answer" in text.replace("\n  ", " ")


def test_cells_that_cannot_be_told_apart_are_said_to_be_so():
    evidence = gather(shaken(Made({("a", 64): 100.0, ("b", 64): 101.0})))
    answers = answer_all(evidence)
    latency = tuple(one for one in answers.items if one.response.column == "latency_p50_us")
    of_latency = replace(answers, items=latency)
    first = answered_study(evidence, of_latency).headline.first
    assert first is not None and first.outcome == "undecided"
    assert "was detected, because the interval includes 1." in headline(evidence, of_latency)


def test_runs_that_were_set_aside_are_counted_by_name_only():
    compared = compare(Made({("a", 64): 10.0, ("b", 64): 20.0}, verdict="invalid"))
    assert compared.usable == 0
    text = " ".join(" ".join(compared.lines()).split())
    assert text.startswith("No results yet: 10 of 10 planned runs were tried, but none is valid")
    assert "With the excluded runs: b had 2.00 times the median latency of a" in text
    assert "10 runs excluded: a busy machine (in 10 runs)." in text


def test_loss_is_told_and_half_a_runs_loss_leaves_no_median():
    lossy = compare(Made({("a", 64): 10.0, ("b", 64): 20.0}, lost=25))
    assert [row.loss_share for row in lossy.rows] == [0.25, 0.25]
    assert "25 %" in "\n".join(lossy.lines())
    made = Made({("a", 64): 10.0, ("b", 64): 20.0}, lost=60)
    for row in made.rows:
        row["latency_p50_us"] = None if row["factor.cell"] == "b" else row["latency_p50_us"]
    gone = compare(made)
    assert [row.cell for row in gone.rows] == ["a", "b"] and math.isinf(gone.rows[1].centre_us)
    assert "∞" in "\n".join(gone.lines())


def test_messages_that_were_never_sent_stand_next_to_the_share_of_the_sent():
    made = Made({("a", 64): 10.0, ("b", 64): 20.0})
    for row in made.rows:
        row |= {"unsent": 25.0 if row["factor.cell"] == "b" else 0.0}
    told = "\n".join(compare(made).lines())
    assert "lost is a share of the sent messages; due but never sent: b 20 %" in told
    assert "never sent" not in "\n".join(compare(Made({("a", 64): 1.0, ("b", 64): 2.0})).lines())


def test_what_the_warm_up_lost_is_in_no_share():
    made = Made({("a", 64): 10.0, ("b", 64): 20.0}, lost=20)
    for row in made.rows:
        row |= {"failed": 10, "expected_after_warmup": 50, "lost_after_warmup": 5}
        row |= {"failed_after_warmup": 0}
    lines = compare(made).rows
    assert [(row.loss_share, row.failed_share) for row in lines] == [(0.1, 0.0), (0.1, 0.0)]


def test_different_promises_and_what_was_left_out_are_said():
    skipped = [{"run": None, "treatment": {"cell": "c", "payload_bytes": 64},
                "levels": {}, "skipped": "c has no pingpong"}]  # fmt: skip
    made = Made({("a", 64): 10.0, ("b", 64): 20.0}, skipped=skipped,
                delivery={"a": "best_effort"}, outcome="saturated")  # fmt: skip
    text = " ".join(" ".join(compare(made).lines()).split())
    assert "(delivery, order, overload): a: best effort; b: reliable." in text
    assert "Skipped: c: c has no pingpong." in text
    assert "Outcome: a saturated: why." in text


def test_one_cell_alone_has_its_median_and_no_ratio():
    compared = compare(Made({("a", 64): 10.0}))
    assert compared.lines()[0].startswith("a: median latency 10.0 µs (")
    assert "p99 unknown" in compared.answer, "the runs have too few messages"
    assert "0 % lost, over 5 runs" in compared.answer
    assert "atio" not in " ".join(compared.lines())
    several = compare(Made({("a", 64): 10.0, ("a", 1024): 20.0}))
    assert several.answer.startswith("a at 64 B: median latency 10.0 µs (")
    assert "1024 B had 2.00 times the median latency of 64 B" in several.answer
    faster = compare(Made({("a", 64): 20.0, ("a", 1024): 10.0}))
    assert faster.answer.startswith("a at 64 B: median latency 20.0 µs ("), "the baseline"


def test_no_finished_run_is_said_in_words():
    made = Made({("a", 64): 10.0, ("b", 64): 20.0}, blocks=0)
    made.summary = pl.DataFrame
    assert "no run was finished" in compare(made).lines()[0]


def test_the_rate_of_delivery_is_below_each_table_and_in_the_json():
    made = Made({("a", 64): 10.0, ("b", 64): 20.0})
    for row in made.rows:
        row |= {"rate_hz_delivered": 610.0, "factor.pattern": "service"}
    compared = compare(made)
    assert "  calls/s: a 610, b 610" in compared.lines()
    assert [row["delivered_per_s"] for row in compared.to_json()["rows"]] == [610.0, 610.0]


def test_it_stays_within_80_columns():
    cells = {(f"middleware/cell-{n}", size): 1e5 * n for n in (1, 2, 3) for size in (64, 10**6)}
    assert max(map(len, compare(Made(cells)).lines())) <= 80


def test_as_json_it_has_numbers_and_reasons():
    document = compare(Made({("a", 64): 10.0, ("b", 64): 20.0})).to_json()
    assert document["rows"][1]["ratio_to_baseline"]["estimate"] == pytest.approx(2.0)
    few = compare(Made({("a", 64): 10.0, ("b", 64): 20.0}, blocks=1)).to_json()
    assert few["rows"][1]["ratio_to_baseline"].startswith("there are only")


def test_two_blocks_have_no_number_in_the_headline_and_the_table_says_how_little_they_tell(
    monkeypatch,
):
    two, three = (Made({("a", 64): 30.0, ("b", 64): 10.0}, blocks=blocks) for blocks in (2, 3))
    evidence, enough = gather(shaken(two)), gather(shaken(three))
    # Quantile of Student's t at 95 %: 12.7 for one degree of freedom, 2.78 for four.
    study = answered_study(evidence, answer_all(evidence))
    warning, first = study.few_degrees, study.headline.first
    assert warning is not None and first is not None
    assert (warning.blocks, warning.degrees, warning.enough) == (2, 1, 4)
    assert warning.few_limit == pytest.approx(12.7, rel=0.01)
    assert warning.enough_limit == pytest.approx(2.78, rel=0.01)
    assert (first.blocks, first.few_degrees, first.winner) == (2, 1, None)
    text = headline(evidence, answer_all(evidence))
    assert "times" not in text and text.endswith("Measure more blocks.")
    monkeypatch.setattr(Evidence, "imported", True)
    assert headline(evidence, answer_all(evidence)).endswith("Import more repetitions.")
    monkeypatch.undo()
    study = answered_study(enough, answer_all(enough))
    assert study.few_degrees is None
    assert study.headline.first is not None and study.headline.first.few_degrees == 0


def test_a_trial_whose_nodes_all_died_before_ready_has_no_usable_run():
    made = Made({("a/x", 64): 100.0}, outcome="died")
    for row in made.rows:
        row["sent"] = 0
    for document in made.facts_by_run.values():
        document["nodes"] = [{"ready": None}]
    compared = compare(made)
    assert compared.usable == 0
    assert compared.answer.startswith("All 5 runs died before READY: ")


def test_a_contrast_over_fewer_combinations_than_others_names_what_it_lacks():
    cells = {(cell, size): 10.0 * (1 + "abc".index(cell)) for cell in "abc" for size in (1, 2, 3)}
    evidence = gather(shaken(Made(cells)))
    assert gaps_of(evidence, answer_all(evidence)) == Gaps()
    del cells["c", 3]
    evidence = gather(shaken(Made(cells)))
    answers = answer_all(evidence)
    strata = {answer.level: answer.result.strata for answer in answers.items}
    assert strata[3] == 2, "the sizes are compared over fewer cells, too"
    gaps = gaps_of(evidence, answers)
    (item,) = (item for item in gaps.fewer if item.contrasts[0].level_title == "c")
    assert (item.own, item.all) == (strata["c"], strata["b"]) == (2, 3)
    assert {(one.level_title, one.baseline_title) for one in item.contrasts} == {("c", "a")}
    assert item.missing == (evidence.title("payload_bytes", 3),)
    (text,) = (
        part
        for _, part in topic_page("answers", answered_study(evidence, answers)).parts
        if getattr(part, "key", "") == "answers.gaps"
    )
    assert Sentences("answers").fewer_combinations(item) in text.words
