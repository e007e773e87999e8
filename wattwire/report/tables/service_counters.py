"""Show the programs of services such as brokers and routers, and the growth of their counters."""

from __future__ import annotations

from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.model.derived import column
from wattwire.report.parts import Column, Fold, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "service_counters",
    {
        "title": "Counters of service processes",
        "note": (
            "Services such as brokers and routers count by themselves. wattwire reads their "
            "counters when the nodes are ready and when the nodes have ended. The table shows the "
            "growth between both readings, as sums over the runs, and divided by the messages "
            "sent. The counters have the meaning that the service's documentation gives them."
        ),
        "programs": "Programs of service processes",
        "programs_note": "Each service reported its program and version when it was ready.",
    },
)
STEM = "service_counter"


def fold(evidence: Evidence) -> Fold | None:
    """Return the fold with the programs and the counters of services, or None without any."""
    tables = [table for table in (_programs(evidence), _counters(evidence)) if table.rows]
    return Fold(PHRASES("title"), list(tables)) if tables else None


def _counters(evidence: Evidence) -> Table:
    rows: list[dict[str, Any]] = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        sent = column(frame, "sent")
        for name in sorted(n for n in frame.columns if n.startswith(f"{STEM}.")):
            values = column(frame, name)
            known = np.isfinite(values)
            if not known.any():
                continue
            _, service, counter = name.split(".")
            messages = float(np.nansum(sent[known]))
            rows.append(
                {
                    **dict(zip(evidence.varied, key, strict=True)),
                    "service": service,
                    "counter": counter,
                    "runs": int(known.sum()),
                    "grown": float(values[known].sum()),
                    "per_message": float(values[known].sum()) / messages if messages else None,
                }
            )
    columns = [
        *factor_columns(evidence),
        Column("service", "service"),
        Column("counter", "counter"),
        Column("runs", "runs", "measured"),
        Column("grown", "growth", "measured"),
        Column("per_message", "per message sent", "measured"),
    ]
    return Table(STEM, PHRASES("title"), columns, rows, PHRASES("note"))


def _programs(evidence: Evidence) -> Table:
    """Return a table with the facts that services reported, and the number of runs with them."""
    counts: dict[tuple[str, ...], int] = {}
    for run in evidence.usable["run"].to_list():
        for service in evidence.runs.get(run, {}).get("services", []):
            facts = service.get("facts", {})
            if facts:
                text = ", ".join(f"{name} {value}" for name, value in facts.items())
                identity = (service["process"].partition(".")[0], text)
                counts[identity] = counts.get(identity, 0) + 1
    rows = [
        {"service": service, "reported": text, "runs": runs}
        for (service, text), runs in sorted(counts.items())
    ]
    columns = [
        Column("service", "service"),
        Column("reported", "reported"),
        Column("runs", "runs", "measured"),
    ]
    return Table("services", PHRASES("programs"), columns, rows, PHRASES("programs_note"))
