"""Simulate a campaign whose study requests tables, figures and a ranking with published numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wattwire.analysis.dataset import Evidence, gather
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.store import Campaign

PRINTED = (
    "table,node_role,language,clients,energy_j,energy_ratio,time_s,source\n"
    "4,client,python,1,99,3.5,,Table 4 (Old)\n"
    "4,client,swift,1,28.2,,,Table 4 (Old)\n"
    "4,server,python,1,105.80,3.9,,Table 4 (Old)\n"
    "4,both,python,1,,,28,Table 4 (Old)\n"
    "4,both,swift,1,,,3,Table 4 (Old)\n"
    "9,client,python,1,7,,,Table 9 (Old)\n"
)
TABLE = {
    "title": "Energy and time, as in table 4",
    "rows": "language",
    "columns": "clients",
    "best": True,
    "published": ["4"],
    "note": "Of 20,000 calls.",
    "values": [
        {"response": "energy_uj_per_message", "roles": ["client"], "published": "energy_j",
         "ratio": "energy_ratio"},
        {"response": "cpu_us_per_message", "roles": ["client", "server"]},
        {"response": "time_us_per_message", "published": "time_s"},
        {"response": "faults_minor", "roles": ["client"], "divide_by": 1000},
    ],
}  # fmt: skip
FIGURES = [
    {"title": "Boxes", "kind": "box", "response": "energy_uj_per_message", "by": "language",
     "instead": "cpu_us_per_message", "roles": ["client", "server"]},
    {"title": "Both", "kind": "scatter", "response": "energy_uj_per_message", "by": "language",
     "against": "time_us_per_message", "instead": "cpu_us_per_message"},
]  # fmt: skip
RANKING = {
    "title": "Energy times delay",
    "product": ["energy_uj_per_message", "time_us_per_message"],
    "published": "4",
    "published_product": ["energy_j", "time_s"],
}
STUDY = {
    "published": "published.csv",
    "table": [TABLE],
    "figure": FIGURES,
    "ranking": [RANKING],
}


def campaign_of(
    folder: Path, printed: str = PRINTED, study: Mapping[str, Any] | None = None, **shape: Any
) -> Path:
    """Write a campaign whose study requests output, next to the `printed` numbers of a paper.

    `study` changes keys of the study, and `shape` the shape of the campaign.
    """
    made = Shape(
        **{"blocks": 3, "duration_s": 4.0, "patterns": ("service",), "intervals_s": (0.2,),
           "study": {**STUDY, **(study or {})}, **shape}
    )  # fmt: skip
    at = write_campaign(folder / "campaign", made)
    if printed:
        (at / "published.csv").write_text(printed)
    return at


def evidence_of(folder: Path, **shape: Any) -> Evidence:
    """Return the evidence of such a campaign."""
    return gather(Campaign(campaign_of(folder, **shape)))
