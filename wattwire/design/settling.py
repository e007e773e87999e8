"""Settling runs: before block 1, some of each cell, which say how long its warm-up is to be."""

from __future__ import annotations

from collections.abc import Iterable

from wattwire.model.study import Plan
from wattwire.model.treatment import Treatment
from wattwire.model.warm_up import AUTO

CODE = ("cell", "middleware", "pattern", "variant")
"""Levels that, with a node's language, decide which program it is; settings.NAME besides."""


def piloted(treatments: Iterable[Treatment], plan: Plan) -> list[Treatment]:
    """Of the closed-loop treatments so many that every client and every server is in one.

    Those with few clients first: their server is called the least. None where the study does not
    ask settling runs for its warm-up.
    """
    if plan.warmup_calls != AUTO:
        return []
    closed = [treatment for treatment in treatments if treatment["loop"] == "closed"]
    chosen: list[Treatment] = []
    seen: set[tuple[object, ...]] = set()
    for treatment in sorted(closed, key=lambda one: int(one["clients"])):
        programs = set(_programs(treatment))
        if programs - seen:
            chosen.append(treatment)
            seen |= programs
    return chosen


def _programs(treatment: Treatment) -> list[tuple[object, ...]]:
    """What tells the client's program, and the server's, from others."""
    settings = tuple(sorted((key, repr(value)) for key, value in treatment.settings.items()))
    common = (*(treatment.get(name) for name in CODE), settings)
    client = treatment.get("language")
    server = treatment.get("server_language") or client
    return [("client", client, *common), ("server", server, *common)]
