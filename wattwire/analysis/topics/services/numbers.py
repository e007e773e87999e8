"""Summarize what service processes reported: their programs, and the growth of their counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import column

STEM = "service_counter"


@dataclass(frozen=True)
class Program:
    """The facts that a service reported when it was ready, and the number of runs with them."""

    service: str
    facts: tuple[tuple[str, str], ...]
    runs: int


@dataclass(frozen=True)
class Growth:
    """The growth of a service's counter over the runs of a treatment that have it.

    `per_message` is the growth divided by the messages sent; None if no message was sent.
    """

    treatment: tuple[str, ...]
    service: str
    counter: str
    runs: int
    growth: float
    per_message: float | None


@dataclass(frozen=True)
class Services:
    """What the services of all valid runs reported."""

    programs: tuple[Program, ...] = ()
    counters: tuple[Growth, ...] = ()


def services(evidence: Evidence) -> Services:
    """Return the programs and the counters of services; none for campaigns without messages."""
    if not evidence.has_messages:
        return Services()
    return Services(tuple(_programs(evidence)), tuple(_counters(evidence)))


def _programs(evidence: Evidence) -> Iterator[Program]:
    counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
    for run in evidence.usable["run"].to_list():
        for service in evidence.runs.get(run, {}).get("services", []):
            facts = tuple((name, str(value)) for name, value in service.get("facts", {}).items())
            if facts:
                counts[service["process"].partition(".")[0], facts] += 1
    for (service, facts), runs in sorted(counts.items()):
        yield Program(service, facts, runs)


def _counters(evidence: Evidence) -> Iterator[Growth]:
    for key, frame in by_treatment(evidence, evidence.usable).items():
        sent = column(frame, "sent")
        for name in sorted(n for n in frame.columns if n.startswith(f"{STEM}.")):
            values = column(frame, name)
            known = np.isfinite(values)
            if known.any():
                _, service, counter = name.split(".")
                messages, growth = float(np.nansum(sent[known])), float(values[known].sum())
                per_message = growth / messages if messages else None
                yield Growth(key, service, counter, int(known.sum()), growth, per_message)
