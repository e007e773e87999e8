"""Plan settling runs, which precede block 1 and determine the warm-up."""

from __future__ import annotations

from collections.abc import Iterable

from wattwire.model.deployment import PATTERNS
from wattwire.model.study import Plan
from wattwire.model.treatment import Treatment
from wattwire.model.warm_up import AUTO

CODE = ("cell", "middleware", "pattern", "variant")
"""Levels that, with a node's language and its settings.NAME, identify its program."""


def piloted(treatments: Iterable[Treatment], plan: Plan) -> list[Treatment]:
    """Return closed-loop treatments for settling runs that include every client and server.

    Treatments with few clients come first, because they call their server least often. The list is
    empty if the study does not determine its warm-up by settling runs.
    """
    if plan.warmup_calls != AUTO:
        return []
    closed = [treatment for treatment in treatments if treatment["loop"] == "closed"]
    chosen: list[Treatment] = []
    covered: set[tuple[object, ...]] = set()
    for treatment in sorted(closed, key=lambda treatment: int(treatment["clients"])):
        programs = set(_programs(treatment))
        if programs - covered:
            chosen.append(treatment)
            covered |= programs
    return chosen


def _programs(treatment: Treatment) -> list[tuple[object, ...]]:
    """Return the levels that identify the caller's and the server's program, a tuple for each."""
    settings = tuple(sorted((key, repr(value)) for key, value in treatment.settings.items()))
    common = (*(treatment.get(name) for name in CODE), settings)
    client = treatment.get("language")
    server = treatment.get("server_cell") or treatment.get("server_language") or client
    pattern = PATTERNS[str(treatment["pattern"])]
    return [(pattern.sender, client, *common), (pattern.receiver, server, *common)]
