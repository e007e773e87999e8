"""Test that report/analysis.json matches its schema and has the numbers of the page."""

import json
from importlib import resources

import pytest
from jsonschema import Draft202012Validator

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.document import document
from wattwire.analysis.latency import all_series
from wattwire.analysis.rejudged import Rejudged
from wattwire.analysis.topics import topics
from wattwire.model.validity import ValidityLimits
from wattwire.report.page import build_report
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.store import Campaign


@pytest.fixture(scope="module")
def schema():
    path = resources.files("wattwire.analysis") / "analysis.schema.json"
    found = json.loads(path.read_text("utf-8"))
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


@pytest.mark.parametrize(
    "shape", [Shape(), Shape(blocks=1), Shape(b_over_a=1.2), Shape(loss_share=0.3)]
)
def test_the_file_beside_the_page_keeps_the_schema(tmp_path, schema, shape):
    campaign = write_campaign(tmp_path / "c", shape)
    page = build_report(Campaign(campaign))
    stored = json.loads((page.parent / "analysis.json").read_text("utf-8"))
    assert [error.message for error in schema.iter_errors(stored)] == []
    assert stored["contrasts"] and stored["treatments"]


@pytest.mark.parametrize(
    ("limits", "kinds"),
    [
        (ValidityLimits(look=True), ["look", "judged_again"]),
        (ValidityLimits(other_load_max=50), ["judged_again", "limit_disabled"]),
    ],
)
def test_notices_on_validity_limits_keep_the_schema(tmp_path, schema, limits, kinds):
    campaign = Campaign(write_campaign(tmp_path / "c", Shape(unknown_runs=(1, 2))))
    evidence = gather(Rejudged(campaign, limits, "look, other_load_max"))
    found = json.loads(json.dumps(document(evidence).values))
    assert [error.message for error in schema.iter_errors(found)] == []
    assert [notice["kind"] for notice in found["validity_notices"]] == kinds


def test_contrasts_are_those_of_the_answers_with_their_outcome(tmp_path):
    evidence = gather(Campaign(write_campaign(tmp_path / "c", Shape())))
    answers = answer_all(evidence)
    contrasts = document(evidence, answers).values["contrasts"]
    for answer, contrast in zip(answers.items, contrasts, strict=True):
        assert (contrast["response"], contrast["level"]) == (answer.response.column, answer.level)
        if contrast["kind"] == "none":
            assert contrast["reason"] == str(answer.result)
        else:
            assert contrast["low"] == answer.interval.low
            assert contrast["outcome"] == answers.outcome(answer)
    assert any(contrast["kind"] == "ratio" for contrast in contrasts)


def test_treatments_hold_every_valid_run_once(tmp_path):
    evidence = gather(Campaign(write_campaign(tmp_path / "c", Shape())))
    found = document(evidence).values
    assert sum(one["runs"] for one in found["treatments"]) == found["runs"]["valid"]
    assert found["runs"]["valid"] == evidence.usable.height


def test_topics_that_need_latencies_or_are_for_the_page_have_a_result_only_with_them(tmp_path):
    evidence = gather(Campaign(write_campaign(tmp_path / "c", Shape())))
    answers = answer_all(evidence)
    needing = {n for n, topic in topics().items() if topic.needs_series or topic.is_for_page}
    assert needing
    without = document(evidence, answers)
    assert set(without.results) == set(topics()) - needing
    complete = document(evidence, answers, all_series(evidence))
    assert set(complete.results) == set(topics())
    assert complete.values == without.values
