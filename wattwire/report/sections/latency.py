"""Build the section on latency: curves that include losses, and percentiles over runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis import carried, not_compared
from wattwire.analysis.charts import (
    facet_factor,
    panel_of,
    panels,
    panels_per_row,
    titles_of,
    tone_of,
    treatment_of,
)
from wattwire.analysis.dataset import Evidence, all_levels, by_treatment, levels_run
from wattwire.analysis.latency import Series
from wattwire.analysis.topics.rates.numbers import delivered_hz, delivered_kind
from wattwire.analysis.topics.settling.numbers import Settling
from wattwire.model import words
from wattwire.model.derived import FloatArray, column
from wattwire.model.hosts.clocks import relations_of_run
from wattwire.report import figures
from wattwire.report.page_parts import TITLE, HeadLine, PageData, PagePart
from wattwire.report.parts import Column, Figure, Section, Table, Text
from wattwire.report.tables import due_time
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.topic_page import Placed, Sentences
from wattwire.report.words import concurrency
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "latency",
    {
        "title": "Latency",
        "none": "No valid run has a latency.",
        "of_flows": (
            "The curves and percentiles are those of each flow, in the section on flows: a "
            "percentile over the messages of {flows:listed} together describes none of them. "
            "Everything below is over the messages of all flows of a run."
        ),
        "what": (
            "Latency ends at the callback of a message (topics, pipelines), at the reply to a "
            "call, or at the result of a goal. {start} Lost messages and failed calls count as "
            "+∞, so a curve that includes them ends below 100 %."
        ),
        "open": (
            "It starts when the message was due, so a sender that had to wait cannot hide the "
            "delay."
        ),
        "closed": (
            "It starts at the call, because a closed loop has no due times; it does not show how "
            "long the requests of independent clients would have waited."
        ),
        "both": (
            "In open loop, it starts when the message was due, so a sender that had to wait cannot "
            "hide the delay. In closed loop, which has no due times, it starts at the call."
        ),
        # The curves.
        "figure": "Latency distribution",
        "caption": (
            "Each curve pools the messages of all valid runs of its group{pooled}. {thinned}Click "
            "a name in the legend to highlight its curve."
        ),
        "pooled": " over {factors:listed}",
        "thinned": (
            "Curves are downsampled to at most {points} exact points, with a higher density "
            "above the 99th percentile. "
        ),
        # The table of percentiles.
        "table": "Latency percentiles",
        "note": (
            "With three or more runs, the table gives the geometric mean of the runs' "
            "percentiles, with a 95 % t interval over runs. “Too few (available of needed)”: "
            "a run has too few messages for the percentile. With one or two runs, the table "
            "gives the first run's percentile, with an order-statistic interval that "
            "describes that run only. “Too few”: the effective sample size, or the number of "
            "separate clusters above the percentile, is too small. The sample of a percentile "
            "consists of the “latencies” and of the lost messages, failed calls, and messages "
            "that were due and never sent, which count as +∞. “∞ (no arrival)”: at 95 % "
            "confidence, their share exceeds the tail above the percentile, or the percentile "
            "of a run is infinite. The percentiles since the send call omit messages that were "
            "never sent."
        ),
        "one_clock": (
            "The hosts {hosts:listed} have one clock (one boot and one time namespace), so one-way "
            "latencies between them need no correction."
        ),
        "corrected": (
            "The clock of the host {host} differs from the controller's. One-way latencies are "
            "corrected by exchanges of four timestamps before and after each run, with an error of "
            "at most ± {band_us} µs for this host; the errors of two hosts add up. Round trips "
            "and delay variation need no correction."
        ),
        "clocks": "± clocks",
        "refused": (
            "The curves and percentiles omit {runs:plural run} in which this error exceeds the "
            "study's margin of the median latency ({treatments:listed})."
        ),
        "undated": (
            "{losses:plural lost message has/lost messages have} no recorded send time. The "
            "quantiles include these messages, and the time series shows them at its end."
        ),
        "unsent": (
            "{unsent:plural message was/messages were} due and never sent. The quantiles count "
            "them as +∞."
        ),
    },
)

RATES, SETTLING = Sentences("rates"), Sentences("settling")
LATE_SENDERS = 12
"""Place of the line on late senders at the top of the page."""
SHARES = (0.5, 0.9, 0.99, 0.999)
RUNS_MIN = 3
"""Minimum number of runs for a mean percentile. With fewer runs, the table has the percentile of
the first run.
"""
POINTS_PER_CURVE_MAX, POINTS_PER_CURVE_MIN, POINTS_PER_PAGE = 400, 100, 20_000


def section(
    evidence: Evidence, every: Mapping[str, Series], joining: Sequence[Placed] = ()
) -> Section:
    """Return the section on latency. `every` maps each valid run to its series of latencies.

    The parts of topics that join the section are at its end.
    """
    part = Section("latency", PHRASES("title"))
    series = {run: s for run, s in every.items() if s.values_us.size}
    if not series:
        part.has_no_data = True
        part.parts.append(Text(PHRASES("none"), "warning"))
        return part
    part.parts.append(Text(PHRASES("what", start=_start(evidence))))
    part.parts += [Text(sentence) for sentence in _clocks(evidence)]
    refused = _refused(evidence)
    series = {run: s for run, s in series.items() if run not in refused}
    if refused:
        names = dict.fromkeys(refused.values())
        text = PHRASES("refused", runs=len(refused), treatments=list(names))
        part.parts.append(Text(text, "warning"))
    if not series:
        return part
    if len(evidence.study.flows) > 1:
        flows = [flow.name for flow in evidence.study.flows]
        part.parts.append(Text(PHRASES("of_flows", flows=flows)))
    else:
        part.parts.append(_curves(evidence, series))
        part.parts.append(_percentiles(evidence, series))
    if late := due_time.late_senders(evidence):
        part.parts.append(Text(late, "warning"))
    unsent = sum(s.unsent for s in series.values())
    if unsent:
        part.parts.append(Text(PHRASES("unsent", unsent=unsent), "warning"))
    undated = sum(s.loose - s.unsent for s in series.values())
    if undated:
        part.parts.append(Text(PHRASES("undated", losses=undated), "note"))
    part.parts += [joining_part for _, joining_part in joining]
    return part


def _start(evidence: Evidence) -> Phrase:
    """Return the sentence on the start of latency in the campaign's loops."""
    loops = {all_levels(entry).get("loop", "open") for entry in evidence.designed}
    if len(loops) > 1:
        return PHRASES("both")
    return PHRASES("closed") if loops == {"closed"} else PHRASES("open")


