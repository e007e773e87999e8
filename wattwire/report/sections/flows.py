"""Build the section on the flows of a study that runs several flows at the same time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.flows.results import QUANTILES, results
from wattwire.model.deployment import deployment_of_run
from wattwire.model.derived import column
from wattwire.report import figures
from wattwire.report.figures.style import axis_title
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Figure, Section, Table, Text
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "flows",
    {
        "title": "Flows",
        "table": "Rate, latency and loss of each flow",
        "note": (
            "All flows of a treatment run at the same time, each with its own sender and receiver. "
            "“Offered” is the rate of the study, and “achieved” is the rate at which the sender "
            "sent; it is lower if the sender or its network is saturated. “Arrived” is the payload "
            "that the receiver got per second of the window, without the warm-up. Rates are means "
            "over the runs. Latencies are geometric means of the runs' percentiles, as in the "
            "answers. A lost message has an infinite latency; “∞”: so has the percentile of a run. "
            "A percentile needs enough messages in each run. Expected and lost messages are sums "
            "over the runs, without the warm-up."
        ),
        "figure": "Median latency of each flow",
        "caption": (
            "A dot is the median of a valid run.{lost} Boxes show quartiles of rows with at least "
            "{boxes} runs; the table has geometric means."
        ),
        "lost": " Runs that lost half of a flow's messages have no dot.",
        "reliable": (
            "{flows:listed} lost messages although their delivery is reliable{queues}"
            ". Reliable delivery repeats only what the sender's and the receiver's queues still "
            "hold: when the link or the receiver is slower than the sender, a queue of limited "
            "length overwrites messages that have not arrived. A longer queue, or one that blocks "
            "the sender, can lose fewer and delay more."
        ),
        "queues": " ({queues:listed})",
    },
)
RELIABLE = "reliable"
QUEUE_SETTINGS = ("history", "depth")
_TITLES = dict(zip(QUANTILES, ("median latency", "p90", "p99"), strict=True))


def section(evidence: Evidence) -> Section | None:
    """Return the section on flows, or None for a study without flows or without valid runs."""
    rows: list[dict[str, Any]] = [
        {
            **dict(zip(evidence.varied, result.treatment, strict=True)),
            "flow": result.flow,
            "runs": result.runs,
            "payload": result.payload_bytes,
            "offered": result.offered_hz,
            "achieved": result.achieved_hz,
            "arrived": result.throughput,
            **result.latency_us,
            "expected": result.expected,
            "lost": result.lost,
        }
        for result in results(evidence)
    ]
    if not rows:
        return None
    columns = [
        *factor_columns(evidence),
        Column("flow", "flow"),
        Column("runs", "runs", "measured"),
        Column("payload", "payload", "measured", "B"),
        Column("offered", "offered rate", "measured", "Hz"),
        Column("achieved", "achieved rate", "measured", "Hz"),
        Column("arrived", "arrived", "measured", "bytes/s"),
        *(Column(stem, title, "measured", "µs") for stem, title in _TITLES.items()),
        Column("expected", "expected", "measured"),
        Column("lost", "lost", "measured"),
    ]
    part = Section("flows", PHRASES("title"))
    part.parts += [Text(text, "warning") for text in [_reliable_losses(evidence)] if text]
    part.parts += [figure for figure in [_figure(evidence)] if figure]
    part.parts.append(Table("flows", PHRASES("table"), columns, rows, PHRASES("note")))
    return part


def _figure(evidence: Evidence) -> Figure | None:
    """Return the figure of the flows' median latencies, or None if no run has one."""
    points: list[dict[str, Any]] = []
    infinite = False
    for key, frame in by_treatment(evidence, evidence.usable).items():
        levels = dict(zip(evidence.varied, key, strict=True))
        treatment = evidence.treatment_title(levels) or evidence.study.heading
        for flow in evidence.study.flows:
            values = column(frame, f"{QUANTILES[0]}.flow.{flow.name}").tolist()
            infinite |= math.inf in values
            points += [
                {
                    "value": figures.rounded(value), "colour": flow.name, "panel": flow.name,
                    "row": treatment, "treatment": treatment, "run": run,
                }
                for value, run in zip(values, frame["run"].to_list(), strict=True)
                if math.isfinite(value) and value > 0
            ]  # fmt: skip
    if not points:
        return None
    flows = [flow.name for flow in evidence.study.flows]
    rows = figures.Rows.of_treatments(list(dict.fromkeys(point["row"] for point in points)))
    value = axis_title(PHRASES("figure"), "µs", "log")
    chart = figures.box_chart(points, flows, "flow", flows, 2, value, "log", rows)
    lost = PHRASES("lost") if infinite else ""
    caption = PHRASES("caption", lost=lost, boxes=figures.BOX_RUNS_MIN)
    return Figure("flows-latency", PHRASES("figure"), caption, chart)


def _reliable_losses(evidence: Evidence) -> Phrase:
    """Return a sentence on flows that lost messages despite reliable delivery, else ""."""
    flows: dict[str, None] = {}
    queues: dict[str, None] = {}
    for row in evidence.usable.iter_rows(named=True):
        run = evidence.runs.get(row["run"], {})
        ready = {node["node"]: node.get("ready") or {} for node in run.get("nodes", [])}
        for flow in deployment_of_run(run).flows if ready else ():
            sender = ready.get(flow.sender, {})
            if row.get(f"lost.flow.{flow.name}") and _is_reliable(sender):
                flows[flow.name] = None
                queues |= dict.fromkeys(_queue(sender))
    if not flows:
        return Phrase()
    named = PHRASES("queues", queues=list(queues)) if queues else ""
    return PHRASES("reliable", flows=list(flows), queues=named)


def _is_reliable(ready: Mapping[str, Any]) -> bool:
    """Return whether a node reports reliable delivery, or a setting in force with this level.

    With a queue of limited length, nodes do not guarantee the delivery that their setting names.
    """
    delivery = (ready.get("guarantee") or {}).get("delivery")
    return RELIABLE in (delivery, *(ready.get("effective") or {}).values())


def _queue(ready: Mapping[str, Any]) -> list[str]:
    """Return the settings in force of a node's queue, or what it does when overloaded."""
    effective = ready.get("effective") or {}
    settings = [f"{key} = {effective[key]}" for key in QUEUE_SETTINGS if key in effective]
    overload = (ready.get("guarantee") or {}).get("overload")
    return settings or ([str(overload).replace("_", " ")] if overload else [])


PART = PagePart(35, lambda data: [section(data.evidence)], measured_only=True, of_messages=True)
