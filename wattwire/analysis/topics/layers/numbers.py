"""Compute the rows of topics and paths of `exec --layers` as means, and the layers of a study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wattwire.analysis.charts import Chart, rounded
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.layers.profiled import Profiled, profiled
from wattwire.analysis.topics.processes.executed import Value, mean_of
from wattwire.model.layers import LAYERS
from wattwire.model.variants import FACTOR

NS_PER_US = 1000.0
ARROW = " → "
CHART_ROWS_MAX = 12


@dataclass(frozen=True)
class Hop:
    """The messages of one topic from a node to another. `times_us` has a mean per layer.

    `not_taken` are those that were published since the subscription existed and not taken. The
    times are those of the deliveries.
    """

    variant: str
    topic: str
    sender: str
    receiver: str
    rate_hz: Value
    published: float
    deliveries: float
    not_taken: float
    p50_us: Value
    p95_us: Value
    mean_us: Value
    times_us: tuple[float | None, ...] = ()

    @property
    def published_before(self) -> float:
        """Return the number of messages that were published before the subscription existed."""
        return max(0.0, self.published - self.deliveries - self.not_taken)

    @property
    def way(self) -> str:
        """Return the two nodes."""
        return f"{self.sender}{ARROW}{self.receiver}"


@dataclass(frozen=True)
class Part:
    """A part of a path: a hop over a topic, or the work of a node between two hops."""

    name: str
    is_node: bool
    mean_us: float


@dataclass(frozen=True)
class GraphPath:
    """A path of messages through the graph. The means of its parts add up to its mean."""

    variant: str
    started_by: str
    nodes: tuple[str, ...]
    messages: float
    p50_us: Value
    p95_us: Value
    mean_us: Value
    parts: tuple[Part, ...]

    @property
    def title(self) -> str:
        """Return the nodes in the order of the path."""
        return ARROW.join(self.nodes)


@dataclass(frozen=True)
class Absence:
    """A point that no process had, and the reason."""

    point: str
    reason: str


@dataclass(frozen=True)
class Layers:
    """The layers of the messages of a command. Counts are sums over the runs.

    `unheard` are the topics without a subscription in a recorded process, and `untaken` those of
    which a subscription took no message. `not_taken` is the number of all messages that were not
    taken. `unstamped` is the number of messages without a time stamp at the sender, `outside` that
    of messages from other senders, and `early` that of messages published before the subscription
    existed. `processes` is the highest number of processes of a run, and `paths_left_out` that of
    paths which a run does not list. `invalid` has the reasons why the layers of other runs are not
    used.
    """

    is_recorded: bool = False
    hops: tuple[Hop, ...] = ()
    paths: tuple[GraphPath, ...] = ()
    paths_left_out: int = 0
    titles: tuple[str, ...] = ()
    shown: tuple[int, ...] = ()
    unheard: tuple[str, ...] = ()
    untaken: tuple[str, ...] = ()
    runs: int = 0
    processes: int = 0
    deliveries: int = 0
    not_taken: int = 0
    early: int = 0
    unmarked: int = 0
    outside: int = 0
    unstamped: int = 0
    absent: tuple[Absence, ...] = ()
    invalid: tuple[str, ...] = ()
    chart: Chart = field(default_factory=Chart)
    study: Profiled = field(default_factory=Profiled)


def layers(evidence: Evidence) -> Layers:
    """Return the layers of a campaign; empty for one that records none."""
    if not evidence.imported and evidence.study.request is None:
        return Layers(study=profiled(evidence))
    documents, invalid = _documents(evidence), tuple(_invalidities(evidence))
    if not documents:
        return Layers(is_recorded=bool(invalid), invalid=invalid)
    hops = tuple(_hops(documents))
    return Layers(
        is_recorded=True,
        hops=hops,
        paths=tuple(_paths(documents)),
        titles=tuple(layer.title for layer in LAYERS),
        shown=tuple(
            at for at in range(len(LAYERS)) if any(hop.times_us[at] is not None for hop in hops)
        ),
        unheard=_unheard(documents),
        untaken=_untaken(documents),
        runs=len(documents),
        **{
            name: max(document[name] for _, document in documents)
            for name in ("processes", "paths_left_out")
        },
        not_taken=sum(
            row.get("not_taken", 0) for _, document in documents for row in document["topics"]
        ),
        **{
            name: sum(document[name] for _, document in documents)
            for name in ("deliveries", "unmarked", "outside", "early", "unstamped")
        },
        absent=tuple(
            Absence(point, reason)
            for point, reason in {
                point: reason
                for _, document in documents
                for point, reason in document["absent"].items()
            }.items()
        ),
        invalid=invalid,
        chart=_chart(hops),
    )


Documents = Sequence[tuple[str, Mapping[str, Any]]]


def _documents(evidence: Evidence) -> Documents:
    """Return the variant and the layers of each valid run whose layers are used."""
    return [item for item in _recorded(evidence) if not item[1].get("reasons")]


def _invalidities(evidence: Evidence) -> Iterable[str]:
    """Yield the reasons why the layers of runs are not used, though their costs are."""
    runs = evidence.usable["run"].to_list() if len(evidence.usable) else []
    for run in runs:
        for reason in (evidence.runs.get(run, {}).get("layers") or {}).get("reasons", ()):
            yield f"{run}: {reason['detail']}"


def _recorded(evidence: Evidence) -> Documents:
    """Return the variant and the layers of each valid run that recorded some."""
    if evidence.imported or evidence.study.request is None:
        return []
    column = f"factor.{FACTOR}"
    rows = evidence.usable
    variants = rows[column].to_list() if column in rows.columns else [""] * len(rows)
    names = rows["run"].to_list() if len(rows) else []
    return [
        (str(variant), document)
        for run, variant in zip(names, variants, strict=True)
        if (document := evidence.runs.get(run, {}).get("layers")) is not None
    ]


def _unheard(documents: Documents) -> tuple[str, ...]:
    rows = [row for _, document in documents for row in document["topics"]]
    heard = {row["topic"] for row in rows if row["receiver"] is not None}
    topics = (str(row["topic"]) for row in rows if row["receiver"] is None)
    return tuple(dict.fromkeys(topic for topic in topics if topic not in heard))


def _untaken(documents: Documents) -> tuple[str, ...]:
    """Return topic and nodes of the subscriptions that took none of a sender's messages."""
    groups = _grouped(documents, "topics", ("topic", "sender", "receiver"))
    return tuple(
        ": ".join(filter(None, (variant, f"{topic} ({sender}{ARROW}{receiver})")))
        for (variant, topic, sender, receiver), rows in groups.items()
        if not any(row["deliveries"] for row in rows) and any(row.get("not_taken") for row in rows)
    )


