"""Test the statistics of a link's law against its profile, in logical time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from wattwire.links.findings import Finding, exact
from wattwire.links.link_law import (
    LossStatistics,
    jitter_distribution,
    jitter_mean,
    jitter_sd,
    loss_statistics,
)
from wattwire.links.loads import FRAME_BYTES, Runner, constant, spaced, transmission_ns
from wattwire.model.links.profile import DIRECTIONS, Direction, Link
from wattwire.rig.emulator import NS_PER_MS, NS_PER_S
from wattwire.rig.emulator_log import LOST, Fate

FAMILYWISE = 0.01
"""Probability that any of all tests fails for a correct law."""
HALF_WIDTH_MAX = 0.10
RARE_LOSS, RARE_HALF_WIDTH_MAX = 0.005, 0.20
SEEDS = 5
FRAMES_MIN = 1_000_000
BURSTS_MIN = 2_000
ROUNDING_NS = 1.0


@dataclass(frozen=True)
class Effort:
    """The size of the check. Tests of the check itself use a smaller one."""

    seeds: int = SEEDS
    frames_min: int = FRAMES_MIN
    bursts_min: int = BURSTS_MIN
    half_width_max: float = HALF_WIDTH_MAX
    rare_half_width_max: float = RARE_HALF_WIDTH_MAX


@dataclass(frozen=True)
class Part:
    """A direction between two changes, whose parameters are constant."""

    link: Link
    name: str
    at_s: float
    direction: Direction

    @property
    def place(self) -> str:
        after = f" from {self.at_s:g} s" if self.at_s else ""
        return f"{self.link.name} {self.name}{after}"


def parts(link: Link) -> list[Part]:
    """Return the parts of a link in both directions."""
    return [
        Part(link, name, segment.at_s, segment.direction)
        for name in DIRECTIONS
        for segment in link.course(name).segments
    ]


def losses_of(direction: Direction) -> LossStatistics | None:
    """Return the expected losses, or None if a frame is lost never or always."""
    if direction.bursts is None:
        transitions, losses = np.ones((1, 1)), np.array([direction.loss])
    else:
        enter, leave = direction.bursts.enter, direction.bursts.leave
        transitions = np.array([[1 - enter, enter], [leave, 1 - leave]])
        losses = np.array([direction.bursts.loss_good, direction.bursts.loss_bad])
    if losses.max() == 0 or losses.min() == 1:
        return None
    return loss_statistics(transitions, losses)


def tests_per_seed(part: Part) -> int:
    """Return the number of statistical tests of a part, which share the error probability."""
    return 2 * (losses_of(part.direction) is not None) + 3 * bool(part.direction.jitter_ms)


def frames_needed(part: Part, z: float, effort: Effort) -> int:
    """Return the number of frames for the required half-widths."""
    expected = losses_of(part.direction)
    if expected is None:
        return effort.frames_min
    is_rare = expected.loss.value < RARE_LOSS
    widest = effort.rare_half_width_max if is_rare else effort.half_width_max
    return max(
        effort.frames_min,
        int(effort.bursts_min / expected.bursts_per_frame) + 1,
        expected.loss.count_for(z, widest),
        expected.burst_frames.count_for(z, effort.half_width_max),
    )


def check_part(
    part: Part, seed: int, z: float, p_min: float, count: int, run: Runner
) -> Iterator[Finding]:
    """Apply the law to `count` frames and test loss, bursts, delay and jitter.

    `z` is the quantile of a test's interval, and `p_min` the level of the test of a distribution.
    """
    link = constant(part.link, part.name, part.direction)
    frames = spaced(link, part.name, part.direction, count)
    records = run(link, seed, frames)
    place = f"{part.place} (seed {seed})"
    yield exact(place, "frames in the log", count, len(records))
    if len(records) != count:
        return
    yield exact(place, "frames dropped by the queue", 0, _count(records, Fate.QUEUE_FULL))
    is_lost = np.isin(records["fate"], LOST)
    yield from _loss_findings(part.direction, is_lost, z, place)
    delivered = ~is_lost & (records["fate"] == Fate.DELIVERED)
    if not delivered.any():
        return
    delays_ns = (records["planned_ns"] - records["in_ns"])[delivered].astype(float)
    delays_ns -= transmission_ns(part.direction, FRAME_BYTES)
    yield from _delay_findings(part.direction, delays_ns, z, p_min, place)


def _count(records: np.ndarray, fate: Fate) -> int:
    return int(np.count_nonzero(records["fate"] == fate))


def _loss_findings(
    direction: Direction, is_lost: np.ndarray, z: float, place: str
) -> Iterator[Finding]:
    expected = losses_of(direction)
    lost = int(np.count_nonzero(is_lost))
    if expected is None:
        certain_loss = direction.loss if direction.bursts is None else direction.bursts.loss_bad
        yield exact(place, "lost frames", round(certain_loss) * len(is_lost), lost)
        return
    width = expected.loss.half_width(z, len(is_lost))
    value = expected.loss.value
    share = lost / len(is_lost)
    yield Finding(
        place, "lost frames", f"{value:.4%} ± {width:.4%}", f"{share:.4%}",
        abs(share - value) <= width,
    )  # fmt: skip
    bursts = int(is_lost[0]) + int(np.count_nonzero(is_lost[1:] & ~is_lost[:-1]))
    length = lost / max(1, bursts)
    width = expected.burst_frames.half_width(z, len(is_lost))
    value = expected.burst_frames.value
    yield Finding(
        place, "mean burst", f"{value:.4f} ± {width:.4f} frames", f"{length:.4f} frames",
        abs(length - value) <= width,
    )  # fmt: skip


def _delay_findings(
    direction: Direction, delays_ns: np.ndarray, z: float, p_min: float, place: str
) -> Iterator[Finding]:
    delay_ns = direction.delay_ms * NS_PER_MS
    if not direction.jitter_ms:
        error_ns = float(np.abs(delays_ns - delay_ns).max())
        yield Finding(
            place, "delay", _ms(delay_ns), f"an error of up to {error_ns:.0f} ns",
            error_ns <= ROUNDING_NS,
        )  # fmt: skip
        return
    from scipy.stats import kstest  # noqa: PLC0415 - imported in a second, for few commands

    shape, scale_ns = direction.jitter_shape, direction.jitter_ms * NS_PER_MS
    spread = jitter_sd(shape, scale_ns)
    count = len(delays_ns)
    mean_ns, expected_ns = float(delays_ns.mean()), delay_ns + jitter_mean(shape, scale_ns)
    width_ns = z * spread.value / np.sqrt(count)
    yield Finding(
        place, "mean delay", f"{_ms(expected_ns)} ± {_ms(width_ns)}", _ms(mean_ns),
        abs(mean_ns - expected_ns) <= width_ns + ROUNDING_NS,
    )  # fmt: skip
    sd_ns, width_ns = float(delays_ns.std()), spread.half_width(z, count)
    yield Finding(
        place, "standard deviation of the delay", f"{_ms(spread.value)} ± {_ms(width_ns)}",
        _ms(sd_ns), abs(sd_ns - spread.value) <= width_ns + ROUNDING_NS,
    )  # fmt: skip
    result = kstest(
        delays_ns - delay_ns,
        lambda values: jitter_distribution(shape, scale_ns, values),
        method="asymp",
    )
    yield Finding(
        place, f"distribution of the jitter ({shape})", f"p of at least {p_min:.1g}",
        f"p = {result.pvalue:.2g}", bool(result.pvalue >= p_min),
    )  # fmt: skip


def _ms(time_ns: float) -> str:
    return f"{time_ns / NS_PER_MS:.6g} ms"


def seconds_ns(at_s: float) -> int:
    """Return a time of the window in ns."""
    return round(at_s * NS_PER_S)
