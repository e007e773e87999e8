"""Apply every detector of a known cause to the runs of a campaign.

No file lists the detectors. Adding or removing a finding changes only its own folder.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.latency import Series, excluded_series
from wattwire.analysis.topics.findings.detector import Detected, Detector, Finding, Searched
from wattwire.analysis.topics.findings.runs import excluded_runs, runs_of


@dataclass(frozen=True)
class Found:
    """A finding. `folder` has its templates."""

    folder: str
    finding: Finding


@dataclass(frozen=True)
class Detection:
    """The result of the detector in `folder`, a path below `topics/`."""

    folder: str
    result: Detected


@dataclass(frozen=True)
class Findings:
    """The results of all detectors, sorted by place.

    `is_searched` is false for campaigns without messages: imported data and commands.
    """

    is_searched: bool = False
    has_latencies: bool = False
    detections: tuple[Detection, ...] = ()

    @property
    def found(self) -> tuple[Found, ...]:
        """The findings of all detectors."""
        return tuple(
            Found(detection.folder, finding)
            for detection in self.detections
            for finding in detection.result.found
        )

    @property
    def silent(self) -> tuple[Detection, ...]:
        """The detectors without a finding."""
        return tuple(detection for detection in self.detections if not detection.result.found)


def findings(evidence: Evidence, series: Mapping[str, Series], answers: Answers) -> Findings:
    """Apply every detector to the runs. `series` contains the latencies of each valid run."""
    if evidence.imported or evidence.study.request is not None:
        return Findings()
    excluded = excluded_runs(evidence, excluded_series(evidence))
    searched = Searched(evidence, runs_of(evidence, series), excluded, answers.noise)
    if not searched.runs and not excluded:
        return Findings(is_searched=True)
    detections = (
        Detection(f"findings/{name}", detector.search(searched))
        for name, detector in detectors().items()
        if searched.runs or not detector.needs_valid_runs
    )
    return Findings(True, True, tuple(detections))


@cache
def detectors() -> Mapping[str, Detector]:
    """Return the DETECTOR of every folder here by the folder's name, sorted by place."""
    package = __name__.rpartition(".")[0]
    modules = {
        module.name: importlib.import_module(f"{package}.{module.name}")
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
        if module.ispkg
    }
    by_name = {name: m.DETECTOR for name, m in modules.items() if hasattr(m, "DETECTOR")}
    return dict(sorted(by_name.items(), key=lambda item: item[1].place))