def _grouped(
    documents: Documents, table: str, keys: Sequence[str]
) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    """Return the rows of a table of all runs by variant and keys."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for variant, document in documents:
        for row in document[table]:
            values = (tuple(v) if isinstance(v, list) else v for v in (row[key] for key in keys))
            groups.setdefault((variant, *values), []).append(row)
    return groups


def _us(rows: Iterable[Mapping[str, Any]], key: str) -> Value:
    return mean_of([row[key] / NS_PER_US for row in rows])


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean, in which None is 0, so that layers add up; None if no value is known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(values) if known else None


def _hops(documents: Documents) -> Iterable[Hop]:
    groups = _grouped(documents, "topics", ("topic", "sender", "receiver"))
    for (variant, topic, sender, receiver), of_runs in groups.items():
        rows = [row for row in of_runs if row["deliveries"]]
        if not rows:
            continue
        times_ns = [_mean([row["layers_ns"][layer.name] for row in rows]) for layer in LAYERS]
        yield Hop(
            variant,
            topic,
            sender,
            receiver,
            mean_of([row["rate_hz"] for row in of_runs if row["rate_hz"] is not None]),
            _mean([row["published"] for row in of_runs]) or 0.0,
            _mean([row["deliveries"] for row in of_runs]) or 0.0,
            _mean([row["not_taken"] for row in of_runs]) or 0.0,
            _us(rows, "p50_ns"),
            _us(rows, "p95_ns"),
            _us(rows, "mean_ns"),
            tuple(None if ns is None else ns / NS_PER_US for ns in times_ns),
        )


def _paths(documents: Documents) -> Iterable[GraphPath]:
    groups = _grouped(documents, "paths", ("started_by", "nodes", "topics"))
    for (variant, started_by, nodes, topics), rows in groups.items():
        parts = []
        for at, topic in enumerate(topics):
            hop_ns = _mean([row["hops_ns"][at] for row in rows]) or 0.0
            parts.append(Part(topic, False, hop_ns / NS_PER_US))
            if at + 1 < len(topics):
                work_ns = _mean([row["work_ns"][at] for row in rows]) or 0.0
                parts.append(Part(nodes[at + 1], True, work_ns / NS_PER_US))
        yield GraphPath(
            variant,
            started_by,
            nodes,
            _mean([row["messages"] for row in rows]) or 0.0,
            _us(rows, "p50_ns"),
            _us(rows, "p95_ns"),
            _us(rows, "mean_ns"),
            tuple(parts),
        )


def _chart(hops: Sequence[Hop]) -> Chart:
    """Return stacked bars with a row per hop and a segment per layer."""
    points, rows = [], []
    for hop in hops[:CHART_ROWS_MAX]:
        title = ": ".join(filter(None, (hop.variant, f"{hop.topic} ({hop.way})")))
        rows.append(title)
        points += [
            {
                "level": title, "colour": layer.title, "value": rounded(time_us), "place": at,
                "panel": "", "runs": 1,
            }
            for at, (layer, time_us) in enumerate(zip(LAYERS, hop.times_us, strict=True))
            if time_us is not None
        ]  # fmt: skip
    present = {point["colour"] for point in points}
    return Chart(
        points=points,
        colours=[layer.title for layer in LAYERS if layer.title in present],
        rows=rows,
        panels=[""],
    )
