"""List the treatments of a study: all combinations of its factors, or a part of them."""

from __future__ import annotations

import itertools
import math
from typing import Any

from wattwire.model.errors import UsageError
from wattwire.model.study import Study
from wattwire.model.treatment import Level, Treatment
from wattwire.model.variants import FACTOR
from wattwire.model.words import plural

RUNS_MAX = 1_000_000


def expand(study: Study) -> list[tuple[Treatment, str | None]]:
    """Return all treatments in factor order, each with the reason for its exclusion or None."""
    names = list(study.factors)
    count = math.prod(len(levels) for levels in study.factors.values())
    if count * study.plan.blocks > RUNS_MAX:
        raise UsageError(
            f"study {study.name}: {count:,} treatments × {plural(study.plan.blocks, 'block')}; "
            f"allowed: at most {RUNS_MAX:,} runs. Use fewer levels, factors or blocks."
        )
    held = study.held
    pairs = []
    for levels in itertools.product(*study.factors.values()):
        varied = dict(zip(names, levels, strict=True))
        if study.includes and not any(_has_levels(varied, included) for included in study.includes):
            continue
        variant = study.variants.get(str(varied.get(FACTOR)))
        fixed = variant.over(held) if variant else held
        fixed = _with_joining_network(study, varied, fixed)
        pairs.append((Treatment.of(varied, fixed), _excluded(varied, study.excludes)))
    if not pairs:
        raise UsageError(
            f"study {study.name}: there is nothing to run: no treatment matches an entry of "
            f"include.treatments ({plural(len(study.includes), 'entry', 'entries')})"
        )
    if all(reason is not None for _, reason in pairs):
        raise UsageError(
            f"study {study.name}: there is nothing to run: the [exclude] table excludes every "
            f"treatment ({len(pairs)})"
        )
    return pairs


def _with_joining_network(
    study: Study, varied: dict[str, Level], fixed: dict[str, Level]
) -> dict[str, Level]:
    """Return the fixed levels; a study without a network gets one that joins the placement."""
    if not study.rig.networks or "network" in {**study.factors, **study.fixed}:
        return fixed
    placement = study.rig.placements.get(str({**fixed, **varied}.get("placement")))
    network = study.rig.network_of(placement.hosts.values()) if placement else ""
    return {**fixed, "network": network or fixed["network"]}


def _excluded(varied: dict[str, Level], excludes: tuple[dict[str, Any], ...]) -> str | None:
    for exclude in excludes:
        if _has_levels(varied, exclude):
            return str(exclude.get("because", "excluded by the study"))
    return None


def _has_levels(varied: dict[str, Level], levels: dict[str, Any]) -> bool:
    """Return whether a treatment has all of `levels`, except the key "because".

    A list stands for each of its levels.
    """
    return all(
        varied[key] in (level if isinstance(level, list) else [level])
        for key, level in levels.items()
        if key != "because"
    )
