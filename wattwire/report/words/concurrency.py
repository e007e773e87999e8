"""Whether as many clients were at work in the counted part of a closed loop as the study has.

Clients go on until the slowest one has made its calls, as far as their records have room. One that
is faster than the slowest by much more ends sooner, and what the others make then is measured with
fewer clients at work than was asked for. So are campaigns measured before clients went on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wattwire.analysis.dataset import Evidence, all_levels, by_treatment
from wattwire.model import words
from wattwire.model.derived import column

ACTIVE_SHARE_MIN = 0.8
"""Share of a treatment's clients that are at work on average, below which it is named."""
NAMED_MAX = 6


def too_few_active(evidence: Evidence) -> Iterator[tuple[str, float, int]]:
    """Yield title, median number of clients at work, and number of clients of each treatment whose
    runs had fewer than ACTIVE_SHARE_MIN of their clients at work."""
    for frame in by_treatment(evidence, evidence.usable).values():
        levels = all_levels(evidence.runs[frame["run"][0]]) if frame.height else {}
        clients = int(levels.get("clients", 1))
        active = column(frame, "clients_active_mean")
        active = active[np.isfinite(active)]
        if clients < 2 or not active.size:
            continue
        median = float(np.median(active))
        if median < ACTIVE_SHARE_MIN * clients:
            yield evidence.treatment_title(levels) or "the only treatment", median, clients


def sentence(evidence: Evidence) -> str:
    """Name those treatments, for the page's headline; empty where there are none."""
    found = [
        f"{title} ({active:.1f} of {clients})"
        for title, active, clients in too_few_active(evidence)
    ]
    if not found:
        return ""
    listed = words.listed_first(found, NAMED_MAX)
    return (
        f"Fewer clients were at work than the study has: {listed}. Some clients ended before the "
        "others; those figures are of fewer concurrent calls."
    )
