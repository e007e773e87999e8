"""Test the sentences on placements: what ran where, by how much, and where the order turns."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.findings.placements import COLUMNS
from wattwire.analysis.topics.ranking.numbers import ranking
from wattwire.report.tables.placements import restrictions, sentences
from wattwire.report.tests.answered import headline
from wattwire.report.tests.phrase_search import only
from wattwire.report.tests.planted import planted
from wattwire.report.tests.synthetic import put_row, row_of
from wattwire.report.topic_page import Sentences
from wattwire.store import Campaign

QUESTION = {
    "id": "Q",
    "text": "?",
    "factors": ["language", "cores"],
    "responses": ["latency_p50_us"],
}
# Median latencies (µs) of a pair of single threads and of a pair with helper threads.
LATENCIES = {
    ("plain", "free"): 13.5, ("plain", "same"): 12.8, ("plain", "apart"): 42.0,
    ("threaded", "free"): 126.0, ("threaded", "same"): 59.0, ("threaded", "apart"): 120.0,
}  # fmt: skip
SHARES = {("plain", "free"): 0.99, ("threaded", "free"): 0.04}


def campaign(folder, cores, **answers):
    """Return the evidence of these placements; only free runs are left to the scheduler."""
    levels = [(cell, at) for cell in ("plain", "threaded") for at in cores]
    document = {
        "factors": {"language": ["plain", "threaded"], "cores": cores},
        "question": [QUESTION],
        "answers": answers,
    }
    treatments = [{"language": cell, "cores": at} for cell, at in levels]
    planted(folder, document, treatments, lambda t: LATENCIES[t["language"], t["cores"]])
    for number, path in enumerate(sorted(folder.glob("runs/*/summary.json"))):
        row = row_of(path)
        at = (row["factor.language"][0], row["factor.cores"][0])
        same = SHARES.get(at, float(at[1] == "same")) + (number % 3) / 100 * (at[1] == "free")
        shares = {COLUMNS[0]: min(1.0, same), COLUMNS[2]: 1 - min(1.0, same)}
        columns = dict.fromkeys(COLUMNS, 0.0) | shares
        put_row(row.with_columns(**{name: pl.lit(v) for name, v in columns.items()}), path)
    return gather(Campaign(folder))


def test_the_sentence_has_the_ratio_of_each_placement_that_the_study_has(tmp_path):
    (text,) = sentences(campaign(tmp_path / "c", ["free", "same", "apart"]))
    assert text.key == "placements.apart"
    assert text.values["share"] > 0.95 and text.values["other_share"] < 0.1
    remedy = only(text, "placements.separated_ratios").values
    assert (remedy["level"], remedy["baseline"]) == ("threaded", "plain")
    ratios = {one.values["cores"]: one.values["ratio"] for one in remedy["ratios"]}
    for cores, ratio in ratios.items():
        truth = LATENCIES["threaded", cores] / LATENCIES["plain", cores]
        assert ratio.low < truth < ratio.high and ratio.level >= 0.95
    assert [*ratios] == ["free", "same", "apart"]


def test_a_study_without_other_placements_says_how_to_measure_them(tmp_path):
    (text,) = sentences(campaign(tmp_path / "c", ["free"]))
    assert only(text, "placements.separates")
    assert sentences(campaign(tmp_path / "d", ["same", "apart"])) == []


def test_the_first_sentence_says_where_the_order_turns(tmp_path, monkeypatch):
    # CPU time per call of two languages as measured: one is the dearest with `free` alone.
    costs = {("plain", "free"): 200.0, ("plain", "same"): 110.0, ("threaded", "free"): 250.0,
             ("threaded", "same"): 92.0}  # fmt: skip
    monkeypatch.setattr(f"{__name__}.LATENCIES", costs)
    evidence = campaign(tmp_path / "c", ["free", "same"], best_of=["language"])
    answers = answer_all(evidence)
    result = ranking(evidence, answers).headline
    assert result is not None and result.is_reversed
    (clause,) = result.clauses
    (turned,) = clause.choice.reversals
    assert turned.level_title in ("cores free", "cores same")
    assert turned.title == ("plain" if turned.level_title == "cores free" else "threaded")
    assert Sentences("ranking").headline(result) in headline(evidence, answers)


@pytest.mark.parametrize(("allowed", "named"), [([0, 1], False), ([1], True)])
def test_a_restriction_from_outside_is_named(allowed, named):
    machine = {"hosts": ["local"], "allowed": allowed, "topology": [{"cpu": 0}, {"cpu": 1}]}
    runs = {"r": {"cores": {"machines": [machine]}}, "imported": {}}
    found = restrictions(SimpleNamespace(runs=runs))
    assert bool(found) == named
    if named:
        assert (found[0].values["allowed"], found[0].values["cpus"]) == (1, ["1"])
