"""Tests of the profiles of links: what they contain, and the message for each invalid value."""

from __future__ import annotations

from typing import Any

import pytest

from wattwire.model.errors import UsageError
from wattwire.model.links.profile import Bursts, Link, read_link

HEAD = {"title": "T", "summary": "S"}
RATE = {"rate_mbit_s": 10, "queue_bytes": 3000}


def read(trace: str = "", **document: Any) -> Link:
    return read_link("mine", {**HEAD, **document}, "links/mine/link.toml", lambda _: trace)


def test_a_direction_overrides_both() -> None:
    link = read(both={"delay_ms": 5, "loss": 0.1}, down={"delay_ms": 7})
    up, down = link.up.segments[0].direction, link.down.segments[0].direction
    assert (up.delay_ms, down.delay_ms) == (5.0, 7.0)
    assert up.loss == down.loss == 0.1 and not up.is_limited and not link.half_duplex


def test_changes_follow_each_other_and_keep_what_they_do_not_name() -> None:
    changes = [
        {"at_s": 2, "delay_ms": 9},
        {"at_s": 3, "direction": "up", "bursts": {"enter": 0.1, "leave": 0.5}},
    ]
    link = read(both={"delay_ms": 5, **RATE}, change=changes)
    assert [segment.at_s for segment in link.up.segments] == [0.0, 2.0, 3.0]
    last = link.up.segments[-1].direction
    assert (last.delay_ms, last.rate_bit_s, last.bursts) == (9.0, 10_000_000, Bursts(0.1, 0.5))
    assert len(link.down.segments) == 2


def test_a_trace_is_read_from_its_file() -> None:
    link = read("1\n1\n4\n", up={"trace": "t.txt", "queue_bytes": 1514})
    assert link.up.opportunities_ms == (1, 1, 4) and link.down.opportunities_ms == ()


BURSTS = {"enter": 0.1, "leave": 0.5}
CASES = {
    "delay below 0": ({"up": {"delay_ms": -1}}, "up.delay_ms: found -1; allowed: 0 to"),
    "jitter below 0": ({"up": {"jitter_ms": -1}}, "up.jitter_ms: found -1; allowed: 0 to"),
    "jitter above delay": (
        {"up": {"delay_ms": 1, "jitter_ms": 2}}, "up.jitter_ms: found 2; allowed: at most delay_ms",
    ),
    "shape": ({"up": {"jitter_shape": "bell"}}, "found 'bell'; allowed: uniform, exponential"),
    "reorders": ({"up": {"reorders": 1}}, "up.reorders: found 1; allowed: true or false"),
    "loss above 1": ({"down": {"loss": 1.5}}, "down.loss: found 1.5; allowed: a probability"),
    "loss and bursts": ({"up": {"loss": 0.1, "bursts": BURSTS}}, "up.loss: found 0.1; allowed"),
    "enter 0": ({"up": {"bursts": {**BURSTS, "enter": 0}}}, "up.bursts.enter: found 0; allowed"),
    "no leave": ({"up": {"bursts": {"enter": 1}}}, "up.bursts.leave: found nothing; allowed"),
    "loss_bad": ({"up": {"bursts": {**BURSTS, "loss_bad": 2}}}, "up.bursts.loss_bad: found 2;"),
    "bursts key": ({"up": {"bursts": {**BURSTS, "exit": 1}}}, 'up.bursts: unknown key "exit"'),
    "bursts 5": ({"up": {"bursts": 5}}, "up.bursts: found 5; allowed: a table"),
    "rate 0": ({"up": {**RATE, "rate_mbit_s": 0}}, "up.rate_mbit_s: found 0; allowed: 0.001 to"),
    "rate 1e-9": ({"up": {**RATE, "rate_mbit_s": 1e-9}}, "up.rate_mbit_s: found 1e-09; allowed"),
    "large queue": ({"up": {**RATE, "queue_bytes": 10**30}}, "queue_bytes: found 1000000000000000"),
    "small queue": (
        {"up": {**RATE, "queue_bytes": 1000}}, "up.queue_bytes: found 1000; allowed: 1514 or more",
    ),
    "queue without rate": ({"up": {"queue_bytes": 3000}}, "up.queue_bytes: found 3000; allowed"),
    "overhead": ({"up": {**RATE, "overhead_bytes": -15}}, "up.overhead_bytes: found -15; allowed"),
    "rate and trace": ({"up": {**RATE, "trace": "t"}}, "up.rate_mbit_s: found 10; allowed with a"),
    "half-duplex": (
        {"medium": "half-duplex", "up": RATE}, "down.rate_mbit_s: found nothing; allowed with",
    ),
    "medium": ({"medium": "air"}, "medium: found 'air'; allowed: full-duplex, half-duplex"),
    "title": ({"title": ""}, "title: found nothing; allowed: a string"),
    "key": ({"upp": {}}, 'unknown key "upp"; known: both, change, down, medium, summ'),
    "direction's key": ({"up": {"dellay_ms": 1}}, 'up: unknown key "dellay_ms"; known: bursts'),
    "direction": ({"up": 5}, "up: found 5; allowed: a table"),
    "change": ({"change": 5}, "change: found 5; allowed: [[change]] tables"),
    "no time": ({"change": [{"loss": 1}]}, "change 1: at_s: found nothing; allowed: 0.001"),
    "soon": ({"change": [{"at_s": 1e-12}]}, "change 1: at_s: found 1e-12; allowed: 0.001 to"),
    "never": ({"change": [{"at_s": 1e300}]}, "change 1: at_s: found 1e+300; allowed: 0.001 to"),
    "early": ({"change": [{"at_s": -1}]}, "change 1: at_s: found -1; allowed: 0.001 to 86400 s"),
    "times fall": (
        {"change": [{"at_s": 5}, {"at_s": 4}]}, "change 2: at_s: found 4; allowed: above 5",
    ),
    "place": ({"change": [{"at_s": 5, "direction": "left"}]}, "found 'left'; allowed: both, up"),
    "trace in a change": (
        {"change": [{"at_s": 5, "trace": "t"}]}, "change 1: trace: found 't'; allowed in a change",
    ),
    "value in a change": (
        {"change": [{"at_s": 5, "loss": 3}]}, "change 1.loss: found 3; allowed: a probability",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_invalid_profile_names_file_key_value_and_what_is_allowed(case: str) -> None:
    document, message = CASES[case]
    with pytest.raises(UsageError) as raised:
        read(**document)
    text = str(raised.value)
    assert text.startswith("links/mine/link.toml: "), text
    assert message in text, text


TRACES = {
    "3\n2\n": "t.txt:2: found 2; allowed: 3 or more, because times do not fall",
    "3\nx\n": "t.txt:2: found 'x'; allowed: an integer from 0 to 86400000, in ms",
    "9" * 5000 + "\n": "t.txt:1: found '9999",
    "1" + "0" * 30 + "\n": "allowed: an integer from 0 to 86400000, in ms",
    "-1\n": "t.txt:1: found '-1'; allowed: an integer from 0",
    "": "t.txt: found no time above 0",
    "0\n0\n": "t.txt: found no time above 0",
}


@pytest.mark.parametrize("trace", TRACES)
def test_an_invalid_trace_names_its_line(trace: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(trace, up={"trace": "t.txt", "queue_bytes": 3000})
    assert TRACES[trace] in str(raised.value)
