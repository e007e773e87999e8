"""What is allowed in a study and yet likely to be a mistake."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.model.study import Study
from wattwire.model.treatment import Treatment

CALL_US_MIN = 20.0
"""A call is hardly faster between two processes of one machine: a bound of experience."""


def cautions(study: Study, treatments: Sequence[Treatment]) -> list[str]:
    """Sentences to be read before the study is run; none where nothing looks wrong."""
    return [
        *_no_question(study),
        *_swallowed_by_warm_up(study, treatments),
        *_without_effect(study, treatments),
    ]


def _no_question(study: Study) -> list[str]:
    if study.questions or all(len(levels) < 2 for levels in study.factors.values()):
        return []
    return [
        "no [[question]]: the page will show what was measured and compare nothing; "
        "a question names text, factors and responses"
    ]


def _swallowed_by_warm_up(study: Study, treatments: Sequence[Treatment]) -> list[str]:
    counts = [int(t["count"]) for t in treatments if t["loop"] == "closed"]
    if not counts:
        return []
    fewest, warmup_s = min(counts), study.plan.warmup_s
    each_us = warmup_s * 1e6 / fewest
    if each_us <= CALL_US_MIN:
        return []
    return [
        f"closed loop: {fewest:,} calls back to back end within plan.warmup_s = {warmup_s:g} s, "
        f"where nothing counts, unless a call takes more than {each_us:,.0f} us; "
        "raise count or lower plan.warmup_s"
    ]


def _without_effect(study: Study, treatments: Sequence[Treatment]) -> list[str]:
    """Levels that somebody set and that change nothing here: whoever set them thinks they do."""
    told = []
    overlapping = any(int(t["outstanding_max"]) > 1 for t in treatments)
    if overlapping and all(t["loop"] == "closed" for t in treatments):
        told.append(
            "outstanding_max changes nothing in closed loop, where a client has one call open; "
            "more clients make calls overlap, or an open loop with a rate"
        )
    closed = bool(treatments) and all(t["loop"] == "closed" for t in treatments)
    if closed and "duration_s" in study.document.get("plan", {}):
        told.append(
            "plan.duration_s changes nothing in closed loop, where each client makes `count` "
            "calls; set count for a longer window"
        )
    fixed = study.document.get("fixed", {})
    if "payload_bytes" in fixed and treatments and all(t["literal"] for t in treatments):
        told.append(
            f"payload_bytes changes nothing beside literal {str(treatments[0]['literal'])!r}, "
            'which is the whole payload; literal="" leaves it out'
        )
    return told
