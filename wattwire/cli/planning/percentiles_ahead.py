"""List the latency percentiles that a plan supports, and the requirements for the others."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wattwire.model.flows import COLUMN, flow_parts
from wattwire.model.quantiles import carried_size, share_of
from wattwire.model.study import Study
from wattwire.model.treatment import Treatment
from wattwire.model.words import count
from wattwire.run.node_specs import scheduled_per_sender

PERCENTILES = (0.5, 0.9, 0.99, 0.999)
"""Percentiles with a column on the page."""


def latencies_of_a_run(study: Study, treatment: Treatment) -> int:
    """Return the number of latencies in a run after the warm-up, over all clients.

    `treatment` has one pattern, or is a part of a treatment with several flows.
    """
    plan, clients = study.plan, int(treatment["clients"])
    if treatment["loop"] == "closed":  # count excludes the warm-up calls
        return int(treatment["count"]) * clients
    kept_share = max(0.0, 1.0 - plan.warmup_s / plan.duration_s)
    return math.floor(scheduled_per_sender(treatment, plan) * kept_share) * clients


def percentile_words(study: Study, treatments: Sequence[Treatment]) -> str:
    """Return a line on the percentiles of every run and the requirements for the others."""
    parts = [part.treatment for treatment in treatments for part in flow_parts(treatment)]
    counts = {latencies_of_a_run(study, treatment): treatment for treatment in parts}
    fewest, most = min(counts), max(counts)
    carried = [_percentile_name(share) for share in PERCENTILES if carried_size(share) <= fewest]
    lacking = [share for share in PERCENTILES if carried_size(share) > fewest]
    sentence = f"percentiles: a run has {count(fewest)}"
    sentence += f" to {count(most)} latencies" if most > fewest else " latencies"
    sentence += f", enough for {', '.join(carried)}" if carried else ", too few for any percentile"
    if not lacking:
        return sentence
    needed = ", ".join(
        f"{_percentile_name(share)} needs {count(carried_size(share))}" for share in lacking
    )
    return (
        f"{sentence}; {needed} independent latencies ({_remedy(study, counts[fewest], lacking[0])})"
    )


def too_few_lines(study: Study, treatments: Sequence[Treatment]) -> list[str]:
    """Return lines on the questions and limits whose percentile needs more latencies per run."""
    parts = [part for treatment in treatments for part in flow_parts(treatment)]
    wanted = [
        (f"no answer to question {question.id or number} in {name}", name)
        for number, question in enumerate(study.questions, 1)
        for name in question.responses
    ]
    wanted += [
        (f"limit {number} cannot be judged", limit.response)
        for number, limit in enumerate(study.limits, 1)
    ]
    lines = []
    for what, name in wanted:
        share, of_flow = share_of(name), COLUMN.fullmatch(name)
        own = [part.treatment for part in parts if not of_flow or part.name == of_flow["flow"]]
        if share is None or not own:
            continue
        fewest = min(own, key=lambda treatment: latencies_of_a_run(study, treatment))
        latencies = latencies_of_a_run(study, fewest)
        if latencies < carried_size(share):
            lines.append(
                f"{what}: {name} needs {count(carried_size(share))} latencies in each run, and "
                f"some runs have {count(latencies)} ({_remedy(study, fewest, share)})"
            )
    return lines


def _remedy(study: Study, treatment: Treatment, share: float) -> str:
    """Describe the option that makes a treatment's runs long enough for a percentile."""
    if treatment["loop"] == "closed":
        calls = math.ceil(carried_size(share) / int(treatment["clients"]))
        return f"{_percentile_name(share)}: --set count={calls}"
    kept_s = study.plan.duration_s - study.plan.warmup_s
    per_s = latencies_of_a_run(study, treatment) / kept_s
    if per_s <= 0.0:
        return f"{_percentile_name(share)}: a longer plan.duration_s"
    seconds = math.ceil(study.plan.warmup_s + carried_size(share) / per_s)
    return f"{_percentile_name(share)}: --set plan.duration_s={seconds}"


def _percentile_name(share: float) -> str:
    return f"p{100 * share:g}"
