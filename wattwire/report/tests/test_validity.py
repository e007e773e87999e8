"""Tests of verdicts under changed limits, and of the notice on a look."""

import dataclasses
import json

import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.validity import JudgedAgain, Look, Rejudged, notices
from wattwire.model.deployment import Request
from wattwire.model.validity import ValidityLimits
from wattwire.report.parts import tables_of
from wattwire.report.sections import answers as answered
from wattwire.report.tests.synthetic import Shape, put_row, row_of, write_campaign
from wattwire.report.words.threats import threats
from wattwire.report.words.validity import JUDGED_AGAIN, sentence, sentences
from wattwire.store import Campaign

SMALL = {"patterns": ("topic",), "clients": (1,), "duration_s": 2.0, "blocks": 2}


@pytest.fixture
def busy(tmp_path):
    """Return a campaign of 8 runs, of which two had 41 % load from other processes."""
    return Campaign(write_campaign(tmp_path / "c", Shape(**SMALL, unknown_runs=(1, 2))))


def valid(reader) -> int:
    return gather(reader).usable.height


def test_a_wider_limit_makes_stored_runs_valid_and_a_narrower_one_excludes_them(busy):
    as_measured = valid(busy)
    assert valid(Rejudged(busy, ValidityLimits(other_load_max=0.5), "")) == as_measured + 2
    assert valid(Rejudged(busy, ValidityLimits(), "")) == as_measured
    assert valid(Rejudged(busy, ValidityLimits(other_load_max=0.005), "")) == 0
    assert valid(busy) == as_measured, "its own files stay"


def test_a_new_verdict_comes_with_its_reason_and_the_rest_of_the_run(busy):
    judged = Rejudged(busy, ValidityLimits(other_load_max=0.005), "other_load_max=0.005")
    run = busy.plan[0]["run"]
    document, before = judged.run(run), busy.run(run)
    assert document["verdict"] == "invalid"
    assert [reason["code"] for reason in document["reasons"]] == ["other_load"]
    assert document["window"] == before["window"]
    assert judged.study.validity.other_load_max == 0.005


def test_what_no_validity_limit_excluded_stays_excluded(busy):
    path = busy.path / "runs" / f"{busy.plan[3]['run']}-1" / "run.json"
    document = json.loads(path.read_text())
    document["reasons"].append({"verdict": "invalid", "code": "corrupt", "detail": "2 arrived so"})
    path.write_text(json.dumps(document))
    judged = Rejudged(busy, ValidityLimits(look=True), "look=true")
    (left,) = gather(judged).excluded["run"].to_list()
    assert left == busy.plan[3]["run"]


def test_the_page_is_stamped_where_limits_were_changed_afterwards(busy):
    changed = Rejudged(busy, ValidityLimits(other_load_max=0.5), "other_load_max=0.5")
    assert sentences(gather(busy)) == []
    assert list(notices(gather(changed))) == [JudgedAgain("other_load_max=0.5", 8, 8, 6, 8)]
    (told,) = sentences(gather(changed))
    assert told.startswith(JUDGED_AGAIN)
    assert told == (
        "After the measurement, the runs were judged again with other_load_max=0.5: 8 of 8 runs "
        "are valid (as measured: 6 of 8 runs are valid). The answers are exploratory."
    )


def test_a_share_in_percent_by_mistake_is_said_to_open_the_limit(busy):
    changed = Rejudged(busy, ValidityLimits(other_load_max=50), "other_load_max=50")
    assert sentences(gather(changed))[1].startswith(
        "other_load_max=50 disables this limit (50 % is"
    )


def test_a_look_without_a_run_says_nothing_of_default_limits(tmp_path):
    shape = Shape(**SMALL, drop_runs=tuple(range(100)), study={"validity": {"look": True}})
    campaign = Campaign(write_campaign(tmp_path / "c", shape))
    assert sentences(gather(campaign)) == [
        "The state of the machine excludes no run, because validity.look is set."
    ]


def test_answers_under_limits_that_were_changed_afterwards_are_not_called_registered(busy):
    def note(reader) -> str:
        evidence = gather(reader)
        part = answered.section(evidence, answer_all(evidence))
        (table,) = [one for one in tables_of(part.parts) if one.id == "answers"]
        return table.note

    changed = Rejudged(busy, ValidityLimits(other_load_max=0.5), "other_load_max=0.5")
    assert "The study registered these questions" in note(busy)
    assert "Registered" not in note(changed)
    assert "because of changes after the measurement (validity limits changed)" in note(changed)
    evidence = gather(changed)
    told = " ".join(words for _, words in threats(evidence, answer_all(evidence)))
    assert "Validity limits were changed after the measurement (other_load_max=0.5)" in told


def test_the_stamp_counts_the_same_runs_before_and_after(busy):
    plan = busy.path / "plan.json"
    entries = json.loads(plan.read_text())
    entries[-1]["control"] = "settling"
    plan.write_text(json.dumps(entries))
    path = busy.path / "runs" / f"{entries[-1]['run']}-1" / "summary.json"
    row_of(path).with_columns(control=pl.lit("settling"), used=False).pipe(put_row, path)
    campaign = Campaign(busy.path)
    changed = Rejudged(campaign, ValidityLimits(other_load_max=0.5), "other_load_max=0.5")
    (told,) = sentences(gather(changed))
    assert "7 of 7 runs are valid (as measured: 5 of 7 runs are valid)." in told


def test_a_look_says_what_the_default_limits_would_have_excluded(busy):
    look = Rejudged(busy, ValidityLimits(look=True), "look=true")
    assert next(notices(gather(look))) == Look(8, 2, (("other_load", 2),))
    told = sentences(gather(look))[0]
    assert told.startswith(
        "The state of the machine excludes no run, because validity.look is set."
    )
    assert told.endswith("would have excluded 2 of 8 runs (25 %): other load 2.")


def test_a_command_names_a_busy_machine_and_no_limit_that_nobody_chose(busy):
    look = Look(4, 2, (("other_load", 2),), of_command=True)
    assert sentence(look).startswith("In 2 of 4 runs, the machine was not quiet (other load 2).")
    evidence = gather(Rejudged(busy, ValidityLimits(look=True), "look=true"))
    evidence.attempts = evidence.attempts.head(0)
    evidence.study = dataclasses.replace(evidence.study, request=Request(command=("x",)))
    assert not any(isinstance(notice, Look) for notice in notices(evidence))
