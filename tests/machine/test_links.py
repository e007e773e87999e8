"""Test links of the kernel (netem, tbf) and of the emulator by the same statistics."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from tests.machine.conftest import booted
from tests.machine.planted_links import ENGINES, LINKS, Passed, direction, read_passed
from wattwire.links.statistics import FAMILYWISE, losses_of
from wattwire.model.links.profile import DIRECTIONS
from wattwire.model.rig import KERNEL

pytestmark = [pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(1500)]

LIMIT_S = 1200.0
LOSSY = [name for name in LINKS if losses_of(direction(name)) is not None]
INTERVALS = 2 * len(LOSSY) * len(ENGINES) * len(DIRECTIONS)
"""Shares of lost frames and mean bursts; all intervals hold the truth in 99 of 100 suites."""
Z = float(norm.ppf(1 - FAMILYWISE / INTERVALS / 2))
LEVELS = (0.25, 0.5, 0.75)
LATE_SHARE = 0.05
"""Share of frames for which a timer may be later than the quantile that the bound uses."""
FRAME_BYTES = 1_400 + 42
OVERTAKEN_SHARE_MAX = 0.05
"""Share of frames that the kernel may reorder behind a link, where each CPU has a queue."""
AHEAD_MIN = 100
"""Frames before a frame in the queue from which its wait is judged."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> Path:
    """Return the results of a machine that ran the step `links`."""
    return booted(tmp_path_factory.mktemp("links") / "machine", ["links"], LIMIT_S).out


@pytest.fixture(params=ENGINES)
def engine(request) -> str:
    return str(request.param)


def passed(suite: Path, link: str, engine: str) -> dict[str, Passed]:
    """Return the frames of each direction of a link."""
    return {name: read_passed(suite / "links" / f"{link}-{engine}", name) for name in DIRECTIONS}


@pytest.mark.parametrize("link", LOSSY)
def test_both_engines_lose_the_frames_of_the_profile(suite, link, engine):
    expected = losses_of(direction(link))
    assert expected is not None
    for name, frames in passed(suite, link, engine).items():
        is_lost = frames.is_lost
        begins = int(is_lost[0]) + int(np.count_nonzero(is_lost[1:] & ~is_lost[:-1]))
        for what, share, truth in (
            ("lost", frames.lost / len(is_lost), expected.loss),
            ("frames per burst", frames.lost / begins, expected.burst_frames),
        ):
            half_width = truth.half_width(Z, len(is_lost))
            print(f"{name}: {share:.4f} {what}, planted {truth.value:.4f} ± {half_width:.4f}")
            assert share == pytest.approx(truth.value, abs=half_width)


@pytest.mark.parametrize("link", LOSSY)
def test_quantiles_of_the_delay_are_those_of_the_profile_and_late_timers(suite, link, engine):
    """Bound each quantile by that of the profile, and twice the lateness of the sender's timer.

    A sum exceeds x + y with at most the probability that its first part exceeds x or its second y.
    Two timers wake for a frame at most: one that reads it, and one that ends its delay. The error
    of a quantile's level is that of Dvoretzky, Kiefer and Wolfowitz.
    """
    for name, frames in passed(suite, link, engine).items():
        late_ms = 2 * float(np.quantile(frames.late_ms, 1 - LATE_SHARE))
        error = math.sqrt(math.log(2 * INTERVALS / FAMILYWISE) / 2 / len(frames.delays_ms))
        for level in LEVELS:
            least_ms = planted_ms(link, level - error)
            most_ms = planted_ms(link, level + error + 2 * LATE_SHARE) + late_ms
            measured_ms = float(np.quantile(frames.delays_ms, level))
            print(
                f"{name} {level:.0%}: {measured_ms:.2f} ms, planted {planted_ms(link, level):.2f}, "
                f"allowed {least_ms:.2f} to {most_ms:.2f}"
            )
            assert least_ms <= measured_ms <= most_ms


def planted_ms(link: str, quantile: float) -> float:
    """Return a quantile of the delay of a link, whose jitter is uniform."""
    law = direction(link)
    return law.delay_ms + law.jitter_ms * (2 * min(max(quantile, 0.0), 1.0) - 1)


@pytest.mark.parametrize("link", LINKS)
def test_frames_overtake_each_other_only_where_the_profile_says_so(suite, link, engine):
    for name, frames in passed(suite, link, engine).items():
        arrived = len(frames.delays_ms)
        print(f"{name}: {frames.overtaken} of {arrived} overtaken")
        assert frames.delays_ms.min() >= planted_ms(link, 0.0)
        overtake = frames.overtaken > OVERTAKEN_SHARE_MAX * arrived
        assert overtake is direction(link).reorders


def test_both_engines_keep_the_rate_below_its_limit_and_fill_the_queue(suite, engine):
    """Judge frames that waited for many others, because the sender is at times too slow.

    The bucket of tbf holds one frame, so a late timer costs it rate, which has no lower limit here.
    The emulator's devices hold more frames before its queue, while it waits for a CPU.
    """
    law = direction("rate")
    assert law.rate_bit_s is not None
    planted_ms = FRAME_BYTES * 8 / law.rate_bit_s * 1e3
    for name, frames in passed(suite, "rate", engine).items():
        mean_ms = float(np.ptp(frames.arrived_ms)) / (len(frames.arrived_ms) - 1)
        ahead = frames.ahead(law.delay_ms)
        many = ahead >= AHEAD_MIN
        each_ms = float(np.median((frames.delays_ms - law.delay_ms)[many] / ahead[many]))
        queued = float(np.median(ahead[many])) / (law.queue_bytes / FRAME_BYTES)
        print(
            f"{name}: {frames.lost} dropped; a frame per {mean_ms:.3f} ms, {each_ms:.3f} ms in a "
            f"queue, planted {planted_ms:.3f} ms; the queue is {queued:.3f} times the planted one"
        )
        assert frames.lost > 0, "the queue was never full"
        assert mean_ms >= 0.99 * planted_ms
        assert queued >= 0.95
        if engine == KERNEL:
            assert queued <= 1.02
        else:
            assert each_ms <= 1.2 * planted_ms


@pytest.mark.parametrize("link", LINKS)
def test_the_kernel_counts_the_frames_that_did_not_arrive(suite, link):
    counters = json.loads((suite / "links" / f"{link}-kernel" / "kernel-link.json").read_text())
    for name, frames in passed(suite, link, KERNEL).items():
        assert counters["near"][name]["netem"]["dropped_frames"] == frames.lost
