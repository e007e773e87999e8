"""Test the topic on security: holes, blind searches, and the words of the page."""

from dataclasses import replace

import pytest

from wattwire.analysis.topics.security.numbers import Proved, Security
from wattwire.report.topic_page import topic_page

SECURED = Proved("b02-p001", "on", "on", "TLSv1.3", "AES", 6, 0, 0, 0, 0, 385)
OPEN = Proved("b02-p002", "off", "off", "", "", 2, 1, 0, 100, 209, 794)


def text_of(*proved, unproved=()):
    page = topic_page("security", Security(len(proved), proved, unproved))
    return " ".join(page.texts)


def test_a_secured_treatment_without_a_hole_is_proved_against_an_open_one():
    both = Security(2, (SECURED, OPEN))
    assert not both.holes
    assert not both.blind
    words = text_of(SECURED, OPEN)
    assert "6 uninvited nodes were admitted to none of 1 control run" in words
    assert (
        "none of 385 frames had a piece of the payload, as frames of open treatments had" in words
    )


@pytest.mark.parametrize("name", ["admitted", "received", "delivered", "frames"])
def test_each_number_above_zero_is_a_hole_of_a_secured_treatment_only(name):
    leaky = replace(SECURED, **{name: 3})
    assert Security(1, (leaky,)).holes == (leaky,)
    assert "Security has holes: on (b02-p001)" in text_of(leaky)
    assert not Security(1, (replace(OPEN, **{name: 3}),)).holes


def test_an_open_treatment_whose_payload_is_not_seen_makes_the_search_blind():
    assert "proves nothing here" in text_of(SECURED, replace(OPEN, frames=0))
    assert "proves nothing here" not in text_of(SECURED, OPEN)


def test_a_missing_number_is_no_hole_and_its_reason_is_printed():
    unsearched = replace(SECURED, frames=None, frames_searched=0, absent="no link emulator")
    assert not Security(1, (unsearched,)).holes
    assert "not searched: no link emulator" in text_of(unsearched)


def test_a_run_that_proved_nothing_is_named():
    assert "1 control run proved nothing: b02-p003: died" in text_of(
        SECURED, unproved=("b02-p003: died",)
    )


def test_a_campaign_without_such_runs_has_no_section():
    assert not topic_page("security", Security()).parts
