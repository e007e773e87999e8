"""The report's part "Findings": the findings of each detector, or the reasons for none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wattwire.analysis.controls import noise
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.latency import Series, excluded_series
from wattwire.report.findings import delayed_ack, idle, sizes
from wattwire.report.findings.finding import Finding, Silence, excluded_runs, runs_of
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "all_findings",
    {
        "in_short": "Found: {findings:listed}.",
        "finding": "{title:lower} ({standing})",
        "no_latencies": "No usable run has latencies to analyse.",
    },
)


@dataclass(frozen=True)
class Findings:
    """The findings, and the reasons of detectors without one."""

    items: tuple[Finding, ...]
    silent: tuple[Silence, ...]

    @property
    def in_short(self) -> Phrase:
        """One sentence on all findings; "" without any."""
        findings = [
            PHRASES("finding", title=finding.title, standing=finding.standing)
            for finding in self.items
        ]
        return PHRASES("in_short", findings=findings) if findings else Phrase()


def look(evidence: Evidence, series: Mapping[str, Series]) -> Findings:
    """Apply every detector to the usable runs; `series` has each run's latencies.

    Waits for an acknowledgement are searched in excluded runs as well: load does not cause a mode
    at 40 ms, and a waiting node leaves the machine idle for others.
    """
    runs = runs_of(evidence, series)
    excluded = excluded_runs(evidence, excluded_series(evidence))
    everything = [*runs, *excluded]
    if not everything:
        return Findings((), (Silence(PHRASES("no_latencies")),))
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
