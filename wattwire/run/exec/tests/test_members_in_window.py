"""Test which processes of an observed tree belong to a window."""

from wattwire.run.exec.process_rows import BIRTH_STEP_NS, members_in_window

SPAN = (1_000_000_000, 2_000_000_000)


def member(born_ns, ended_ns):
    return {"born_ns": born_ns, "ended_ns": ended_ns}


def test_processes_that_lived_in_the_window_belong_to_it():
    before_and_during = member(0, 1_500_000_000)
    alive_throughout = member(0, None)
    during = member(1_100_000_000, 1_200_000_000)
    members = [before_and_during, alive_throughout, during]
    assert members_in_window(members, SPAN) == members


def test_processes_that_ended_before_or_began_after_the_window_do_not():
    assert members_in_window([member(0, SPAN[0]), member(3_000_000_000, None)], SPAN) == []


def test_a_start_within_its_uncertainty_after_the_end_belongs_to_the_window():
    at_once = member(SPAN[1] + BIRTH_STEP_NS - 1, SPAN[1] + BIRTH_STEP_NS)
    later = member(SPAN[1] + BIRTH_STEP_NS, None)
    assert members_in_window([at_once, later], SPAN) == [at_once]
