"""Compare the latency from the due time with the time since the send call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import column
from wattwire.report.parts import Column
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "due_time",
    {
        "late": (
            "Senders were late: the {percentile} latency is {latency:number} µs from the due time, "
            "and {since_send:number} µs from the send call{treatment}{more}. Answers use the first "
            "number."
        ),
        "treatment": " ({treatment})",
        "more": "; {more:plural further treatment/further treatments}",
    },
)

LATE_FACTOR = 2.0
"""Smallest ratio of both figures that the first lines of the page report."""
DIFFERENCE_MIN = 0.1
"""Smallest relative difference with which the table shows both figures."""
PERCENTILES = ("p50", "p99")
COLUMNS = [
    Column(f"since_send_{name}", f"{name} since the send call", "measured", "µs")
    for name in PERCENTILES
]


def since_send(frame: pl.DataFrame) -> dict[str, float | None]:
    """Return the medians over runs of both figures (µs), None if unknown."""
    return {
        f"{stem}_{name}": _median(frame, f"{stem}_{name}_us")
        for stem in ("latency", "since_send")
        for name in PERCENTILES
    }


def differs(row: dict[str, Any]) -> bool:
    """Return whether both figures of a treatment differ by more than DIFFERENCE_MIN."""
    return any(
        late is not None and prompt is not None and late > (1 + DIFFERENCE_MIN) * prompt
        for late, prompt in ((row[f"latency_{n}"], row[f"since_send_{n}"]) for n in PERCENTILES)
    )


def late_senders(evidence: Evidence) -> Phrase:
    """Return a sentence on the treatment with the latest senders; empty below LATE_FACTOR."""
    cases = sorted(_cases(evidence), key=lambda case: case[0], reverse=True)
    if not cases:
        return Phrase()
    _, treatment, name, latency, prompt = cases[0]
    more = len({case[1] for case in cases}) - 1
    return PHRASES(
        "late",
        percentile=name,
        latency=latency,
        since_send=prompt,
        treatment=PHRASES("treatment", treatment=treatment) if treatment else "",
        more=PHRASES("more", more=more) if more else "",
    )


def _cases(evidence: Evidence) -> Iterator[tuple[float, str, str, float, float]]:
    """Yield the ratio, the treatment, the percentile and both figures above LATE_FACTOR."""
    for key, frame in by_treatment(evidence, evidence.usable).items():
        row, title = since_send(frame), dict(zip(evidence.varied, key, strict=True))
        for name in PERCENTILES:
            late, prompt = row[f"latency_{name}"], row[f"since_send_{name}"]
            if late and prompt and prompt > 0 and late >= LATE_FACTOR * prompt:
                yield late / prompt, evidence.treatment_title(title), name, late, prompt


def _median(frame: pl.DataFrame, name: str) -> float | None:
    values = column(frame, name)
    values = values[~np.isnan(values)]
    return float(np.median(values)) if values.size else None
