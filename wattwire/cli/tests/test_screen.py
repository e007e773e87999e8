"""Tests of the progress of builds, which shows cell, number of builds, step and time."""

from __future__ import annotations

import io
from dataclasses import asdict

import pytest
from rich.console import Console

from wattwire.cli.screen import PlainProgress, ScreenProgress, attempt_text, build_words
from wattwire.cli.wrap import LOG_COLUMNS
from wattwire.rig import BuildStep


def step(number, elapsed_s, done=False, name="middle/language"):
    return asdict(BuildStep(name, 1, 5, number, 4, elapsed_s, done, "about 3 minutes"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (step(0, 0.0), "building middle/language (1 of 5), which takes about 3 minutes"),
        (step(1, 12.3), "building middle/language (1 of 5), step 1 of 4, 12 s"),
        (step(4, 75.0, done=True), "built middle/language (1 of 5) in 1 min 15 s"),
        ({**step(2, 1.0), "builds": 1}, "building middle/language, step 2 of 4, 1 s"),
    ],
)
def test_a_build_is_told_with_its_cell_its_place_its_step_and_its_time(fields, message):
    assert build_words(fields, fields["elapsed_s"]) == message


def test_a_log_has_a_line_for_each_step_and_one_from_time_to_time():
    stream = io.StringIO()
    progress = PlainProgress(stream)
    for fields in (step(0, 0), step(1, 1), step(1, 2), step(1, 20), step(1, 33), step(1, 40),
                   step(2, 41), step(4, 50, done=True)):  # fmt: skip
        progress.event("building", **fields)
    message = [line.strip().removeprefix("building ") for line in stream.getvalue().splitlines()]
    place = "middle/language (1 of 5)"
    assert message == [
        f"{place}, which takes about 3 minutes",
        f"{place}, step 1 of 4, 1 s",
        f"{place}, step 1 of 4, 33 s",
        f"{place}, step 2 of 4, 41 s",
        f"built {place} in 50 s",
    ]


@pytest.mark.parametrize("width", [40, 80])
def test_on_a_terminal_it_is_one_line_that_is_never_wrapped_and_whose_clock_runs(width):
    console = Console(file=io.StringIO(), force_terminal=True, width=width)
    progress = ScreenProgress(console)
    try:
        name = "a-middleware-of-a-long-name/a-language-of-a-long-name"
        progress.event("building", **step(1, 12.0, name=name))
        lines = console.render_lines(progress._line(), pad=False)
        assert len(lines) == 1
        progress.event("building", **step(1, 12.0))
        first = str(progress._line())
        progress._build_began_s -= 3.0
        assert "step 1 of 4, 12 s" in first and "step 1 of 4, 15 s" in str(progress._line())
        progress.event("building", **step(4, 20.0, done=True))
        assert str(progress._line()) == ""
    finally:
        progress.close()


def test_runs_are_told_on_the_line_only_when_there_are_some():
    console = Console(file=io.StringIO(), force_terminal=True, width=LOG_COLUMNS)
    progress = ScreenProgress(console)
    try:
        assert "0/0" not in str(progress._line())
        progress.event("campaign", path="c", runs=2, left=2, skipped=0)
        progress.event("run", run="b01-p001", label="x=1")
        progress.event("phase", phase="window")
        assert str(progress._line()) == "0/2 runs · b01-p001 x=1 · window"
    finally:
        progress.close()


def test_an_attempt_names_the_flows_that_lost_messages():
    fields = {"verdict": "valid", "outcome": "completed", "detail": "", "reasons": []}
    figures = {"sent": 270, "lost": 114, "lost.flow.command": 0, "lost.flow.image": 114,
               "latency_p50_us.flow.command": 900.4}  # fmt: skip
    text = attempt_text({**fields, "figures": figures})
    assert text == "valid, sent 270, lost 114 (image 114), p50 command 900 µs"
