"""Find threats to internal validity, where a difference may have another cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.settling.warm_up_rule import unknown_cells, unsettled_cells
from wattwire.model.derived import column

OPEN_SHARE = 1.0
WATCHED = {"other_load_max": "other_load_share", "steal_max": "steal_share"}
"""Validity limit on a share of the CPU time → the column with the share."""


@dataclass(frozen=True)
class OpenLimit:
    """A validity limit `key` that excludes no run, with the largest share in a valid run."""

    key: str
    limit: float
    share_max: float | None = None


@dataclass(frozen=True)
class Internal:
    """What else than the treatment may cause a difference.

    `warmup_calls` is the number of discarded calls of each client; `unsettled` has the cells that
    had not reached steady state after it, `unknown` those without a conclusion. `untried` counts
    planned runs.
    """

    open_limits: tuple[OpenLimit, ...] = ()
    has_controls: bool = True
    warmup_calls: int = 0
    unsettled: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    includes_start: bool = False
    has_no_warm_up: bool = False
    excluded: int = 0
    runs: int = 0
    untried: int = 0


def internal(evidence: Evidence) -> Internal:
    """Return the threats to internal validity of a measured campaign."""
    excluded, calls, request = (
        evidence.excluded.height,
        evidence.warmup_calls,
        evidence.study.request,
    )
    return Internal(
        tuple(_open_limits(evidence)),
        bool(evidence.controls_planned),
        calls,
        tuple(unsettled_cells(evidence.warm_up)) if calls else (),
        tuple(unknown_cells(evidence.warm_up)) if calls else (),
        not calls and includes_start(evidence),
        not calls and request is None and not evidence.study.plan.warmup_s,
        excluded,
        excluded + evidence.usable.height,
        evidence.untried(evidence.designed),
    )


def includes_start(evidence: Evidence) -> bool:
    """Return whether the window of a command includes its start."""
    request = evidence.study.request
    if request is None:
        return False
    return bool(request.command or evidence.study.variants) and not request.warms_up


def _open_limits(evidence: Evidence) -> Iterator[OpenLimit]:
    limits = evidence.study.validity
    if limits.look:
        limits = replace(limits, other_load_max=1.0, steal_max=1.0)
    for key, name in WATCHED.items():
        limit = float(getattr(limits, key))
        if limit >= OPEN_SHARE:
            shares = column(evidence.usable, name)
            shares = shares[np.isfinite(shares)]
            yield OpenLimit(key, limit, float(shares.max()) if shares.size else None)