def _clocks(evidence: Evidence) -> Iterator[Phrase]:
    """Yield a sentence per clock of the hosts of a rig."""
    hosts_of_clock: dict[str, set[str]] = {}
    band_ns: dict[str, int] = {}
    for run in evidence.usable["run"].to_list():
        for host, relation in relations_of_run(evidence.runs[run]).items():
            hosts_of_clock.setdefault(relation.clock, set()).add(host)
            if relation.before is not None:
                band_ns[host] = max(relation.band_ns, band_ns.get(host, 0))
    for hosts in hosts_of_clock.values():
        if len(hosts) > 1:
            yield PHRASES("one_clock", hosts=sorted(hosts))
    for host in sorted(band_ns):
        yield PHRASES("corrected", host=host, band_us=words.number(band_ns[host] / 1_000))


def _refused(evidence: Evidence) -> dict[str, str]:
    """Return run → treatment of the runs whose one-way latencies are not known."""
    frame = evidence.usable
    is_refused = not_compared.too_wide(evidence, frame, not_compared.MEDIAN)
    runs = frame.filter(pl.Series(is_refused, dtype=pl.Boolean))["run"].to_list()
    return {run: evidence.treatment_title(treatment_of(evidence, run)) for run in runs}


def _band_us(frame: pl.DataFrame) -> float | None:
    """Return the widest band of the runs' clocks (µs), or None on one clock."""
    bands_us = column(frame, not_compared.BAND)
    bands_us = bands_us[bands_us > 0]
    return float(bands_us.max()) if bands_us.size else None


def _curves(evidence: Evidence, series: Mapping[str, Series]) -> Figure:
    across = facet_factor(evidence)
    groups: dict[tuple[str, str], list[FloatArray]] = {}
    for run, run_series in series.items():
        treatment = treatment_of(evidence, run)
        tone = tone_of(evidence, treatment)
        groups.setdefault((panel_of(evidence, treatment, across), tone), []).append(
            run_series.values_us
        )
    budget = POINTS_PER_PAGE // max(1, len(groups))
    points_max = max(POINTS_PER_CURVE_MIN, min(POINTS_PER_CURVE_MAX, budget))
    points: list[dict[str, Any]] = []
    thinned = False
    for (panel, tone), group_values_us in groups.items():
        curve = stats.ecdf(np.concatenate(group_values_us), points_max)
        thinned = thinned or curve.thinned
        for value, share in zip(curve.values, curve.shares, strict=True):
            points.append(
                {
                    "us": figures.rounded(float(value)),
                    "share": figures.rounded(float(share), 5),
                    "colour": tone,
                    "panel": panel,
                }
            )
    caption = PHRASES(
        "caption",
        pooled=_pooled(evidence, across),
        thinned=PHRASES("thinned", points=points_max) if thinned else "",
    )
    return Figure(
        "latency-ecdf",
        PHRASES("figure"),
        caption,
        figures.ecdf_chart(
            [p for p in points if p["us"] > 0],
            titles_of(evidence, evidence.primary),
            words.factor_title(evidence.primary),
            panels(evidence, across, [p["panel"] for p in points]),
            panels_per_row(evidence),
        ),
    )


