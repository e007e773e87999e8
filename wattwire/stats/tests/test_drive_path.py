"""Test the path of a robot against closed forms and against integration in steps of 1 µs."""

from __future__ import annotations

import numpy as np
import pytest

from wattwire.stats.motion.drive_path import (
    DrivePath,
    distances,
    drive_path,
    lap_drift,
    since_begin,
    watchdog_stops,
)
from wattwire.stats.results import TooFew

PERIOD_S, LEG_S, SPEED, TURN = 0.1, 3.0, 1 / 3, np.radians(30.0)
LAP_S = 8 * LEG_S
WATCHDOG_S = 0.5
STEP_S = 1e-6


def square(laps=4):
    """Return the due times (s), the speeds and the turns of a square that is driven `laps` times.

    A lap has four sides of 1 m and four turns of 90°.
    """
    due_s = np.arange(round(laps * LAP_S / PERIOD_S)) * PERIOD_S
    is_straight = (np.arange(len(due_s)) // round(LEG_S / PERIOD_S)) % 2 == 0
    return due_s, np.where(is_straight, SPEED, 0.0), np.where(is_straight, 0.0, TURN)


def path_of(arrived_s, speeds, turns, watchdog_s=WATCHDOG_S) -> DrivePath:
    path = drive_path(arrived_s, speeds, turns, watchdog_s)
    assert isinstance(path, DrivePath)
    return path


def test_commands_in_time_drive_a_square_that_ends_where_it_began():
    due_s, speeds, turns = square(1)
    path = path_of(due_s, speeds, turns)
    corners = path.poses(np.arange(1, 5) * 2 * LEG_S)
    assert corners[:, :2] == pytest.approx(np.array([[1, 0], [1, 1], [0, 1], [0, 0]]), abs=1e-12)
    assert corners[:, 2] == pytest.approx(np.radians([90, 180, 270, 360]), abs=1e-12)


@pytest.mark.parametrize("delay_s", [0.001, 0.05, 3.0])
def test_a_constant_delay_moves_nothing(delay_s):
    due_s, speeds, turns = square()
    at_s = np.linspace(0.0, 4 * LAP_S, 5000)
    arrivals_s = (since_begin(due_s + extra, due_s) for extra in (delay_s, 0.0))
    delayed, in_time = (path_of(arrived_s, speeds, turns) for arrived_s in arrivals_s)
    assert np.abs(delayed.poses(at_s) - in_time.poses(at_s)).max() <= 1e-6
    assert lap_drift(delayed, LAP_S, 4).max_m <= 1e-6


def test_the_loss_or_the_delay_of_the_first_commands_moves_no_other_command():
    due_s, speeds, turns = square()
    first_lost = since_begin(due_s[10:] + 0.02, due_s[10:])
    assert first_lost == pytest.approx(due_s[10:])
    path = path_of(first_lost, speeds[10:], turns[10:])
    positions = path.poses(np.array([0.0, 0.9, 1.0, 2.0, 6.0]))[:, 0]
    assert positions == pytest.approx([0.0, 0.0, 0.0, SPEED, 2 * SPEED])
    delays_s = np.full(len(due_s), 0.02)
    delays_s[0] = 0.09
    assert since_begin(due_s + delays_s, due_s) == pytest.approx([0.07, *due_s[1:]])


@pytest.mark.parametrize("late_s", [0.003, 0.02, 0.099])
def test_a_turn_begun_late_turns_all_that_follows(late_s):
    due_s, speeds, turns = square()
    first_turn = int(np.flatnonzero(turns)[0])
    arrived_s = due_s.copy()
    arrived_s[first_turn] += late_s
    after_s = np.linspace(2 * LEG_S, 4 * LAP_S - WATCHDOG_S, 3000)
    late, in_time = (path_of(times, speeds, turns) for times in (arrived_s, due_s))
    missing = in_time.poses(after_s)[:, 2] - late.poses(after_s)[:, 2]
    assert missing == pytest.approx(np.full(len(after_s), TURN * late_s), abs=1e-9)


def test_a_late_turn_of_the_first_lap_turns_the_later_laps_alike():
    due_s, speeds, turns = square(3)
    late_s = 0.05
    due_s[int(np.flatnonzero(turns)[0])] += late_s
    path, angle = path_of(due_s, speeds, turns), TURN * late_s
    second, third = (path.poses(lap * LAP_S + np.linspace(0.0, LAP_S, 500)) for lap in (1, 2))
    assert third[:, 2] - second[:, 2] == pytest.approx(np.full(500, 2 * np.pi), abs=1e-9)
    assert second[0, 2] == pytest.approx(2 * np.pi - angle, abs=1e-9)


def test_a_watchdog_stops_the_robot_until_the_next_command():
    path = path_of([0.0, 2.0], [1.0, 1.0], [0.0, 0.0], 0.5)
    positions = path.poses(np.array([0.25, 0.5, 1.9, 2.25, 2.5, 9.0]))[:, 0]
    assert positions == pytest.approx([0.25, 0.5, 0.5, 0.75, 1.0, 1.0])
    assert watchdog_stops([0.0, 2.0, 2.4], 0.5, 2.9) == 1
    assert watchdog_stops([2.0, 0.0, 2.4], 0.5, 3.0) == 2  # also after the last command
    assert watchdog_stops([0.0, 2.0, 2.4], 0.5, 0.4) == 0


def test_a_command_overtaken_by_a_later_one_holds_when_it_arrives():
    # Command 1 arrives after command 2, and the robot knows no order of commands.
    path = path_of([0.0, 0.3, 0.2], [0.0, 5.0, 1.0], [0.0, 0.0, 0.0], 10.0)
    assert path.poses(np.array([0.3, 0.4]))[:, 0] == pytest.approx([0.1, 0.6])


def test_less_than_two_laps_or_no_arrival_give_no_drift():
    due_s, speeds, turns = square(1)
    assert isinstance(lap_drift(path_of(due_s, speeds, turns), LAP_S, 1), TooFew)
    assert isinstance(drive_path([], [], [], WATCHDOG_S), TooFew)


def test_distances_have_the_mean_the_percentile_and_the_greatest():
    first = np.zeros((101, 2))
    last = np.stack([0.6 * np.arange(101), 0.8 * np.arange(101)], axis=1)
    drift = distances(first, last)
    assert (drift.mean_m, drift.p95_m, drift.max_m) == pytest.approx((50.0, 95.0, 100.0))


def integrated(arrived_s, speeds, turns, watchdog_s, end_s):
    """Return x, y and heading at `end_s` by sums over steps of 1 µs (array of 3).

    In each step, the robot has the velocities of the last arrival before the step. Nothing here
    knows arcs or pieces, so an error of the closed forms shows.
    """
    steps = round(end_s / STEP_S)
    last = np.zeros(steps, dtype=np.int64)
    order = np.argsort(arrived_s, kind="stable")
    begins = np.ceil(arrived_s[order] / STEP_S).astype(np.int64)
    for place, begin in enumerate(begins):  # a later arrival of the same step wins
        if begin < steps:
            last[begin] = place
    last = np.maximum.accumulate(last)
    held_s = np.arange(steps) * STEP_S - arrived_s[order][last]
    runs = held_s <= watchdog_s
    turned = np.cumsum(np.where(runs, turns[order][last], 0.0)) * STEP_S
    speed = np.where(runs, speeds[order][last], 0.0)
    x_m, y_m = (float((speed * f(turned)).sum() * STEP_S) for f in (np.cos, np.sin))
    return np.array([x_m, y_m, turned[-1]])


def random_schedule(seed):
    """Return the arrivals (s) from 0 on, speeds, turns, watchdog (s) and end (s) of a schedule.

    Delays are up to three periods, so commands overtake each other; a fifth of them are lost.
    """
    random = np.random.default_rng(seed)
    period_s, end_s = random.uniform(0.02, 0.2), 1.0
    due_s = np.arange(0.0, end_s, period_s)
    arrived_s = due_s + random.exponential(random.choice([0.1, 1.0]) * period_s, len(due_s))
    kept = random.random(len(due_s)) > 0.2
    kept[0] = True
    arrived_s = arrived_s[kept] - arrived_s[kept].min()
    speeds = random.uniform(-1.0, 1.0, len(arrived_s))
    turns = random.uniform(-3.0, 3.0, len(arrived_s))
    return arrived_s, speeds, turns, random.uniform(1.0, 4.0) * period_s, end_s


def check_against_integration(seeds):
    worst_m = 0.0
    for seed in seeds:
        arrived_s, speeds, turns, watchdog_s, end_s = random_schedule(seed)
        exact = path_of(arrived_s, speeds, turns, watchdog_s).poses(np.array([end_s]))[0]
        steps = integrated(arrived_s, speeds, turns, watchdog_s, end_s)
        worst_m = max(worst_m, float(np.hypot(*(exact - steps)[:2])))
        assert exact[2] == pytest.approx(steps[2], abs=1e-3)
    assert worst_m <= 1e-3
    return worst_m


def test_ten_random_schedules_agree_with_integration():
    check_against_integration(range(10))


@pytest.mark.slow
def test_a_thousand_random_schedules_agree_with_integration():
    check_against_integration(range(1000))
