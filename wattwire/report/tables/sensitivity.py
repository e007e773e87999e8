"""The answers told another way: by ranks, by shares of variance, and what the errors look like.

Nothing here decides an answer. It stands beside the ratios so that a reader who trusts another
method more sees what that one says, and where the ratios' own assumptions fail.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.contrasts import (
    CONFIDENCE,
    Answer,
    Answers,
    block_table,
    usable_fit,
)
from wattwire.analysis.controls import pairs
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.error_checks import ALARM, cautions
from wattwire.analysis.responses import Response
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.report.parts import Column, Fold, Table, Text

PAIRS_BY_RANKS_MIN = 6
PAIRS_OF_FACTORS_MAX = 6
PERMUTED = 0.2
"""An interaction whose p is above this on both scales needs no second one."""
SCALES = {"log": "ratios differ", "plain": "differences differ"}

ASSUMED = (
    "What the intervals take for granted: that errors scatter alike in all treatments and do not "
    "hang together. In simulations, with three levels or more, one that scatters four times as "
    "much made ratios alarm in 10 to 20 of 100 campaigns without a difference instead of 5; "
    "errors that resemble their neighbours', with all runs of a level one after the other, in 11 "
    "to 33. In random order inside blocks they did ratios no harm, but made intervals of single "
    "treatments too narrow. One run in ten that scatters ten times as much made alarms rarer and "
    "intervals wide. A warning above names what these data show of it; few runs show little."
)


def parts(evidence: Evidence, answers: Answers) -> list[Any]:
    """A warning where the errors are not what the intervals take them to be, and the fold."""
    computed = answers.computed()
    responses = list(dict.fromkeys(answer.response for answer in computed))
    shifts = [answer.response for answer in answers.differences()]
    every = list(dict.fromkeys([*responses, *shifts]))
    found: list[Any] = [Text(one, "warning") for one in cautions(evidence, every)]
    if not computed:
        return found
    inner: list[Any] = [_by_ranks(evidence, computed)]
    effects, told = _effects(evidence, responses)
    inner += [effects, *(Text(one, "item") for one in told)]
    inner += [Text(one) for one in _identical(evidence, responses)]
    inner.append(Text(ASSUMED, "note"))
    return [*found, Fold("How sure, told another way", inner)]


def _by_ranks(evidence: Evidence, computed: Sequence[Answer]) -> Table:
    rows = []
    for answer in _distinct(computed):
        both = block_table(
            evidence, answer.response, answer.factor, [answer.level, answer.baseline]
        )
        levels = [
            level
            for level in evidence.factors[answer.factor]
            if not not_compared.why_not(
                evidence, evidence.usable, answer.response, {answer.factor: level}
            )
        ]
        every = block_table(evidence, answer.response, answer.factor, levels)
        ranked, delta = companions(both)
        rows.append(
            {
                "response": answer.response.title,
                "contrast": f"{evidence.title(answer.factor, answer.level)} / "
                f"{evidence.title(answer.factor, answer.baseline)}",
                "ratio": answer.interval.estimate,
                "ranked": ranked,
                "how": "paired" if len(both) >= PAIRS_BY_RANKS_MIN else "two samples",
                "level": words.confidence(ranked.level)
                if isinstance(ranked, stats.Interval)
                else None,
                "delta": delta,
                "friedman": _p(stats.friedman(every)),
                "quade": _p(stats.quade(every)),
            }
        )
    return Table(
        "by-ranks",
        "By ranks",
        [
            Column("response", "response"),
            Column("contrast", "contrast"),
            Column("ratio", "ratio", "measured"),
            Column("ranked", "Hodges–Lehmann ratio [interval]", "measured"),
            Column("how", "how"),
            Column("level", "its exact level"),
            Column("delta", "Cliff's δ [interval]", "measured"),
            Column("friedman", "Friedman, p", "measured", digits=2),
            Column("quade", "Quade, p", "measured", digits=2),
        ],
        rows,
        "One value a block and level: the mean log response over the combinations of the other "
        "factors that hold every level there. Hodges–Lehmann: paired in blocks from "
        f"{PAIRS_BY_RANKS_MIN} of them on, before that from two unpaired samples, whose interval "
        "holds the blocks' differences too. Cliff's δ: how much more often a block at the first "
        "level lies above one at the second than below (Newcombe's method 5, unpaired). Friedman "
        "and Quade: whether any level of the factor differs, by permutation inside blocks. Each "
        f"stands alone at {words.confidence(CONFIDENCE)}; the answers are the ratios above.",
    )


def companions(sides: FloatArray) -> tuple[Any, Any]:
    """Hodges–Lehmann's ratio and Cliff's delta of log values, shape (blocks, 2)."""
    delta = stats.cliffs_delta(sides[:, 0], sides[:, 1])
    if not np.isfinite(sides).all():
        return stats.NotComputable("unbounded in a block (loss)"), delta
    upper, lower = np.exp(sides[:, 0]), np.exp(sides[:, 1])
    if sides.shape[0] >= PAIRS_BY_RANKS_MIN:
        return stats.paired_ratio_by_ranks(upper, lower), delta
    return stats.ratio_by_ranks(upper, lower), delta


def _p(found: Any) -> Any:
    return found.p if isinstance(found, stats.BlockRanks) else found


def _distinct(computed: Sequence[Answer]) -> list[Answer]:
    kept: dict[tuple[str, str, str], Answer] = {}
    for answer in computed:
        kept.setdefault((answer.response.column, answer.factor, str(answer.level)), answer)
    return list(kept.values())


# -- shares of variance --------------------------------------------------------------------------


def _effects(evidence: Evidence, responses: Sequence[Response]) -> tuple[Table, list[str]]:
    """The analysis of variance of each response, and a sentence for each interaction."""
    frozen = str(evidence.study.get("answers", {}).get("scale", "log"))
    rows: list[dict[str, Any]] = []
    told: list[str] = []
    for response in responses:
        fits = {scale: usable_fit(evidence, response, scale) for scale in SCALES}
        fit = fits[frozen]
        for factor in evidence.varied:
            found = stats.main_effect(fit, factor) if isinstance(fit, stats.Fit) else fit
            rows.append(_effect_row(response, [factor], found))
        for one, other in itertools.islice(
            itertools.combinations(evidence.varied, 2), PAIRS_OF_FACTORS_MAX
        ):
            both = _on_both_scales(fits, frozen, one, other)
            rows.append(_effect_row(response, [one, other], both[frozen]))
            sentence = interaction_words(response, (one, other), both, frozen)
            if sentence:
                told.append(sentence)
    table = Table(
        "effects",
        "What moves each response",
        [
            Column("response", "response"),
            Column("source", "source"),
            Column("statistic", "F", "measured"),
            Column("degrees", "df"),
            Column("p", "p", "measured", digits=2),
            Column("permuted", "p, permuted in blocks", "measured", digits=2),
            Column("omega", "partial ω² [interval]", "measured"),
        ],
        rows,
        f"Block analysis of variance on the {frozen} scale ({SCALES[frozen]}), the error pooled "
        f"over treatments; ω² with limits by noncentral F at {words.confidence(CONFIDENCE)}, the "
        "error taken for known by 10 degrees at most, for heavy tails. "
        "Interactions have a second p, from permuting the residuals inside blocks, where the first "
        f"is below {PERMUTED:g} on either scale. Exploratory.",
    )
    return table, told


def _on_both_scales(fits: dict[str, Any], frozen: str, one: str, other: str) -> dict[str, Any]:
    """The interaction on either scale; on the frozen one permuted too where it may matter."""
    found = {
        scale: stats.interaction(fit, one, other, permutations=0)
        if isinstance(fit, stats.Fit)
        else fit
        for scale, fit in fits.items()
    }
    notable = [e for e in found.values() if isinstance(e, stats.Effect) and e.p < PERMUTED]
    if notable and isinstance(fits[frozen], stats.Fit):
        found[frozen] = stats.interaction(fits[frozen], one, other)
    return found


def _effect_row(response: Response, factors: Sequence[str], found: Any) -> dict[str, Any]:
    source = " × ".join(words.factor_title(name) for name in factors)
    row: dict[str, Any] = {"response": response.title, "source": source}
    if not isinstance(found, stats.Effect):
        return row | {"omega": found}
    return row | {
        "statistic": found.statistic,
        "degrees": f"{found.degrees}, {found.error_degrees}",
        "p": found.p,
        "permuted": found.permuted_p,
        "omega": found.omega_squared,
    }


def interaction_words(
    response: Response, pair: tuple[str, str], found: dict[str, Any], frozen: str
) -> str | None:
    """Whether two factors interact, on the frozen scale; both scales where they disagree."""
    if not all(isinstance(effect, stats.Effect) for effect in found.values()):
        return None
    other = next(scale for scale in SCALES if scale != frozen)
    here, there = found[frozen].p < ALARM, found[other].p < ALARM
    checked = found[frozen].permuted_p
    if not here and not there:
        return None
    names = words.listed([words.factor_title(name) for name in pair])
    verb = SCALES[frozen] if here else f"no sign that {SCALES[frozen]}"
    told = (
        f"{names}, {response.title}: {verb} ({frozen} scale, {words.p_equals(found[frozen].p)}"
        f", by permutation {words.number(checked, 2)})"
    )
    if here != there:
        verb = SCALES[other] if there else f"there is no sign that {SCALES[other]}"
        told += f"; on the {other} scale {verb} ({words.p_equals(found[other].p)})"
    if here != (checked is not None and checked < ALARM):
        told += ". The two p on that scale disagree: take it for undecided"
    return told + "."


def _identical(evidence: Evidence, responses: Sequence[Response]) -> list[str]:
    """How often two runs of one treatment under two labels differed by more than errors do."""
    alarms = trials = 0
    for response in responses:
        fit = usable_fit(evidence, response)
        if isinstance(fit, stats.Fit) and fit.degrees > 0:
            logs = np.log(pairs(evidence, response, "b", "a"))
            quantile = float(special.stdtrit(fit.degrees, 0.5 + CONFIDENCE / 2))
            alarms += int(np.sum(np.abs(logs) > quantile * np.sqrt(2.0 * fit.variance)))
            trials += logs.size
    if not trials:
        return []
    found = stats.alarm_rate(alarms, trials)
    rate = str(found)
    if isinstance(found, stats.Interval):
        rate = f"{words.percent(found.low)} to {words.percent(found.high)}"
    return [
        f"Two identical labels differed by more than {words.confidence(CONFIDENCE)} of errors do "
        f"in {alarms} of {words.plural(trials, 'pair')}, all responses together; as a rate: {rate}."
    ]


# -- what the errors look like -------------------------------------------------------------------