def _pooled(evidence: Evidence, across: str | None) -> str:
    """Return a clause that names the factors over which a curve pools.

    The result is "" if there are no such factors.
    """
    pooled = [
        words.factor_title(name)
        for name in evidence.varied
        if name not in ("pattern", evidence.primary, across) and len(levels_run(evidence, name)) > 1
    ]
    return PHRASES("pooled", factors=pooled) if pooled else ""


def _percentiles(evidence: Evidence, series: Mapping[str, Series]) -> Table:
    rows = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        of_runs = [series[run] for run in frame["run"].to_list() if run in series]
        runs_us = [of_run.values_us for of_run in of_runs]
        if not runs_us:
            continue
        row: dict[str, Any] = dict(zip(evidence.varied, key, strict=True))
        row["runs"] = len(runs_us)
        row["messages"] = sum(run_us.size for run_us in runs_us)
        row["latencies"] = sum(int(np.isfinite(run_us).sum()) for run_us in runs_us)
        row["unsent"] = sum(of_run.unsent for of_run in of_runs)
        row["lost"] = _lost_count(runs_us) - row["unsent"]
        for share in SHARES:
            row[_percentile_key(share)] = _percentile_of_runs(runs_us, share)
        row["per_s"] = delivered_hz(frame)
        # Messages that were never sent, which come last, have no send call.
        sent_us = [r.since_send_us[: r.since_send_us.size - r.unsent] for r in of_runs]
        for name in due_time.PERCENTILES:
            row[f"since_send_{name}"] = _percentile_of_runs(sent_us, float(name[1:]) / 100)
        row["band_us"] = _band_us(frame)
        rows.append(row)
    columns = factor_columns(evidence)
    columns += [
        Column("runs", "runs", "measured"),
        Column("messages", "expected", "measured"),
        Column("latencies", "latencies", "measured"),
        Column("lost", "lost or failed", "measured"),
        *([Column("unsent", "never sent", "measured")] if any(r["unsent"] for r in rows) else []),
        Column("per_s", RATES.delivered(delivered_kind(evidence)), "measured"),
    ]
    columns += [
        Column(_percentile_key(s), _percentile_key(s).split("_")[0], "measured", "µs")
        for s in SHARES
    ]
    if any(due_time.differs(row) for row in rows):
        columns += due_time.COLUMNS
    if any(row["band_us"] is not None for row in rows):
        columns.append(Column("band_us", PHRASES("clocks"), "bound", "µs"))
    return Table(
        "latency-percentiles",
        PHRASES("table"),
        columns,
        rows,
        PHRASES("note"),
    )


def _percentile_key(share: float) -> str:
    return f"p{100 * share:g}_us"


def _percentile_of_runs(runs: list[FloatArray], share: float) -> Any:
    if len(runs) >= RUNS_MIN:
        return _typical_percentile(runs, share)
    results = [stats.percentile(values, share) for values in runs]
    refused = [result for result in results if isinstance(result, stats.TooFew)]
    if refused and _among_lost(runs, share):
        return math.inf
    if refused:
        return min(refused, key=lambda few: few.count)
    return next(result.interval for result in results if isinstance(result, stats.Percentile))


def _typical_percentile(runs: list[FloatArray], share: float) -> Any:
    """Return the geometric mean of the runs' percentiles in µs, as in the answers.

    The result is TooFew if a run has too few messages, or inf if losses reach the percentile.
    """
    fewest = min(values.size for values in runs)
    if fewest < stats.carried_size(share):
        few = stats.TooFew(fewest, stats.carried_size(share), carried.WHAT)
        return math.inf if _among_lost(runs, share) else few
    percentiles = [stats.nearest_rank(np.sort(values), share) for values in runs]
    return stats.geometric_mean(percentiles) if all(map(math.isfinite, percentiles)) else math.inf


def _among_lost(runs: list[FloatArray], share: float) -> bool:
    """Return whether losses make the percentile infinite for any number of messages."""
    expected = sum(values.size for values in runs)
    if not expected:
        return False
    return stats.share_interval(_lost_count(runs), expected).low > 1.0 - share


def _lost_count(runs: list[FloatArray]) -> int:
    return sum(int(np.isinf(values).sum()) for values in runs)


def _head(data: PageData) -> list[HeadLine]:
    return [
        HeadLine(TITLE, SETTLING.unsettled(data.document.result(Settling))),
        HeadLine(TITLE, concurrency.sentence(data.evidence)),
        HeadLine(LATE_SENDERS, due_time.outages(data.evidence)),
        HeadLine(LATE_SENDERS, due_time.late_senders(data.evidence)),
    ]


PART = PagePart(
    80,
    lambda data: [section(data.evidence, data.series, data.joining("latency"))],
    _head,
    measured_only=True,
    of_messages=True,
)
