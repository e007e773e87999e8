"""Test what `run` advises after a campaign most of whose runs are excluded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wattwire.cli.verbs.run import _remedy

BUSY = {"code": "other_load", "detail": "others used 60 %"}
WAY = {"code": "other_interface", "detail": "host a by eth1"}


def remedy(*attempts: list[dict[str, str]]) -> str:
    """Return the advice for runs with these reasons against them; none means a valid run."""
    rows: list[dict[str, Any]] = [
        {"run": f"r{n}", "attempt": 1, "control": "", "settling": False, "used": not reasons,
         "verdict": "invalid" if reasons else "valid"}
        for n, reasons in enumerate(attempts)
    ]  # fmt: skip
    documents = {f"r{n}-1": {"reasons": reasons} for n, reasons in enumerate(attempts)}
    campaign: Any = SimpleNamespace(path="c", run=documents.__getitem__)
    return _remedy(campaign, rows)


@pytest.mark.parametrize(
    ("attempts", "fragment"),
    [
        (([BUSY], [BUSY]), "when the machine is quiet"),
        (([BUSY], [WAY]), "r1 is invalid: host a by eth1"),
    ],
)
def test_only_the_state_of_the_machine_permits_a_look(attempts, fragment):
    text = remedy(*attempts)
    assert fragment in text and ("look=true" in text) == (WAY not in attempts[1])


def test_without_exclusions_of_most_runs_there_is_no_advice():
    assert remedy([], [], [WAY]) == "" and remedy([]) == ""
