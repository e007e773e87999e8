"""Which percentiles of latency the windows of a plan can carry, and what the others need."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wattwire.model.study import Study
from wattwire.model.treatment import Treatment
from wattwire.run.node_specs import scheduled_per_sender

PERCENTILES = (0.5, 0.9, 0.99, 0.999)
"""Those of which the page has a column."""


def latencies_of_a_run(study: Study, treatment: Treatment) -> int:
    """Return how many latencies a run of the treatment gives after its warm-up, all clients'."""
    plan, clients = study.plan, int(treatment["clients"])
    if treatment["loop"] == "closed":  # calls of the warm-up come before these
        return int(treatment["count"]) * clients
    kept_share = max(0.0, 1.0 - plan.warmup_s / plan.duration_s)
    return math.floor(scheduled_per_sender(treatment, plan) * kept_share) * clients


def percentile_words(study: Study, treatments: Sequence[Treatment]) -> str:
    """Say which percentiles every run can carry, and what the first of the others would take."""
    from wattwire.stats.series.percentiles import carried_size  # noqa: PLC0415 - slow to import

    counts = {latencies_of_a_run(study, treatment): treatment for treatment in treatments}
    fewest, most = min(counts), max(counts)
    carried = [_name(share) for share in PERCENTILES if carried_size(share) <= fewest]
    lacking = [share for share in PERCENTILES if carried_size(share) > fewest]
    told = f"percentiles: a run has {fewest:,}"
    told += f" to {most:,} latencies, which" if most > fewest else " latencies, which"
    told += f" carry {', '.join(carried)}" if carried else " carry none"
    if not lacking:
        return told
    needed = ", ".join(f"{_name(share)} needs {carried_size(share):,}" for share in lacking)
    return f"{told}; {needed} that are independent ({_way(study, counts[fewest], lacking[0])})"


def _way(study: Study, treatment: Treatment, share: float) -> str:
    """How the treatment's run gets enough latencies for a percentile."""
    from wattwire.stats.series.percentiles import carried_size  # noqa: PLC0415

    if treatment["loop"] == "closed":
        calls = math.ceil(carried_size(share) / int(treatment["clients"]))
        return f"{_name(share)}: --set count={calls}"
    kept_s = study.plan.duration_s - study.plan.warmup_s
    per_s = latencies_of_a_run(study, treatment) / kept_s
    if per_s <= 0.0:
        return f"{_name(share)}: a longer plan.duration_s"
    seconds = math.ceil(study.plan.warmup_s + carried_size(share) / per_s)
    return f"{_name(share)}: --set plan.duration_s={seconds}"


def _name(share: float) -> str:
    return f"p{100 * share:g}"
