"""List the treatments that a plan skips and the questions that it cannot answer on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wattwire.model.metrics import ENERGY, Metric, find
from wattwire.model.outside_meters import STREAM
from wattwire.model.study import Study
from wattwire.model.treatment import Treatment
from wattwire.model.words import as_typed, nothing_to_compare, plural
from wattwire.run.resolve_cells import Prepared

NAMED_MAX = 4
"""Maximum number of treatments that a line names."""


def skipped_lines(prepared: Prepared) -> list[str]:
    """Return one line per reason for skipped treatments, with their number and names."""
    by_reason: dict[str, list[Treatment]] = {}
    for treatment, reason in prepared.skipped:
        by_reason.setdefault(reason, []).append(treatment)
    lines = []
    for reason, treatments in by_reason.items():
        labels = f" ({'; '.join(t.label() for t in treatments)})"
        few = len(treatments) <= NAMED_MAX
        lines.append(f"skipped {plural(len(treatments), 'treatment')}{labels * few}: {reason}")
    return lines


def unanswerable_lines(
    study: Study, kept: Sequence[Treatment], meters: Sequence[Mapping[str, Any]] | None
) -> list[str]:
    """Return lines on the questions that the study cannot answer on this machine.

    A question has no answer if its factor has only one level or if no meter reads its response.
    `meters` are the agent's descriptions of the readable meters, or None if unknown.
    """
    lines = []
    for number, question in enumerate(study.questions, 1):
        name = f"question {question.id or number}"
        varied = [factor for factor in question.factors if factor in study.factors]
        for factor in varied:
            levels = dict.fromkeys(as_typed(treatment[factor]) for treatment in kept)
            if len(levels) < 2:
                lines.append(_one_level(name, factor, ", ".join(levels)))
        for factor in (factor for factor in question.factors if factor not in varied):
            about = f" about {factor}" if varied else ""
            lines.append(_one_level(f"{name}{about}", factor, as_typed(study.held.get(factor))))
        if not question.factors and not question.beside:
            lines.append(f"no answer to {name}: each of its factors has only one level")
        responses = (*question.responses, *question.beside)
        reasons = dict(_unread_responses(study, responses, meters)) if meters is not None else {}
        for response, reason in reasons.items():
            lines.append(f"no answer to {name} in {response}: {reason}")
    return lines


def _one_level(question: str, factor: str, level: str) -> str:
    return f"no answer to {question}: {nothing_to_compare(factor, level)}"


def _unread_responses(
    study: Study, responses: Sequence[str], meters: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Yield each response that no meter of the study reads on this machine, and the reason."""
    use = study.meters.use
    used_meters = [
        m
        for m in meters
        if m["name"] in use or m.get("tier") == STREAM or (not use and m.get("default", True))
    ]
    quantities = [quantity for meter in used_meters for quantity in meter["quantities"]]
    quantity_names = {quantity["name"] for quantity in quantities}
    has_energy = any(quantity.get("rank") is not None for quantity in quantities)
    for name in responses:
        metric: Metric | None = find(name)
        if metric is None or not metric.needs:
            continue
        if metric.needs == ENERGY and not has_energy:
            yield name, "no energy counter can be read on this machine (see wattwire doctor)"
        elif metric.is_read and metric.needs not in quantity_names:
            yield name, f"no meter of the study reads {metric.needs} on this machine"
