"""Test the differences of placements with their ratios, and the sentences on them."""

from __future__ import annotations

import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.topics.placements.apart import COLUMNS
from wattwire.analysis.topics.placements.numbers import (
    Apart,
    Placements,
    RatioAt,
    Restriction,
    TreatmentPlacement,
    TwoModes,
    placements,
    restrictions,
)
from wattwire.analysis.topics.ranking.numbers import ranking
from wattwire.report.parts import Column
from wattwire.report.tests.answered import headline
from wattwire.report.tests.planted import planted
from wattwire.report.tests.synthetic import put_row, row_of
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.stats import Interval
from wattwire.store import Campaign

SENTENCES = Sentences("placements")
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


def test_each_placement_of_the_study_has_its_ratio(tmp_path):
    result = placements(campaign(tmp_path / "c", ["free", "same", "apart"]))
    (pair,) = result.apart
    assert (pair.place, pair.has_cores, result.more) == ("same_cpu", True, 0)
    assert pair.share > 0.95 and pair.other_share < 0.1
    assert (pair.level, pair.baseline_level) == ("threaded", "plain")
    for at in pair.ratios:
        truth = LATENCIES["threaded", at.cores] / LATENCIES["plain", at.cores]
        assert at.ratio.low < truth < at.ratio.high and at.ratio.level >= 0.95
    assert [at.cores for at in pair.ratios] == ["free", "same", "apart"]
    assert len(result.treatments) == 6


def test_a_study_without_other_placements_has_no_ratios(tmp_path):
    (pair,) = placements(campaign(tmp_path / "c", ["free"])).apart
    assert not pair.has_cores and pair.ratios == ()
    assert "Use --cores same,apart" in SENTENCES.apart(pair)
    assert placements(campaign(tmp_path / "d", ["same", "apart"])).apart == ()


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
    assert list(restrictions(runs)) == ([Restriction("", (1,), 2)] if named else [])


def test_the_section_and_the_first_lines_state_what_ran_where():
    ratio = Interval(2.0, 1.5, 2.5, 0.95, 5, "t")
    pair = Apart("a", "b", "siblings", 0.75, 0.25, True, "b", "a", "latency", "had", 0.95,
                 (RatioAt("free", ratio),))  # fmt: skip
    modes = TwoModes("", 2, 4, 3.0, "time")
    restriction = Restriction("edge", (0, 2), 8)
    of_treatment = TreatmentPlacement(("8",), (0.0, 0.75, 0.0, 0.25), 1.5, 0.5)
    result = Placements(True, (pair,), 2, (modes,), (restriction,), (of_treatment,), (0, 1, 3))
    page = topic_page("placements", result, [Column("clients", "clients")])
    assert [place for place, _ in page.terminal_lines] == [(3,), (3,)]
    section = page.section()
    assert section is not None
    *texts, table = section.parts
    assert [(text.key, text.value) for text in texts] == [
        ("placements.place", "siblings"), ("placements.more", "2"),
        ("placements.cause", "time"), ("placements.cpus", "2"),
    ]  # fmt: skip
    assert "difference. b had 2.00 [1.50, 2.50] (free) times the latency of a" in texts[0].words
    assert texts[3].words.startswith("edge: taskset") and "2 of 8 CPUs (0 and 2)" in texts[3].words
    assert [column.key for column in table.columns] == [
        "clients", "ran_on_same_cpu", "ran_on_siblings", "ran_on_further", "wait_us", "migrations",
    ]  # fmt: skip
    assert [*table.rows[0].values()] == ["8", 0.0, 0.75, 0.25, 1.5, 0.5]


def test_without_readings_there_is_no_section_and_commands_have_no_lines():
    assert topic_page("placements", Placements(True)).section() is None
    assert SENTENCES.more(Placements()) == ""
    of_command = Placements(restrictions=(Restriction("", (0,), 2),))
    page = topic_page("placements", of_command)
    assert page.terminal_lines == ()
    ((section, (_, threat)),) = page.elsewhere
    assert (section, threat.paragraph, threat.value) == ("threats", "internal", "1")
