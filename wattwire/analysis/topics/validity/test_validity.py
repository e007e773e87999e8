"""Tests of verdicts under changed limits, and of the notice on a look."""

import dataclasses
import json

import polars as pl
import pytest

from wattwire.analysis.contrasts import answer_all
from wattwire.analysis.dataset import gather
from wattwire.analysis.rejudged import Rejudged
from wattwire.analysis.topics.threats.numbers import threats
from wattwire.analysis.topics.validity.numbers import (
    DisabledLimit,
    JudgedAgain,
    Look,
    Validity,
    disabled,
    stored,
    validity,
)
from wattwire.model.deployment import Request
from wattwire.model.validity import ValidityLimits
from wattwire.report.parts import tables_of
from wattwire.report.tests.answered import section
from wattwire.report.tests.synthetic import Shape, put_row, row_of, write_campaign
from wattwire.report.topic_page import Sentences, topic_page
from wattwire.store import Campaign

SENTENCES = Sentences("validity")
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
    assert validity(gather(busy)) == Validity()
    result = validity(gather(changed))
    assert result.notices == (JudgedAgain("other_load_max=0.5", 8, 8, 6, 8),)
    page = topic_page("validity", result)
    ((place, told),) = page.lines
    assert (place, page.parts) == ((20,), ())
    assert told.startswith(SENTENCES.judged_again())
    assert told == SENTENCES.sentence(*result.notices)
    assert told == (
        "After the measurement, the runs were judged again with other_load_max=0.5: 8 of 8 runs "
        "are valid (as measured: 6 of 8 runs are valid). The answers are exploratory."
    )


def test_a_share_in_percent_by_mistake_is_said_to_open_the_limit(busy):
    changed = Rejudged(busy, ValidityLimits(other_load_max=50), "other_load_max=50")
    assert validity(gather(changed)).notices[1] == DisabledLimit("other_load_max", 50)


def test_a_share_of_one_or_more_disables_its_limit():
    assert disabled(ValidityLimits(steal_max=0.99)) == []
    (notice,) = disabled(ValidityLimits(steal_max=1))
    text = "steal_max=1 disables this limit, so it excludes no run."
    assert SENTENCES.sentence(notice) == text
    (notice,) = disabled(ValidityLimits(other_load_max=50))
    assert SENTENCES.sentence(notice) == (
        "other_load_max=50 disables this limit (50 % is written 0.5 or 50%; 50 is 5,000 %), so it "
        "excludes no run."
    )


def test_a_look_without_a_run_says_nothing_of_default_limits(tmp_path):
    shape = Shape(**SMALL, drop_runs=tuple(range(100)), study={"validity": {"look": True}})
    campaign = Campaign(write_campaign(tmp_path / "c", shape))
    (notice,) = validity(gather(campaign)).notices
    text = "The state of the machine excludes no run, because validity.look is set."
    assert SENTENCES.sentence(notice) == text


def test_answers_under_limits_that_were_changed_afterwards_are_not_called_registered(busy):
    def note(reader) -> str:
        evidence = gather(reader)
        part = section(evidence, answer_all(evidence))
        (table,) = [one for one in tables_of(part.parts) if one.id == "answers"]
        return table.note

    changed = Rejudged(busy, ValidityLimits(other_load_max=0.5), "other_load_max=0.5")
    assert "The study registered these questions" in note(busy)
    assert "Registered" not in note(changed)
    assert "because of changes after the measurement (validity limits changed)" in note(changed)
    evidence = gather(changed)
    conclusion = threats(evidence, answer_all(evidence)).conclusion
    assert conclusion.limits_changed == "other_load_max=0.5"


def test_the_stamp_counts_the_same_runs_before_and_after(busy):
    plan = busy.path / "plan.json"
    entries = json.loads(plan.read_text())
    entries[-1]["control"] = "settling"
    plan.write_text(json.dumps(entries))
    path = busy.path / "runs" / f"{entries[-1]['run']}-1" / "summary.json"
    row_of(path).with_columns(control=pl.lit("settling"), used=False).pipe(put_row, path)
    campaign = Campaign(busy.path)
    changed = Rejudged(campaign, ValidityLimits(other_load_max=0.5), "other_load_max=0.5")
    assert validity(gather(changed)).notices == (JudgedAgain("other_load_max=0.5", 7, 7, 5, 7),)


def test_a_look_says_what_the_default_limits_would_have_excluded(busy):
    look = Rejudged(busy, ValidityLimits(look=True), "look=true")
    result = validity(gather(look))
    found, again = result.notices
    assert found == Look(8, 2, (("other_load", 2),))
    assert again == JudgedAgain("look=true", 8, 8, 6, 8)
    told = SENTENCES.sentence(found)
    assert told.endswith("would have excluded 2 of 8 runs (25 %): other load 2.")
    two = Look(8, 2, (("other_load", 2), ("stall", 1)))
    assert SENTENCES.sentence(two).endswith("(25 %): other load 2, stall 1.")
    assert SENTENCES.sentence(Look(8, 0, ())).endswith("not have excluded any run (8 runs).")
    entry, _ = stored(result)["validity_notices"]
    assert (entry["kind"], entry["excluded"], entry["codes"]) == ("look", 2, {"other_load": 2})


def test_one_valid_run_is_in_the_singular():
    told = SENTENCES.sentence(JudgedAgain("x=1", 1, 2, 0, 2))
    assert "1 of 2 runs is valid (as measured: 0 of 2 runs are valid)" in told


def test_a_command_names_a_busy_machine_and_no_limit_that_nobody_chose(busy):
    look = Look(4, 2, (("other_load", 2),), of_command=True)
    told = SENTENCES.sentence(look)
    assert told.startswith("In 2 of 4 runs, the machine was not quiet (other load 2).")
    evidence = gather(Rejudged(busy, ValidityLimits(look=True), "look=true"))
    evidence.attempts = evidence.attempts.head(0)
    evidence.study = dataclasses.replace(evidence.study, request=Request(command=("x",)))
    assert not any(isinstance(notice, Look) for notice in validity(evidence).notices)
