"""Planning of a campaign from a pilot campaign: blocks, power, resolution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.contrasts import CONFIDENCE, Answer, answer_all, usable_fit
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.stats import planning

ENERGY_SHARE = 0.10
"""J per message is planned for ± 10 %."""


@dataclass(frozen=True)
class Aim:
    """Aim of the planned campaign: interval width (share), margin or None, and number of blocks."""

    width: float
    margin: float | None
    blocks: int


def lines(evidence: Evidence, aim: Aim) -> Iterator[str]:
    """Yield a line for each answer of the pilot, then for energy.

    `aim.blocks` blocks are planned.
    """
    answers = answer_all(evidence)
    computed = _distinct([*answers.computed(), *answers.differences()])
    if not computed:
        yield "the pilot has no numeric answer: the number of blocks cannot be predicted"
    else:
        level = stats.bonferroni(CONFIDENCE, len(computed))
        yield (
            f"each interval at {words.confidence(level)}, so that "
            f"{words.plural(len(computed), 'answer')} hold jointly at "
            f"{words.confidence(CONFIDENCE)}"
        )
        for answer in computed:
            yield _answer_line(evidence, answer, aim, level)
    yield from _energy(evidence, aim.blocks)


def _distinct(computed: list[Answer]) -> list[Answer]:
    kept: dict[tuple[str, str, str], Answer] = {}
    for answer in computed:
        kept.setdefault((answer.response.column, answer.factor, str(answer.level)), answer)
    return list(kept.values())


def _answer_line(evidence: Evidence, answer: Answer, aim: Aim, level: float) -> str:
    name = (
        f"{answer.response.title}, {evidence.title(answer.factor, answer.level)} / "
        f"{evidence.title(answer.factor, answer.baseline)}"
    )
    fit = usable_fit(evidence, answer.response)
    pilot: Any = fit
    if isinstance(fit, stats.Fit):
        pilot = planning.pilot_of(fit, answer.factor, answer.level, answer.baseline)
    if isinstance(pilot, stats.NotPositive):
        return f"{name}: cannot be planned, because planning needs ratios ({pilot})"
    if not isinstance(pilot, planning.Pilot):
        return f"{name}: cannot be planned ({pilot})"
    width_text = f"± {words.percent(aim.width)}"
    blocks_for_width = planning.blocks_for_width(pilot, aim.width, level)
    cautious_blocks = planning.blocks_for_width(pilot.cautious, aim.width, level)
    line = (
        f"{name}: {_blocks(blocks_for_width)} for {width_text} ({_blocks(cautious_blocks)} if the "
        "pilot underestimates the scatter)"
    )
    if aim.blocks > 1:
        reach = planning.half_width(pilot, aim.blocks, level)
        line += f"; the {aim.blocks} planned give ± {words.percent(reach)}"
    if aim.margin is not None:
        power = planning.POWER
        needed = planning.blocks_for_equivalence(pilot, aim.margin, level)
        line += f"; {_blocks(needed)} to show equivalence within ± {words.percent(aim.margin)} "
        line += f"with power {power:g}"
        if aim.blocks > 1:
            reached = planning.equivalence_power(pilot, aim.margin, aim.blocks, level)
            line += f" (with those planned: {words.number(reached, 2)})"
    return line


def _blocks(count: int | stats.NotComputable) -> str:
    return words.plural(count, "block") if isinstance(count, int) else str(count)


def _energy(evidence: Evidence, blocks: int) -> Iterator[str]:
    """Yield the predicted resolution of J per message of each treatment with measured power."""
    any_measured = False
    for key, frame in by_treatment(evidence, evidence.usable).items():
        delta = column(frame, "power_window_w") - column(frame, "power_silent_w")
        rates = column(frame, "rate_hz_achieved")
        known = np.isfinite(delta) & np.isfinite(rates) & (rates > 0)
        if known.sum() < 3:
            continue
        any_measured = True
        yield energy_line(", ".join(key) or "all runs", delta[known], rates[known], blocks)
    if not any_measured:
        yield (
            "J per message: no meter measured power in three blocks of the pilot, so its "
            "resolution cannot be predicted"
        )


def energy_line(name: str, delta_w: np.ndarray, rates_hz: np.ndarray, blocks: int) -> str:
    """Return a line with the resolution t·SE(ΔP)/r of `blocks` blocks, from one ΔP per block."""
    spread_w, rate_hz = float(np.std(delta_w, ddof=1)), float(np.mean(rates_hz))
    if spread_w == 0:
        return f"J per message, {name}: the pilot's power does not vary"
    message_j = float(np.mean(delta_w / rates_hz))
    resolved = planning.message_resolution_j(spread_w, rate_hz, max(2, blocks))
    line = (
        f"J per message, {name}: power differs by {words.number(spread_w, 2)} W from block to "
        f"block at {words.number(rate_hz, 3)} messages/s, so {max(2, blocks)} blocks resolve "
        f"{words.number(1e6 * resolved, 2)} µJ"
    )
    if message_j <= 0:
        return line
    needed = planning.blocks_for_message_energy(spread_w, rate_hz, message_j, ENERGY_SHARE)
    return (
        f"{line}; ± {words.percent(ENERGY_SHARE)} of the pilot's "
        f"{words.number(1e6 * message_j, 2)} µJ needs {_blocks(needed)}"
    )
