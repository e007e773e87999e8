"""The page's part "Findings": what each detector found, or why it is silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wattwire.analysis.controls import noise
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.latency import Series, excluded_series
from wattwire.model import words
from wattwire.report.findings import delayed_ack, idle, sizes
from wattwire.report.findings.finding import Finding, Silence, excluded_runs, runs_of


@dataclass(frozen=True)
class Findings:
    """What the detectors found, and why the others are silent."""

    found: tuple[Finding, ...]
    silent: tuple[Silence, ...]

    @property
    def in_short(self) -> str:
        """All findings in one sentence; empty where there are none."""
        told = [f"{one.title[:1].lower()}{one.title[1:]} ({one.standing})" for one in self.found]
        return f"Found: {words.listed(told)}." if told else ""


def look(evidence: Evidence, series: Mapping[str, Series]) -> Findings:
    """Let every detector look through the usable runs; `series` is each run's latencies.

    Waits for an acknowledgement are looked for in excluded runs as well: a mode at 40 ms is not
    made by load, and a node that waits is what leaves a machine idle for others.
    """
    runs = runs_of(evidence, series)
    excluded = excluded_runs(evidence, excluded_series(evidence))
    everything = [*runs, *excluded]
    if not everything:
        return Findings((), (Silence("No usable run carries a latency to look at."),))
    waits = delayed_ack.find(evidence, everything, delayed_ack.hits_of(evidence, everything))
    results: list[Finding | Silence] = [waits]
    if runs:
        stepped, unstepped = sizes.find(evidence, runs, delayed_ack.hits_of(evidence, runs))
        results += [*stepped, *([unstepped] if unstepped else [])]
        results.append(idle.find(evidence, runs, noise(evidence)))
    return Findings(
        tuple(one for one in results if isinstance(one, Finding)),
        tuple(one for one in results if isinstance(one, Silence)),
    )
