"""Tests of rankings by products, on campaigns with planted energies."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.dataset import Evidence, column, gather, levels_in, levels_of, with_derived
from wattwire.analysis.header import header
from wattwire.analysis.topics.product_rankings.numbers import (
    Agreement,
    ProductRanking,
    ProductRankings,
    product_rankings,
)
from wattwire.report.page_parts import factor_columns
from wattwire.report.parts import Text, tables_of
from wattwire.report.tests.synthetic import FAST, SLOW, Shape, write_campaign
from wattwire.report.topic_page import topic_page
from wattwire.stats import Interval
from wattwire.store import Campaign

PRINTED = (
    "table,node_role,language,clients,energy_j,time_s,source\n"
    "4,client,python,1,99,,Table 4 (Old)\n"
    "4,client,swift,1,28.2,,Table 4 (Old)\n"
    "4,server,python,1,105.80,,Table 4 (Old)\n"
    "4,both,python,1,,28,Table 4 (Old)\n"
    "4,both,swift,1,,3,Table 4 (Old)\n"
)
RANKING = {
    "title": "Energy times delay",
    "product": ["energy_uj_per_message", "time_us_per_message"],
    "published": "4",
    "published_product": ["energy_j", "time_s"],
}


def evidence_of(folder, **shape) -> Evidence:
    study = {"published": "published.csv", "ranking": [RANKING]}
    given = {"blocks": 3, "duration_s": 4.0, "patterns": ("service",), "intervals_s": (0.2,)}
    campaign = write_campaign(folder / "campaign", Shape(**{**given, "study": study, **shape}))
    (campaign / "published.csv").write_text(PRINTED)
    return gather(Campaign(campaign))


def plant(evidence: Evidence, **columns) -> Evidence:
    """Set columns of every valid run, and update the derived metrics."""
    frame = evidence.usable.drop("energy_uj_per_message", "energy_idle_subtracted_uj_per_message")
    evidence.usable = with_derived(frame.with_columns(**columns))
    return evidence


def saturate(evidence: Evidence, runs: int, factor: float = 1.0) -> None:
    """Plant equal energies, and saturate this many runs of Swift with two clients.

    The energy of these runs is `factor` times that of the others.
    """
    levels = levels_in(evidence.usable, evidence.varied)
    is_here = [dict(zip(evidence.varied, run, strict=True)) == {"language": FAST, "clients": 2}
               for run in levels]  # fmt: skip
    is_saturated = [here and sum(is_here[:at]) < runs for at, here in enumerate(is_here)]
    plant(
        evidence,
        energy_message_j=column(evidence.usable, "sent")
        / 1e6
        * np.where(is_saturated, factor, 1.0),
        outcome=pl.Series(["saturated" if it else "completed" for it in is_saturated]),
    )


def ranking_of(evidence: Evidence) -> ProductRanking:
    (ranking,) = product_rankings(evidence).rankings
    return ranking


def test_measured_energy_is_ranked_next_to_the_published_product(tmp_path) -> None:
    evidence = evidence_of(tmp_path, measured_energy=True)
    joules = [
        (1.0 if language == FAST else 8.0) * clients
        for language, clients in zip(
            levels_of(evidence.usable, "language"), levels_of(evidence.usable, "clients"),
            strict=True,
        )
    ]  # fmt: skip
    plant(evidence, energy_message_j=pl.Series(joules) * column(evidence.usable, "sent") / 1e6)
    ranking = ranking_of(evidence)
    assert [row.treatment for row in ranking.rows][:2] == [(FAST, "1"), (FAST, "2")]
    assert [row.rank for row in ranking.rows] == [1, 2, 3, 4]
    assert isinstance(ranking.rows[0].product, Interval)
    printed = {row.treatment: row.printed for row in ranking.rows}
    assert printed[SLOW, "1"] == pytest.approx((99 + 105.8) * 28)  # sum of client and server
    assert printed[FAST, "1"] == pytest.approx(28.2 * 3)
    assert printed[SLOW, "2"] is None
    assert not ranking.missing and ranking.agreement.treatments == 2


def test_one_block_gives_a_rank_without_an_interval(tmp_path) -> None:
    evidence = evidence_of(tmp_path, measured_energy=True, blocks=1)
    plant(evidence, energy_message_j=column(evidence.usable, "sent") / 1e6)
    rows = ranking_of(evidence).rows
    assert [row.interval for row in rows] == [None] * 4
    assert [row.product for row in rows] == [row.mean for row in rows]


def test_a_treatment_above_the_capacity_has_no_rank(tmp_path) -> None:
    evidence = evidence_of(tmp_path, measured_energy=True)
    saturate(evidence, 3)
    ranking = ranking_of(evidence)
    assert sorted(row.rank for row in ranking.rows if row.rank) == [1, 2, 3]
    assert (FAST, "2") not in {row.treatment for row in ranking.rows if row.rank}
    (title,) = ranking.unranked
    assert "Swift" in title


@pytest.mark.parametrize(("saturated", "is_ranked"), [(1, True), (2, False)])
def test_a_minority_of_saturated_runs_is_left_out_of_a_ranking(tmp_path, saturated, is_ranked):
    evidence = evidence_of(tmp_path, measured_energy=True)
    saturate(evidence, saturated, 1e6)
    rows = {row.treatment: row for row in ranking_of(evidence).rows}
    assert ((FAST, "2") in rows) == is_ranked
    if is_ranked:
        assert rows[FAST, "2"].mean < 100 * rows[FAST, "1"].mean


def test_an_estimate_is_never_ranked_and_the_published_ranking_is_alone(tmp_path) -> None:
    evidence = evidence_of(tmp_path)
    assert any("energy_estimate" in name for name in evidence.usable.columns)
    ranking = ranking_of(evidence)
    assert ranking.is_energy_missing and not ranking.is_measured
    assert [row.rank_printed for row in ranking.rows] == [1, 2]
    columns = factor_columns(header(evidence))
    page = topic_page("product_rankings", ProductRankings((ranking,)), columns)
    parts = [part for _, part in page.parts]
    (table,) = tables_of(parts)
    assert table.id == "ranking-1" and table.columns
    assert not any(column.kind == "measured" for column in table.columns)
    keys = [part.key for part in parts if isinstance(part, Text) and part.key]
    assert keys == ["product_rankings.missing"]


def test_an_unknown_agreement_has_its_reason(tmp_path) -> None:
    evidence = evidence_of(tmp_path, measured_energy=True)
    plant(evidence, energy_message_j=column(evidence.usable, "sent") / 1e6)
    agreement = ranking_of(evidence).agreement
    assert isinstance(agreement, Agreement) and agreement.reason is not None


def test_a_study_without_rankings_or_valid_runs_has_none(tmp_path) -> None:
    evidence = evidence_of(tmp_path / "plain", study={"ranking": []})
    assert product_rankings(evidence) == ProductRankings()
    invalid = evidence_of(tmp_path / "invalid", blocks=1, unknown_runs=(0, 1, 2, 3))
    assert product_rankings(invalid) == ProductRankings()
