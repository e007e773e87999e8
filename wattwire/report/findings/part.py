"""The report's part "Findings": the findings of each detector, or the reasons for none."""

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
    """The findings, and the reasons of detectors without one."""

    items: tuple[Finding, ...]
    silent: tuple[Silence, ...]

    @property
    def in_short(self) -> str:
        """One sentence on all findings; "" without any."""
        phrases = [
            f"{finding.title[:1].lower()}{finding.title[1:]} ({finding.standing})"
            for finding in self.items
        ]
        return f"Found: {words.listed(phrases)}." if phrases else ""


def look(evidence: Evidence, series: Mapping[str, Series]) -> Findings:
    """Apply every detector to the usable runs; `series` has each run's latencies.

    Waits for an acknowledgement are searched in excluded runs as well: load does not cause a mode
    at 40 ms, and a waiting node leaves the machine idle for others.
    """
    runs = runs_of(evidence, series)
    excluded = excluded_runs(evidence, excluded_series(evidence))
    everything = [*runs, *excluded]
    if not everything:
        return Findings((), (Silence("No usable run has latencies to analyse."),))
    waits = delayed_ack.find(evidence, everything, delayed_ack.hits_of(evidence, everything))
    results: list[Finding | Silence] = [waits]
    if runs:
        stepped, unstepped = sizes.find(evidence, runs, delayed_ack.hits_of(evidence, runs))
        results += [*stepped, *([unstepped] if unstepped else [])]
        results.append(idle.find(evidence, runs, noise(evidence)))
    return Findings(
        tuple(result for result in results if isinstance(result, Finding)),
        tuple(result for result in results if isinstance(result, Silence)),
    )
