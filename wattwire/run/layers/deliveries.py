"""Join both ends of each message, and part its latency into layers that add up to it exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.layers import LAYERS, OPTIONAL
from wattwire.run.layers.arrivals import arrivals
from wattwire.run.layers.ends import (
    APPLICATION,
    CODES,
    NONE,
    SERVICE,
    TIMER,
    Published,
    Taken,
    endpoints_of,
    first_known,
    published,
    taken,
)
from wattwire.run.layers.recordings import Endpoint, Recording, Times

MESSAGE = "message"
STARTED_BY = {APPLICATION: "application", TIMER: "timer", SERVICE: "service"}


@dataclass(frozen=True)
class Deliveries:
    """The messages of a run that were published and taken in recorded processes.

    `frame` has a row for each delivery of a message to a subscription, in the order of publishing.
    `topics` has a row for each publisher with the number of its messages, and `expected` the number
    of its messages since a subscription existed, by topic, sender and receiver.
    `outside` is the number of messages taken whose publisher was not recorded, `early` that of
    messages published before their subscription existed, and `unstamped` that of messages without
    a time stamp at the sender.
    """

    frame: pl.DataFrame
    topics: list[dict[str, Any]]
    outside: int = 0
    early: int = 0
    unstamped: int = 0
    expected: dict[tuple[str, str, str], int] = field(default_factory=dict)

    @property
    def unmarked(self) -> int:
        """Return the number of deliveries that lack a mark."""
        return int(self.frame.filter("unmarked").height)


@dataclass(frozen=True)
class _Ends:
    """The marks of all processes at one end, and the process of each."""

    process: Times
    row: Times
    topic: list[str]
    node: list[str]
    since: Times
    """Time (ns) since which the endpoint exists."""
    marks: dict[str, Times]


def deliveries(recordings: Sequence[Recording], span: tuple[int, int] | None = None) -> Deliveries:
    """Return the deliveries of messages that were published in the span (begin and end, ns)."""
    recordings = _with_own_names(recordings)
    sent = [published(recording) for recording in recordings]
    received = [taken(recording) for recording in recordings]
    publishing = _ends(recordings, sent, "publishers")
    taking = _ends(recordings, received, "subscriptions")
    begin = publishing.marks["begin"]
    in_span = _within(begin, span)
    pairs, foreign = _pairs(publishing, taking)
    pairs = pairs.filter(pl.Series(in_span).gather(pairs["p"]))
    is_early = begin[pairs["p"].to_numpy()] < taking.since[pairs["t"].to_numpy()]
    frame = _frame(
        recordings, publishing, taking, pairs.filter(~pl.Series(is_early, dtype=pl.Boolean))
    )
    return Deliveries(
        frame,
        _topics(publishing, in_span),
        int(_within(taking.marks["end"][foreign], span).sum()),
        int(is_early.sum()),
        sum(_unstamped(recording, span) for recording in recordings),
        _expected(recordings, publishing, in_span),
    )


def _within(times_ns: Times, span: tuple[int, int] | None) -> npt.NDArray[np.bool_]:
    if span is None:
        return np.ones(len(times_ns), bool)
    return (times_ns >= span[0]) & (times_ns < span[1])


def _with_own_names(recordings: Sequence[Recording]) -> list[Recording]:
    """Return the recordings with a number in the names of nodes that several processes have."""
    pids: dict[str, set[int]] = {}
    for recording in recordings:
        for ends in (*recording.publishers.values(), *recording.subscriptions.values()):
            for endpoint in ends:
                pids.setdefault(endpoint.node, set()).add(recording.pid)

    def named(pid: int, ends: Mapping[int, list[Endpoint]]) -> dict[int, list[Endpoint]]:
        return {
            handle: [replace(end, node=own_name(pid, end.node)) for end in endpoints]
            for handle, endpoints in ends.items()
        }

    def own_name(pid: int, node: str) -> str:
        number = sorted(pids[node]).index(pid) + 1
        return f"{node} (process {number})" if len(pids[node]) > 1 else node

    return [
        replace(
            recording,
            publishers=named(recording.pid, recording.publishers),
            subscriptions=named(recording.pid, recording.subscriptions),
        )
        for recording in recordings
    ]


def _unstamped(recording: Recording, span: tuple[int, int] | None) -> int:
    """Return the number of messages published in the span without a time stamp.

    Distributions without stamps pass no publisher either, so no endpoint knows these messages.
    """
    count = 0
    for events in recording.threads.values():
        stamps = events[events["point"] == CODES["stamp"]]
        has_none = (stamps["c"] == 0) | (stamps["b"] == 0)
        count += int((has_none & _within(stamps["t"], span)).sum())
    return count


def _expected(
    recordings: Sequence[Recording], publishing: _Ends, in_span: npt.NDArray[np.bool_]
) -> dict[tuple[str, str, str], int]:
    """Return the number of messages that were published since the receiver's subscription existed.

    The keys are topic, sender and receiver. Of several subscriptions of a receiver to a topic, the
    first one counts.
    """
    since: dict[tuple[str, str], int] = {}
    for recording in recordings:
        for endpoint in endpoints_of(recording.subscriptions):
            key = endpoint.topic, endpoint.node
            since[key] = min(endpoint.since_ns, since.get(key, endpoint.since_ns))
    columns = {
        "topic": publishing.topic, "node": publishing.node, "begin": publishing.marks["begin"],
    }  # fmt: skip
    sent = pl.DataFrame(columns).filter(pl.Series(in_span))
    begins = sent.group_by("topic", "node", maintain_order=True).agg("begin")
    return {
        (topic, sender, receiver): int((np.array(times) >= since_ns).sum())
        for topic, sender, times in begins.iter_rows()
        for (heard, receiver), since_ns in since.items()
        if heard == topic
    }


def _ends(recordings: Sequence[Recording], marks: Sequence[Published | Taken], kind: str) -> _Ends:
    """Return the marks of all processes; `kind` names the endpoints of a recording."""
    end = Published if kind == "publishers" else Taken
    names = [item.name for item in fields(end)] + ["begin" if end is Published else "end"]
    empty = np.zeros(0, np.int64)
    columns = {
        name: np.concatenate([empty, *(getattr(of_process, name) for of_process in marks)])
        for name in names
    }
    sizes = [len(of_process.thread) for of_process in marks]
    endpoints: list[Endpoint] = []
    for recording, of_process in zip(recordings, marks, strict=True):
        of_kind = endpoints_of(getattr(recording, kind))
        endpoints += [of_kind[index] for index in of_process.endpoint.tolist()]
    return _Ends(
        np.repeat(np.arange(len(sizes)), sizes).astype(np.int64),
        np.concatenate([empty, *(np.arange(size) for size in sizes)]).astype(np.int64),
        [endpoint.topic for endpoint in endpoints],
        [endpoint.node for endpoint in endpoints],
        np.array([endpoint.since_ns for endpoint in endpoints], np.int64),
        columns,
    )


def _pairs(publishing: _Ends, taking: _Ends) -> tuple[pl.DataFrame, Times]:
    """Return the rows `p` and `t` of both ends of each delivery, and the rows of foreign takes.

    Topic and time stamp (ns) identify a message. Two messages with the same are counted as foreign.
    """
    sent = pl.DataFrame(
        {"topic": publishing.topic, "stamp": publishing.marks["stamp"],
         "p": np.arange(len(publishing.row))},
        schema={"topic": pl.String, "stamp": pl.Int64, "p": pl.Int64},
    ).unique(("topic", "stamp"), keep="none", maintain_order=True)  # fmt: skip
    received = pl.DataFrame(
        {"topic": taking.topic, "stamp": taking.marks["stamp"],
         "t": np.arange(len(taking.row))},
        schema={"topic": pl.String, "stamp": pl.Int64, "t": pl.Int64},
    )  # fmt: skip
    joined = received.join(sent, on=("topic", "stamp"), how="left")
    foreign = joined.filter(pl.col("p").is_null())["t"].to_numpy()
    return joined.drop_nulls("p").sort("p", "t"), foreign


def _frame(
    recordings: Sequence[Recording],
    publishing: _Ends,
    taking: _Ends,
    pairs: pl.DataFrame,
) -> pl.DataFrame:
    """Return the table of the deliveries."""
    p, t = pairs["p"].to_numpy(), pairs["t"].to_numpy()
    sent = {name: values[p] for name, values in publishing.marks.items()}
    got = {name: values[t] for name, values in taking.marks.items()}
    sender, receiver = publishing.process[p], taking.process[t]
    arrival = np.full(len(p), NONE)
    for index, recording in enumerate(recordings):
        of_process = receiver == index
        if of_process.any():
            arrival[of_process] = arrivals(
                recording,
                {name: values[of_process] for name, values in got.items()},
                sent["write"][of_process],
            )
    layers, unmarked = _layers(sent, got, arrival, _subscriptions(receiver, got["endpoint"]))
    row_of = {(int(receiver[i]), int(taking.row[t[i]])): i for i in range(len(p))}
    causes = [
        row_of.get((int(process), int(cause)))
        for process, cause in zip(sender, sent["cause"], strict=True)
    ]
    started_by = [STARTED_BY.get(int(kind), MESSAGE) for kind in sent["cause"]]
    return pl.DataFrame(
        {
            "topic": [publishing.topic[i] for i in p],
            "sender": [publishing.node[i] for i in p],
            "receiver": [taking.node[i] for i in t],
            "sender_pid": [recordings[i].pid for i in sender],
            "receiver_pid": [recordings[i].pid for i in receiver],
            "message": p,
            "begin_ns": sent["begin"],
            "end_ns": got["end"],
            "latency_ns": got["end"] - sent["begin"],
            **{layer.column: layers[layer.name] for layer in LAYERS},
            "unmarked": unmarked,
            "started_by": started_by,
            "cause": causes,
        },
        schema={
            **dict.fromkeys(("topic", "sender", "receiver"), pl.String),
            **dict.fromkeys(
                ("sender_pid", "receiver_pid", "message", "begin_ns", "end_ns", "latency_ns"),
                pl.Int64,
            ),
            **{layer.column: pl.Int64 for layer in LAYERS},
            "unmarked": pl.Boolean, "started_by": pl.String, "cause": pl.Int64,
        },
    )  # fmt: skip


def _subscriptions(process: Times, endpoint: Times) -> Times:
    """Return a number of the subscription of each delivery, from 0 on."""
    pairs = np.column_stack((process, endpoint))
    return np.unique(pairs, axis=0, return_inverse=True)[1].ravel()


def _layers(
    sent: dict[str, Times], got: dict[str, Times], arrival: Times, subscription: Times
) -> tuple[dict[str, pl.Series], npt.NDArray[np.bool_]]:
    """Return the time (ns) of each layer, null where a process has no such marks at all.

    The time of a layer without marks belongs to the layer before it, or to the transport. A take
    that began before the write met the message on its way: its layers begin at the write, and the
    delivery counts as unmarked.
    """
    is_notified = arrival != NONE
    entered = first_known(got["rcl"], got["rmw"], got["dds"], got["rmw_end"])
    rcl = np.maximum(entered, sent["write"])
    rmw = np.maximum(first_known(got["rmw"], got["dds"], got["rmw_end"]), rcl)
    dds = np.maximum(first_known(got["dds"], rmw), rmw)
    dds_end = first_known(got["dds_end"], dds)
    # Without a notification, the message arrived at the latest when the wait ended.
    woken = np.where(got["woken"] > sent["write"], got["woken"], rcl)
    arrived = np.where(is_notified, arrival, woken).clip(sent["write"], rcl)
    written = np.where(sent["written"] == NONE, sent["write"], sent["written"])
    left = np.minimum(written, arrived)
    wake_up = (got["woken"] - np.maximum(arrived, got["waited"])).clip(0, rcl - arrived)
    rcl_end = first_known(got["rcl_end"], got["rmw_end"])
    rcl_sent = first_known(sent["rcl"], sent["rmw"], sent["write"])
    rmw_sent = first_known(sent["rmw"], sent["write"])
    has_rcl, has_dds = (got["rcl"] != NONE) | (got["rcl_end"] != NONE), got["dds_end"] != NONE
    times = {
        "client_publish": (rcl_sent - sent["begin"], sent["library"] != NONE),
        "rcl_publish": (rmw_sent - rcl_sent, sent["rcl"] != NONE),
        "rmw_publish": (sent["write"] - rmw_sent, sent["rmw"] != NONE),
        "dds_write": (left - sent["write"], sent["written"] != NONE),
        "transport": (arrived - left, np.ones(len(left), bool)),
        "wake_up": (wake_up, is_notified & (got["woken"] != NONE)),
        "executor": (rcl - arrived - wake_up, np.ones(len(left), bool)),
        "rcl_take": (rmw - rcl + rcl_end - got["rmw_end"], has_rcl),
        "rmw_take": (dds - rmw + got["rmw_end"] - dds_end, (got["rmw"] != NONE) | has_dds),
        "dds_take": (dds_end - dds, has_dds),
        "client_take": (got["end"] - rcl_end, got["callback"] != NONE),
    }
    marks = [is_known for name, (_, is_known) in times.items() if name not in OPTIONAL]
    marks += [got[name] != NONE for name in ("rcl", "rmw", "rcl_end")]
    has_wake_up = times["wake_up"][1]
    is_polled = ~np.isin(subscription, subscription[has_wake_up])
    marks.append(has_wake_up | is_polled)
    unmarked = entered < sent["write"]
    for is_known in marks:
        if is_known.any():  # otherwise, no process has such a mark
            unmarked |= ~is_known
    return {
        name: pl.Series(values, dtype=pl.Int64).set(pl.Series(~is_known), None)
        for name, (values, is_known) in times.items()
    }, unmarked


def _topics(publishing: _Ends, in_span: npt.NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Return the number of messages of each topic and node.

    `published_ns` is the time from the first to the last of them.
    """
    if not len(publishing.row):
        return []
    counts = (
        pl.DataFrame(
            {
                "topic": publishing.topic,
                "node": publishing.node,
                "begin_ns": publishing.marks["begin"],
            }
        )
        .filter(pl.Series(in_span))
        .group_by("topic", "node", maintain_order=True)
        .agg(
            pl.len().alias("published"),
            (pl.col("begin_ns").max() - pl.col("begin_ns").min()).alias("published_ns"),
        )
    )
    return counts.to_dicts()
