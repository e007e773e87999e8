"""Build the section on the A/A noise and the cost of sampling, measured by control runs.

Each block measures a treatment twice under two labels (A/A), and a third time with a paused
sampler. The page claims no effect smaller than the A/A noise. The noise is the confidence limit of
the A/A difference that is farther from zero, because the estimate may be near zero by chance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.confidence import CONFIDENCE, interval_confidence
from wattwire.analysis.controls import PAIRS_MIN, control_pairs, question_responses
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import CPU, LATENCY_P50, Response, measured
from wattwire.model.derived import FloatArray
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "controls",
    {
        "title": "Control runs",
        "what": (
            "In each block, one treatment{treatment} was also measured three times: under two "
            "labels, A and B, and with the sampler paused during the window. The difference "
            "between A and B is noise. An effect is claimed only if it exceeds the far end of the "
            "interval of B / A. No other table of responses includes these runs."
        ),
        "treatment": " ({treatment})",
        "none_valid": "No control run is valid.",
        "table": "A/A noise and cost of sampling",
        "no_ratio": (
            "no ratio, because values are zero or negative in {pairs:plural pair}; mean "
            "difference {mean:number}{unit}"
        ),
        "note": (
            "Each ratio is a geometric mean over blocks. With at least {pairs} pairs, it has a "
            "{confidence:confidence} t interval. Without the sampler, CPU time is read only at the "
            "start and the end of the window."
        ),
    },
)

UNASKED = (LATENCY_P50, CPU)
"""Responses that control runs compare if the study has no question."""


def section(evidence: Evidence) -> Section | None:
    """Return the section on control runs, or None for a campaign without control runs."""
    planned = [entry for entry in evidence.planned if entry.get("control")]
    if not planned:
        return None
    part = Section("controls", PHRASES("title"))
    treatment = evidence.treatment_title(planned[0]["treatment"])
    part.parts.append(
        Text(
            PHRASES(
                "what",
                treatment=PHRASES("treatment", treatment=treatment) if treatment else "",
            )
        )
    )
    rows = [
        _row(evidence, response)
        for response in question_responses(evidence) or UNASKED
        if measured(evidence.controls, response)
    ]
    if rows:
        part.parts.append(_table(rows))
    else:
        part.parts.append(Text(PHRASES("none_valid"), "warning"))
    return part


def _row(evidence: Evidence, response: Response) -> dict[str, Any]:
    same = control_pairs(evidence, response, "b", "a")
    sampled = control_pairs(evidence, response, "a", "unsampled")
    confidence = interval_confidence(evidence)
    return {
        "response": response.title,
        "same": _ratio(*same, response.unit, confidence),
        "same_pairs": len(same[0]),
        "sampled": _ratio(*sampled, response.unit, confidence),
        "sampled_pairs": len(sampled[0]),
    }


def _ratio(upper: FloatArray, lower: FloatArray, unit: str, confidence: float) -> Any:
    """Return the geometric mean of paired ratios. `upper` and `lower` have shape (pairs,).

    The result has a confidence interval from PAIRS_MIN pairs on. If a value has no logarithm, the
    result is NotComputable with the mean difference in `unit`. It is None without pairs.
    """
    zeros = int(np.sum((upper <= 0) | (lower <= 0)))
    if zeros:
        mean = float(np.mean(upper - lower))
        return stats.NotComputable(
            PHRASES("no_ratio", pairs=zeros, mean=mean, unit=f" {unit}" if unit else "")
        )
    if len(upper) >= PAIRS_MIN:
        return stats.geometric_mean(upper / lower, confidence)
    return math.exp(float(np.mean(np.log(upper / lower)))) if len(upper) else None


def _table(rows: list[dict[str, Any]]) -> Table:
    return Table(
        "controls",
        PHRASES("table"),
        [
            Column("response", "response"),
            Column("same", "B / A [interval]", "measured"),
            Column("same_pairs", "pairs", "measured"),
            Column("sampled", "A with sampler / without [interval]", "measured"),
            Column("sampled_pairs", "pairs with / without", "measured"),
        ],
        rows,
        PHRASES("note", confidence=CONFIDENCE, pairs=PAIRS_MIN),
    )


PART = PagePart(140, lambda data: [section(data.evidence)], measured_only=True)
