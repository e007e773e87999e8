"""Count the active clients in the measured part of a closed loop.

Clients continue until the slowest client has made its calls or until their records are full. A much
faster client ends earlier, so fewer clients than requested are active during the later calls of the
others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wattwire.analysis.dataset import Evidence, all_levels, by_treatment
from wattwire.model.derived import column
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "concurrency",
    {
        "too_few_active": (
            "Fewer clients were active than the study specifies: {treatments:listed 6}. Some "
            "clients ended before the others, so these results are for fewer concurrent "
            "calls."
        ),
        "treatment": "{treatment} ({active:.1f} of {clients})",
        "only_treatment": "the only treatment",
    },
)
ACTIVE_SHARE_MIN = 0.8
"""Mean share of active clients below which a sentence names a treatment."""


def too_few_active(evidence: Evidence) -> Iterator[tuple[str, float, int]]:
    """Yield each treatment with too few active clients.

    An item is (title, median of active clients, planned clients). The median over runs is below
    ACTIVE_SHARE_MIN of the planned clients.
    """
    for frame in by_treatment(evidence, evidence.usable).values():
        levels = all_levels(evidence.runs[frame["run"][0]]) if frame.height else {}
        clients = int(levels.get("clients", 1))
        active = column(frame, "clients_active_mean")
        active = active[np.isfinite(active)]
        if clients < 2 or not active.size:
            continue
        median = float(np.median(active))
        if median < ACTIVE_SHARE_MIN * clients:
            title = evidence.treatment_title(levels) or PHRASES("only_treatment")
            yield title, median, clients


def sentence(evidence: Evidence) -> Phrase:
    """Return a sentence for the headline that names the treatments of `too_few_active`.

    The result is "" if there are no such treatments.
    """
    treatments = [
        PHRASES("treatment", treatment=title, active=active, clients=clients)
        for title, active, clients in too_few_active(evidence)
    ]
    return PHRASES("too_few_active", treatments=treatments) if treatments else Phrase()
