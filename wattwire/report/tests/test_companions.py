"""Tests of ranks, shares of variance, interactions and warnings in the sensitivity analyses."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from wattwire import stats
from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import Evidence, gather
from wattwire.analysis.responses import CPU
from wattwire.report.parts import Fold, Text, tables_of
from wattwire.report.tables.sensitivity import companions, interaction_words, parts
from wattwire.report.tests.phrase_search import keys_in, only
from wattwire.report.tests.synthetic import CPU_RATIO, Shape, write_campaign
from wattwire.store import Campaign


def evidence_of(folder, blocks: int) -> Evidence:
    shape = Shape(blocks=blocks, duration_s=2.0, patterns=("topic",), clients=(1,))
    return gather(Campaign(write_campaign(folder / "campaign", shape)))


@pytest.fixture(scope="module")
def six(tmp_path_factory) -> Evidence:
    return evidence_of(tmp_path_factory.mktemp("six"), 6)


def rows_of(evidence: Evidence, name: str) -> list[dict]:
    made = parts(evidence, answer_all(evidence))
    return next(list(table.rows) for table in tables_of(made) if table.id == name)


def test_ranks_find_the_planted_ratio_and_tell_the_levels_apart(six) -> None:
    row = next(row for row in rows_of(six, "by-ranks") if row["response"] == CPU.title)
    assert row["ranked"].estimate == pytest.approx(CPU_RATIO, rel=0.1)
    assert row["level"] == "96.88 %"
    assert row["delta"].estimate == -1.0
    assert row["friedman"] == pytest.approx(2 / 2**6)
    assert row["quade"] == pytest.approx(2 / 2**6)


def test_everything_else_is_closed_away(six) -> None:
    made = parts(six, answer_all(six))
    assert [type(part) for part in made if not isinstance(part, Text)] == [Fold]


def test_each_factor_has_its_share_of_the_variance(six) -> None:
    rows = rows_of(six, "effects")
    planted = next(r for r in rows if r["response"] == CPU.title and r["source"] == "language")
    assert planted["p"] < 1e-6
    assert planted["omega"].low > 0.8
    crossed = next(r for r in rows if r["source"] == "language × interval")
    assert 0 < crossed["permuted"] <= 1


def test_too_few_blocks_give_words_and_not_a_number(tmp_path) -> None:
    for row in rows_of(evidence_of(tmp_path, 3), "by-ranks"):
        for key in ("ranked", "delta", "friedman", "quade"):
            assert isinstance(row[key], stats.TooFew)


def test_a_loss_without_bound_has_a_rank_but_no_ratio() -> None:
    pairs = np.array([[0.1, np.inf], [0.2, 0.4], [0.3, 0.5], [0.1, 0.6], [0.2, 0.7], [0.3, 0.9]])
    ranked, delta = companions(pairs, 0.95)
    assert isinstance(ranked, stats.NotComputable)
    assert delta.estimate == -1.0


def effect(p: float, permuted_p: float | None = None) -> stats.Effect:
    share = stats.Interval(0.1, 0.0, 0.2, 0.95, 20, "")
    return stats.Effect(("a", "b"), 1.0, 1, 10, p, share, permuted_p)


def test_an_interaction_that_only_one_scale_sees_is_told_on_both() -> None:
    told = interaction_words(
        CPU, ("language", "clients"), {"log": effect(0.4, 0.41), "plain": effect(0.001)}, "log"
    )
    said = only(told, "sensitivity.interaction").values
    assert (said["verdict"].key, said["scale"], said["p"]) == ("sensitivity.no_sign", "log", 0.4)
    other = only(told, "sensitivity.other_scale").values
    assert other["verdict"].key == "sensitivity.differences_differ"
    assert (other["scale"], other["p"]) == ("plain", 0.001)
    both = {"log": effect(0.01, 0.02), "plain": effect(0.01)}
    agreed = interaction_words(CPU, ("language", "clients"), both, "log")
    assert keys_in(agreed) == ["sensitivity.interaction", "sensitivity.ratios_differ"]
    torn = {"log": effect(0.01, 0.2), "plain": effect(0.01)}
    assert only(interaction_words(CPU, ("a", "b"), torn, "log"), "sensitivity.undecided")
    quiet = {"log": effect(0.5, 0.5), "plain": effect(0.6)}
    assert interaction_words(CPU, ("a", "b"), quiet, "log") is None


def test_a_run_far_out_is_named_in_a_warning(tmp_path) -> None:
    evidence = evidence_of(tmp_path, 6)
    assert not any(isinstance(part, Text) for part in parts(evidence, answer_all(evidence)))
    frame = evidence.usable
    values = frame[CPU.column].to_list()
    values[5] *= 3.0
    evidence.usable = frame.with_columns(pl.Series(CPU.column, values))
    evidence.fits.clear()
    warning = next(p for p in parts(evidence, answer_all(evidence)) if isinstance(p, Text))
    assert frame["run"][5] in warning.words
    assert warning.tone == "warning"


def test_identical_labels_are_counted_and_a_rate_waits_for_three_hundred(tmp_path) -> None:
    shape = Shape(
        blocks=4, duration_s=1.0, patterns=("topic",), clients=(1,), intervals_s=(0.05,),
        b_over_a=3.0,
    )  # fmt: skip
    evidence = gather(Campaign(write_campaign(tmp_path / "campaign", shape)))
    fold = next(p for p in parts(evidence, answer_all(evidence)) if isinstance(p, Fold))
    told = next(p.words for p in fold.parts if isinstance(p, Text) and "A/A" in p.words)
    # B uses three times as much CPU time in all four blocks. No other response differs by design.
    alarms = int(told.split("error limit in ")[1].split(" of ")[0])
    assert alarms >= 4
    assert "at least 300 A/A comparisons" in told
