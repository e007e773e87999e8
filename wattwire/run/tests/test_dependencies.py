"""Test the table of what a run depends on."""

from __future__ import annotations

import signal

import pytest

from wattwire.run.dependencies import (
    BEFORE_GO,
    DEPENDENCIES,
    POINTS,
    WINDOW,
    DependencyLostError,
    End,
    fails,
    require,
)


@pytest.mark.parametrize("point", POINTS)
def test_only_what_is_measured_can_end_as_a_result(point):
    results = {kind for kind, d in DEPENDENCIES.items() if d.end_at(point) is End.RESULT}
    assert results == {"node"}


def test_each_dependency_states_who_watches_it_and_what_is_replaced():
    assert all(d.watched_by and d.replaced for d in DEPENDENCIES.values())


def test_all_lost_dependencies_are_named_at_once():
    with pytest.raises(DependencyLostError, match="switch.*disk"):
        require(WINDOW, {"switch": "the switch ended", "disk": "the disk is full"})
    require(WINDOW, {})


@pytest.mark.parametrize(
    ("kind", "number", "out_of_memory", "is_failed"),
    [
        ("service", signal.SIGKILL, False, True),
        ("service", signal.SIGTERM, False, True),
        ("service", signal.SIGKILL, True, False),
        ("service", signal.SIGSEGV, False, False),
        ("service", None, False, False),
        ("bridge", signal.SIGKILL, False, True),
        ("node", signal.SIGKILL, False, False),
        ("guard", None, False, True),
    ],
)
def test_a_program_that_ends_by_itself_under_load_is_a_result(
    kind, number, out_of_memory, is_failed
):
    exit_status = {"code": None if number else 1, "signal": number}
    assert fails(kind, BEFORE_GO, exit_status, out_of_memory) == is_failed
