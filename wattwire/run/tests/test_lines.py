"""Test that the parser accepts the lines that the contract allows and refuses all others."""

from __future__ import annotations

import json

import pytest

from wattwire.run.lines import BadLineError, parse_line, printable

READY = {
    "matched": 1, "startup_ns": 5, "discovery_ns": None,
    "library": {"name": "x", "version": "1", "build": ""},
    "effective": {"depth": 10, "rate": 0.5, "limit": 2**64 - 1, "names": ["a"]},
    "guarantee": {"delivery": "reliable", "ordering": "total", "overload": "block"},
}  # fmt: skip
SENT = {"begin_ns": 1, "end_ns": 2, "sent": 3, "scheduled": 3, "skipped": 0}


def line(keyword: str, fields: object) -> str:
    return f"{keyword} {json.dumps(fields)}"


def test_sound_lines_are_taken_as_they_are() -> None:
    assert parse_line(line("READY", READY), []) == ("READY", READY)
    assert parse_line(line("SENT", SENT), ["READY"]) == ("SENT", SENT)
    nothing_sent = {**SENT, "begin_ns": None, "end_ns": None}
    assert parse_line(line("SENT", nothing_sent), ["READY"])[1] == nothing_sent


def test_a_whole_number_that_is_written_as_a_float_is_a_whole_number() -> None:
    _, fields = parse_line(line("SENT", {**SENT, "sent": 3.0}), [])
    assert fields["sent"] == 3 and type(fields["sent"]) is int


@pytest.mark.parametrize(
    "text, told",
    [
        ("hello", "C-05: found 'hello'; allowed: a line of the form"),
        ("", "C-05"),
        ("LISTENING {}", r"C-06: LISTENING: \$: 'endpoints' is a required property"),
        (line("LISTENING", {"endpoints": 5}), "C-06.*5 is not of type 'array'"),
        (line("READY", {**READY, "startup_ns": "abc"}), "C-07.*'abc' is not of type"),
        (
            line("READY", {**READY, "effective": {"a": float("nan")}}),
            "C-07.*NaN is not a JSON number",
        ),
        (
            line("READY", {**READY, "effective": {"a": float("inf")}}),
            "C-07.*Infinity is not a JSON number",
        ),
        (line("READY", READY).replace("0.5", "1e999"), "C-07.*1e999 is not a finite number"),
        (line("READY", {**READY, "effective": {"a": "\ud800"}}), "C-07.*lone surrogate"),
        (line("READY", {**READY, "effective": {"\udfff": 1}}), "C-07.*lone surrogate"),
        (line("READY", {**READY, "effective": {"a": 2**64}}), "C-07.*more than 64 bits"),
        ('READY {"a":' + "[" * 40_000 + "]" * 10 + "}", "C-07: READY: .*"),
        (line("READY", {**READY, "effective": {"a": [[[[[[[[1]]]]]]]]}}), "C-07.*8 levels deep"),
        ("READY {" + "x" * 70_000 + "}", "C-07: a line of more than 60,000 characters"),
        (line("READY", {**READY, "effective": {"a": "x" * 9_000}}), "C-07.*9,000 characters"),
        (line("SENT", {**SENT, "sent": None}), "C-14.*None is not of type 'integer'"),
        (line("SENT", {**SENT, "sent": 2**53 + 1}), "C-14.*allowed: at most"),
        (line("SENT", {**SENT, "end_ns": 2**63}), "C-14.*allowed: at most"),
        ("DONE {}", "C-16: DONE: .*'sent' is a required property"),
        ("ERROR {}", "C-05: ERROR: .*'code' is a required property"),
    ],
)
def test_a_bad_line_is_refused_by_its_clause(text: str, told: str) -> None:
    with pytest.raises(BadLineError, match=f"^{told}"):
        parse_line(text, [])


def test_lines_come_once_and_in_order() -> None:
    for seen in (["READY"], ["SENT"], ["READY", "DONE"]):
        with pytest.raises(BadLineError, match="^C-05: found READY after"):
            parse_line(line("READY", READY), seen)
    error = {"code": 4, "key": None, "reason": "two threads say so"}
    assert parse_line(line("ERROR", error), ["READY", "ERROR"]) == ("ERROR", error)


def test_a_nodes_words_move_no_cursor() -> None:
    assert printable("no route\n\x1b[31m to é\x07") == "no route\n\\x1b[31m to é\\x07"
