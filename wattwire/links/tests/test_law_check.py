"""Tests of the check: it passes the law, and detects laws that were made wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from wattwire.links.findings import Finding
from wattwire.links.law_check import LawCheck
from wattwire.links.link_law import loss_statistics
from wattwire.links.loads import apply_between_ends, frames_at, with_course
from wattwire.links.statistics import Effort, check_part, frames_needed, losses_of, parts
from wattwire.model.errors import MissingError
from wattwire.model.links.profile import DIRECTIONS, Direction, Link, read_link
from wattwire.rig.emulator import EmulatorError, Port, apply_law, find_emulator

SMALL = Effort(1, frames_min=20_000, bursts_min=500, half_width_max=0.2)
BOTH = {
    "delay_ms": 20, "jitter_ms": 5, "rate_mbit_s": 10, "queue_bytes": 30_000,
    "bursts": {"enter": 0.02, "leave": 0.25},
}  # fmt: skip
CHANGE = {"at_s": 5, "delay_ms": 30, "rate_mbit_s": 5}


@pytest.fixture(autouse=True)
def emulator_is_built() -> None:
    try:
        find_emulator()
    except MissingError as reason:
        pytest.skip(str(reason))


def link_of(both: dict[str, object] = BOTH, trace: str = "", **document: object) -> Link:
    document = {"title": "T", "summary": "S", "both": both, **document}
    return read_link("example", document, "link.toml", lambda _: trace)


def altered(link: Link, change: Callable[[Direction], Direction]) -> Link:
    """Return a link whose directions are all changed."""
    for name in DIRECTIONS:
        course = link.course(name)
        segments = tuple(replace(s, direction=change(s.direction)) for s in course.segments)
        link = with_course(link, name, replace(course, segments=segments))
    return link


def failures(link: Link, change: Callable[[Direction], Direction] | None = None) -> list[Finding]:
    """Check a law, changed on purpose, against the unchanged profile."""

    def run(given: Link, seed: int, frames: np.ndarray) -> np.ndarray:
        return apply_between_ends(altered(given, change) if change else given, seed, frames)

    return [f for f in LawCheck([link], SMALL, run).findings(link) if not f.passed]


LINKS = {
    "bursts": link_of(change=[CHANGE]),
    "losses": link_of({"delay_ms": 5, "jitter_ms": 3, "jitter_shape": "exponential", "loss": 0.1}),
    "reordering": link_of({"delay_ms": 5, "jitter_ms": 3, "reorders": True}),
    "shared": link_of({"rate_mbit_s": 10, "queue_bytes": 9000}, medium="half-duplex"),
    "trace": link_of({"trace": "t", "queue_bytes": 9000, "loss": 0.2}, trace="0\n2\n2\n2\n9\n20\n"),
    "total loss": link_of({"loss": 1}),
}


@pytest.mark.parametrize("name", LINKS)
def test_the_emulator_follows_its_profile(name: str) -> None:
    assert [finding.words() for finding in failures(LINKS[name])] == []


def other_bursts(direction: Direction, enter: float, leave: float) -> Direction:
    """Return a direction whose bursts have other probabilities, if it has bursts."""
    bursts = direction.bursts
    if bursts is None:
        return direction
    changed = replace(bursts, enter=bursts.enter * enter, leave=bursts.leave * leave)
    return replace(direction, bursts=changed)


def faster(direction: Direction) -> Direction:
    rate = direction.rate_mbit_s
    return direction if rate is None else replace(direction, rate_mbit_s=rate * 1.01)


MUTANTS: dict[str, tuple[Callable[[Direction], Direction], str]] = {
    "more losses": (lambda d: other_bursts(d, 1.4, 1.0), "lost frames"),
    "longer bursts": (lambda d: other_bursts(d, 0.7, 0.7), "mean burst"),
    "delay": (lambda d: replace(d, delay_ms=d.delay_ms + 0.3), "mean delay"),
    "jitter": (lambda d: replace(d, jitter_ms=d.jitter_ms * 1.1), "standard deviation"),
    "shape": (lambda d: replace(d, jitter_shape="exponential"), "distribution of the jitter"),
    "order": (lambda d: replace(d, reorders=True), "overtake"),
    "queue": (lambda d: replace(d, queue_bytes=d.queue_bytes - 1514), "decides wrongly"),
    "rate": (faster, "wrong time"),
    "overhead": (lambda d: replace(d, overhead_bytes=24), "wrong time"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_law_is_detected(mutant: str) -> None:
    change, quantity = MUTANTS[mutant]
    found = [finding.quantity for finding in failures(LINKS["bursts"], change)]
    assert any(quantity in text for text in found), found


def test_a_loss_that_is_15_percent_too_high_is_detected_at_the_required_precision() -> None:
    """The small effort of the other tests is too coarse for this deviation."""
    link = link_of({"loss": 0.02})
    part, z = parts(link)[0], 4.0
    count = frames_needed(part, z, Effort(frames_min=1000, bursts_min=1))
    assert losses_of(part.direction).loss.half_width(z, count) <= 0.1 * 0.02

    def run(given: Link, seed: int, frames: np.ndarray) -> np.ndarray:
        wrong = altered(given, lambda d: replace(d, loss=d.loss * 1.15))
        return apply_between_ends(wrong, seed, frames)

    results = [
        [f.quantity for f in check_part(part, seed, z, 1e-4, count, run) if not f.passed]
        for seed in range(1, 6)
    ]
    assert sum("lost frames" in names for names in results) >= 3, results


def test_a_missing_change_and_a_private_medium_are_detected() -> None:
    def unchanged(given: Link, seed: int, frames: np.ndarray) -> np.ndarray:
        for name in DIRECTIONS:
            course = given.course(name)
            given = with_course(given, name, replace(course, segments=course.segments[:1]))
        return apply_between_ends(given, seed, frames)

    def private(given: Link, seed: int, frames: np.ndarray) -> np.ndarray:
        return apply_between_ends(replace(given, half_duplex=False), seed, frames)

    for name, run, quantity in (("bursts", unchanged, "change"), ("shared", private, "medium")):
        link = LINKS[name]
        found = [f.quantity for f in LawCheck([link], SMALL, run).findings(link) if not f.passed]
        assert any(quantity in text for text in found), found


def test_the_interval_of_all_tests_together_is_the_familywise_one() -> None:
    check = LawCheck([LINKS["bursts"]])
    assert check.test_count == 5 * 4 * 5  # seeds, parts, tests of losses and jitter
    assert check.z == pytest.approx(3.8906, abs=1e-3)


def test_losses_of_the_chain_have_the_known_moments() -> None:
    """A single state is a binomial; a Gilbert chain has geometric bursts."""
    single = loss_statistics(np.ones((1, 1)), np.array([0.1]))
    assert single.loss.value == pytest.approx(0.1) and single.loss.sd == pytest.approx(0.3)
    assert single.burst_frames.value == pytest.approx(1 / 0.9)
    enter, leave = 0.01, 0.25
    matrix = np.array([[1 - enter, enter], [leave, 1 - leave]])
    gilbert = loss_statistics(matrix, np.array([0.0, 1.0]))
    bad = enter / (enter + leave)
    assert gilbert.loss.value == pytest.approx(bad)
    correlation = 1 - enter - leave
    variance = bad * (1 - bad) * (1 + correlation) / (1 - correlation)
    assert gilbert.loss.sd == pytest.approx(variance**0.5)
    assert gilbert.burst_frames.value == pytest.approx(4.0)
    # A geometric length has the variance (1 - leave) / leave², over all bursts.
    deviation = ((1 - leave) / leave**2 / gilbert.bursts_per_frame) ** 0.5
    assert gilbert.burst_frames.sd == pytest.approx(deviation)


def test_a_frame_for_an_unknown_port_is_an_error() -> None:
    frames = frames_at(np.array([5], np.uint64), "up")
    frames["target"] = 9
    with pytest.raises(EmulatorError, match="port 9"):
        apply_law(LINKS["losses"], 1, (Port("a", True), Port("b", False)), frames)
