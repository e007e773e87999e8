"""Read a campaign that the machine measured, and what the law planted in its runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.machine.law import Law, Span, read_law
from wattwire.analysis.dataset import Evidence, by_treatment, gather
from wattwire.analysis.topics.costs.numbers import JoulesPerMessage, powers
from wattwire.store import Campaign


@dataclass(frozen=True)
class Planted:
    """The campaign's evidence, and the law."""

    evidence: Evidence
    law: Law

    def spans(self, run: str) -> dict[str, Span]:
        """Return the spans of a run's baselines and of its window."""
        document = self.evidence.runs[run]
        window = document["window"]
        return {
            **{name: _ends(document["baselines"][name]) for name in ("machine", "silent")},
            "window": (window["cost_begin_ns"], window["end_ns"]),
        }

    def powers_w(self, run: str) -> dict[str, float]:
        """Return the power (W) that the law planted in each span of a run."""
        return {name: self.law.power_w(span) for name, span in self.spans(run).items()}

    def limit_us(self, run: str) -> int | None:
        """Return the CPU latency limit (µs) of a run, None if its study has none."""
        limit_us = self.evidence.runs[run]["treatment"].get("cpu_latency_us")
        return None if limit_us is None else int(limit_us)

    def message_j(self, run: str, rate_hz: float) -> float:
        """Return the energy (J) per message that the law planted in a run, by difference."""
        spans = self.spans(run)
        above_silent_w = self.law.power_w(spans["window"]) - self.law.power_w(spans["silent"])
        return above_silent_w / rate_hz

    def joules_per_message(self) -> Iterator[tuple[tuple[str, ...], JoulesPerMessage, float]]:
        """Yield each treatment, its interval on the page, and the mean that the law planted.

        A valid run in which a node did not start in time has no window, and so no power.
        """
        groups = by_treatment(self.evidence, self.evidence.usable)
        for row in powers(self.evidence):
            group = groups[row.treatment].drop_nulls("power_window_w")
            runs = zip(group["run"], group["rate_hz_achieved"], strict=True)
            planted_j = [self.message_j(run, rate_hz) for run, rate_hz in runs]
            yield row.treatment, row.j_per_sent, float(np.mean(planted_j))


def planted(folder: Path) -> Planted:
    """Return the campaign of a step, which is in an archive in the step's folder."""
    shutil.unpack_archive(folder / "campaign.tar", folder)
    return Planted(gather(Campaign(folder / folder.name)), read_law(folder / "truth.txt"))


def whole(spans: Mapping[str, Span]) -> Span:
    """Return the span from the first begin to the last end."""
    return min(begin for begin, _ in spans.values()), max(end for _, end in spans.values())


def seconds(span: Span) -> float:
    """Return the length of a span (s)."""
    return (span[1] - span[0]) / 1e9


def _ends(baseline: Mapping[str, int]) -> Span:
    return baseline["begin_ns"], baseline["end_ns"]
