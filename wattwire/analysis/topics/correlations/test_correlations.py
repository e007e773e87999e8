"""Test the correlations of a question's responses, with planted values, and their sentences."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.dataset import column, levels_in, levels_of, with_derived
from wattwire.analysis.topics.correlations.numbers import (
    NONE_DETECTED,
    POSITIVE,
    Correlated,
    Correlation,
    Correlations,
    QuestionCorrelations,
    correlations,
    of_question,
)
from wattwire.model.questions import Question
from wattwire.report.page import build_report
from wattwire.report.tests.requested_campaign import campaign_of, evidence_of
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.stats import Interval, TooFew
from wattwire.stats.association import Association
from wattwire.store import Campaign

SENTENCES = Sentences("correlations")


def asked(evidence, responses, beside) -> QuestionCorrelations:
    return of_question(evidence, _question(responses, beside), 2)


def _question(responses, beside) -> Question:
    return Question("Q", "?", responses=tuple(responses), beside=tuple(beside))


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Return the evidence of twelve treatments.

    Their CPU time is proportional to time but not to page faults.
    """
    evidence = evidence_of(
        tmp_path_factory.mktemp("beside"), intervals_s=(0.05, 0.2, 0.4), clients=(1, 2), blocks=2
    )
    named = ("language", "interval_s", "clients")
    keys = levels_in(evidence.usable, named)
    order = sorted(set(keys))
    time_us = np.array([10.0 * 1.5 ** order.index(key) for key in keys])
    faults = np.array([(7 * order.index(key)) % 12 + 5.0 for key in keys])
    noise = np.array([1.02 if order.index(key) % 2 else 1.0 for key in keys])
    evidence.usable = with_derived(
        evidence.usable.drop("time_us_per_message").with_columns(
            cpu_us_per_message=3.0 * time_us * noise, rate_hz_achieved=1e6 / time_us
        )
    ).with_columns(
        [pl.Series(name, faults) for name in ("faults_minor.client.0", "faults_minor.server.0")]
    )
    two = pl.Series([clients == 2 for clients in levels_of(evidence.usable, "clients")])
    again = pl.when(two).then(pl.col("faults_minor.client.0")).alias("faults_minor.client.1")
    evidence.usable = evidence.usable.with_columns(again)
    return evidence


def test_a_planted_proportion_is_found_with_its_numbers(planted) -> None:
    (cpu,) = asked(planted, ["cpu_us_per_message"], ["time_us_per_message"]).responses
    (pair,) = cpu.correlations
    assert (pair.response, pair.correlate) == ("CPU time per message", "time per message")
    assert (pair.conclusion, pair.treatments) == (POSITIVE, 12)
    assert pair.exponent is not None and pair.exponent.estimate == pytest.approx(1, abs=0.01)
    assert pair.reading == "in proportion"


def test_quantities_without_an_association_have_none(planted) -> None:
    (cpu,) = asked(planted, ["cpu_us_per_message"], ["faults_minor"]).responses
    (pair,) = cpu.correlations
    assert (pair.correlate, pair.conclusion) == ("minor page faults", NONE_DETECTED)


def test_energy_that_no_meter_measured_is_not_replaced_by_cpu_time(planted) -> None:
    energy, cpu = asked(
        planted, ["energy_uj_per_message", "cpu_us_per_message"], ["time_us_per_message"]
    ).responses
    assert (energy.is_energy, energy.is_measured, energy.correlations) == (True, False, ())
    assert [pair.conclusion for pair in cpu.correlations] == [POSITIVE]


def test_missing_correlates_and_too_few_treatments_are_named(planted, tmp_path) -> None:
    absent = asked(planted, ["cpu_us_per_message"], ["switches_voluntary"])
    assert absent.unmeasured == ("voluntary context switches",)
    assert not absent.is_countable and not absent.has_correlates
    few = asked(evidence_of(tmp_path, clients=(1,)), ["cpu_us_per_message"], ["latency_p50_us"])
    (pair,) = few.responses[0].correlations
    assert pair.reason.startswith("there are only 2 treatments with both, and at least 4")
    assert correlations(planted) == Correlations(), "no question of the study has correlates"


def test_system_calls_are_those_of_the_runs_that_counted_them(planted, monkeypatch) -> None:
    calls = ["syscalls_per_message"]
    before = asked(planted, ["cpu_us_per_message"], calls)
    assert (before.unmeasured, before.is_countable) == (("system calls per message",), True)
    counted = planted.usable.with_columns(
        syscalls_per_message=column(planted.usable, "time_us_per_message") / 10
    )
    monkeypatch.setattr(planted, "traced", counted)
    (cpu,) = asked(planted, ["cpu_us_per_message"], calls).responses
    (pair,) = cpu.correlations
    assert (pair.correlate, pair.conclusion) == ("system calls per message", POSITIVE)
    assert pair.treatments == 12


def test_the_sentences_of_a_question_follow_its_answers_in_order(planted) -> None:
    of_second = asked(
        planted,
        ["energy_uj_per_message", "cpu_us_per_message"],
        ["time_us_per_message", "switches_voluntary"],
    )
    parts = topic_page("correlations", Correlations((of_second,))).parts
    assert {place for place, _ in parts} == {(30, 2, 30)}
    texts = [text for _, text in parts]
    assert [(text.key, text.value) for text in texts] == [
        ("correlations.is_measured", "False"),
        ("correlations.conclusion", POSITIVE),
        ("correlations.unmeasured", "1"),
        ("", ""),
    ]
    assert {text.tone for text in texts} == {"item"}


def test_a_sentence_has_the_interval_or_the_p_value_of_its_coefficient() -> None:
    exponent = Interval(2.0, 1.5, 2.5, 0.95, 12, "t")
    interval = Interval(0.5, 0.25, 0.75, 0.95, 12, "z")
    coefficient = Association("Spearman", 0.5, 0.01, "t", interval, 12)
    text = SENTENCES.correlation(Correlation("cost", "time", 12, coefficient, exponent, "grows"))
    assert text.startswith("Cost correlates positively with time: ")
    assert "ρ 0.500 (0.250 to 0.750) over 12 treatments; " in text
    assert "exponent 2.00 (1.50 to 2.50): grows" in text
    few = Association("Spearman", -0.5, 0.25, "exact", TooFew(5, 10, "points"), 5)
    pair = Correlation("cost", "time", 5, few, exponent, "grows")
    assert pair.conclusion == NONE_DETECTED
    assert "was detected: Spearman's ρ −0.500 (p = 0.25) over" in SENTENCES.correlation(pair)
    assert SENTENCES.correlation(Correlation("a b", "c", reason="none")) == "A b and c: none."
    response = Correlated("power", is_energy=True, is_measured=False)
    assert SENTENCES.unmeasured_response(response).startswith("Power: not available")


def test_a_page_with_such_a_question_prints_them_under_the_question(tmp_path) -> None:
    question = {"id": "RQ3", "text": "Does it correlate?", "responses": ["cpu_us_per_message"],
                "beside": ["latency_p50_us"]}  # fmt: skip
    at = campaign_of(tmp_path, blocks=2, clients=(1, 2, 3))
    study = json.loads((at / "study.json").read_text())
    study["question"].append(question)
    (at / "study.json").write_text(json.dumps(study))
    page = build_report(Campaign(at)).read_text("utf-8")
    assert "Does it correlate?" in page and "CPU time per message correlates positively" in page
    assert (
        "Not answered, because this campaign holds the question's factors at one level" not in page
    )
