"""Run all detectors and collect their findings, or the reasons for their absence."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.findings.runs import excluded_runs, runs_of
from wattwire.analysis.latency import Series, excluded_series
from wattwire.report.findings.finding import Detector, Finding, Searched, Silence
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "all_findings",
    {
        "in_short": "Findings: {findings:listed}.",
        "finding": "{title:lower} ({standing})",
        "no_latencies": "No valid run has latencies to analyse.",
    },
)


@dataclass(frozen=True)
class Findings:
    """The findings, and the reasons why the other detectors have none."""

    items: tuple[Finding, ...]
    silent: tuple[Silence, ...]

    @property
    def in_short(self) -> Phrase:
        """Return a sentence that summarises all findings, or "" if there are none."""
        findings = [
            PHRASES("finding", title=finding.title, standing=finding.standing)
            for finding in self.items
        ]
        return PHRASES("in_short", findings=findings) if findings else Phrase()


def look(evidence: Evidence, series: Mapping[str, Series]) -> Findings:
    """Apply every detector to the runs. `series` contains the latencies of each valid run."""
    excluded = excluded_runs(evidence, excluded_series(evidence))
    searched = Searched(evidence, runs_of(evidence, series), excluded)
    if not searched.runs and not excluded:
        return Findings((), (Silence(PHRASES("no_latencies")),))
    results = [
        result
        for detector in detectors()
        if searched.runs or not detector.needs_usable_runs
        for result in detector.look(searched)
    ]
    return Findings(
        tuple(result for result in results if isinstance(result, Finding)),
        tuple(result for result in results if isinstance(result, Silence)),
    )


@cache
def detectors() -> tuple[Detector, ...]:
    """Return the detectors of all modules in this folder, sorted by place."""
    folder = __name__.rpartition(".")[0]
    names = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    modules = [importlib.import_module(f"{folder}.{name}") for name in names]
    detectors = [module.DETECTOR for module in modules if hasattr(module, "DETECTOR")]
    return tuple(sorted(detectors, key=lambda detector: detector.place))
