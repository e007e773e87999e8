"""Generate the records of random runs: loss, duplicates, reordering, queues and dead nodes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from wattwire.model.deployment import RELAYED, Flow
from wattwire.model.ledger import Drain
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED, FLAG_TIMEOUT, FLAG_WARM_UP
from wattwire.run.results.saturation import Schedule

PERIOD_NS, COUNT_MAX = 1_000_000, 40
SCHEMA = {
    "node": pl.UInt16, "sender": pl.UInt16, "counter": pl.UInt64, "kind": pl.String,
    "intended_ns": pl.Int64, "begin_ns": pl.Int64, "end_ns": pl.Int64, "bytes": pl.UInt32,
    "flags": pl.UInt8,
}  # fmt: skip
Row = dict[str, Any]


@dataclass(frozen=True)
class RandomRun:
    """The records of a run in the order of its file, and the facts from which fates follow."""

    flows: list[Flow]
    records: pl.DataFrame
    unrecorded: frozenset[int]
    drain: Drain | None
    late_after_ns: int
    schedules: dict[int, Schedule]
    part_records: int


def random_run(seed: int) -> RandomRun:
    """Return the run of a seed."""
    roll = random.Random(seed)
    flows = _flows(roll)
    rows = [row for flow in flows for row in (_calls if flow.result else _messages)(roll, flow)]
    nodes = sorted({node for flow in flows for node in flow.nodes})
    dead = frozenset(roll.sample(nodes, 1) if roll.random() < 0.15 else [])
    rows = [row for row in rows if row["node"] not in dead]
    frame = pl.DataFrame(rows, schema=SCHEMA).sort("node", "end_ns", "counter", nulls_last=True)
    ends_ns = sorted(row["end_ns"] for row in rows if row["end_ns"] is not None) or [0]
    until_ns = roll.choice([0, ends_ns[-1] - 1, roll.choice(ends_ns), ends_ns[-1]])
    end_ns = roll.choice([None, until_ns + roll.randrange(9) * PERIOD_NS])
    schedule = Schedule(0, PERIOD_NS, roll.randrange(COUNT_MAX + 20), roll.randrange(9))
    return RandomRun(
        flows, frame, dead,
        Drain(until_ns, end_ns) if roll.random() < 0.8 else None,
        roll.choice([0, 2**62, roll.choice(ends_ns)]),
        {flow.sender: schedule for flow in flows if roll.random() < 0.9} if roll.random() < 0.5
        else {},
        roll.choice([1, 20, *[COUNT_MAX * 100] * 10]),
    )  # fmt: skip


def _flows(roll: random.Random) -> list[Flow]:
    """Return one to three flows, with or without replies, with up to three receivers or relays."""
    flows, first = [], roll.randrange(3)
    result = roll.choice(["", "", "call", "result", "mixed"])
    for index in range(roll.choice([1, 1, 2, 3])):
        kind = roll.choice(["", "call"]) if result == "mixed" else result
        relays = roll.choice([0, 0, 1, 2, 3]) if not kind else 0
        receivers = roll.choice([1, 1, 2, 3]) if not kind else 1
        nodes = list(range(first, first + 1 + relays + receivers))
        roll.shuffle(nodes)
        first += len(nodes)
        flows.append(Flow(f"f{index}", nodes[0], tuple(nodes[1 + relays :]),
                          tuple(nodes[1 : 1 + relays]), kind))  # fmt: skip
    return flows


def _row(flow: Flow, counter: int, kind: str, flags: int, *times_ns: int | None) -> Row:
    return {
        "node": flow.sender, "sender": flow.sender, "counter": counter, "kind": kind,
        "bytes": 64, "flags": flags, **dict(zip(("intended_ns", "begin_ns", "end_ns"), times_ns,
                                               strict=True)),
    }  # fmt: skip


def _messages(roll: random.Random, flow: Flow) -> Iterator[Row]:
    """Yield the records of a flow without replies.

    At each hop, messages are lost, duplicated and reordered. A hop may also stop for good, like a
    queue that is full of earlier messages. A relay or receiver may lack the record of an arrival.
    """
    count, warm_up = roll.randrange(COUNT_MAX), roll.choice([0, 0, 5, 30])
    loss, again = roll.choice([0, 0.02, 0.3, 1]), roll.choice([0, 0.1])
    jitter_ns = roll.choice([0, 3 * PERIOD_NS])
    corrupt, unstamped = roll.choice([0, 0.1]), roll.choice([0, 0.1])
    stops = {node: roll.choice([COUNT_MAX, COUNT_MAX, roll.randrange(COUNT_MAX)])
             for node in flow.nodes[1:]}  # fmt: skip

    def arrives(node: int, counter: int) -> bool:
        return counter < stops[node] and roll.random() >= loss

    for counter in range(count):
        due_ns = counter * PERIOD_NS
        begin_ns = due_ns + roll.choice([0, 0, 300, -300])
        flags = FLAG_WARM_UP * (counter < warm_up)
        failed = FLAG_FAILED * (roll.random() < 0.03)
        yield _row(flow, counter, "message", flags | failed, due_ns, begin_ns, begin_ns + 9)
        if failed:
            continue
        sent_ns = begin_ns
        for relay in flow.relays:
            if not arrives(relay, counter):
                break
            entered_ns = sent_ns + 500 + roll.randrange(jitter_ns + 1)
            sent_ns = entered_ns + 100
            if roll.random() < 0.97:
                times_ns = entered_ns, sent_ns, sent_ns + 9
                failed = FLAG_FAILED * (roll.random() < 0.03)
                yield _row(flow, counter, RELAYED, flags | failed, *times_ns) | {"node": relay}
        else:
            for node in flow.receivers:
                for _ in range(1 + (roll.random() < again) if arrives(node, counter) else 0):
                    end_ns = sent_ns + 500 + roll.randrange(jitter_ns + 1)
                    of_arrival = FLAG_WARM_UP * (end_ns < warm_up * PERIOD_NS)
                    if roll.random() < corrupt:
                        of_arrival |= FLAG_CORRUPT
                    stamp_ns = None if roll.random() < unstamped else sent_ns
                    row = _row(flow, counter, "message", of_arrival, None, stamp_ns, end_ns)
                    yield row | {"node": node}
    for counter in (count + 2, count + 2, 2**47) if roll.random() < corrupt else ():
        row = _row(flow, counter, "message", FLAG_CORRUPT, None, None, count * PERIOD_NS)
        yield row | {"node": flow.receivers[0]}


def _calls(roll: random.Random, flow: Flow) -> Iterator[Row]:
    """Yield the records of the calls of one client, and of the server that replies."""
    count, warm_up, loss = roll.randrange(COUNT_MAX), roll.choice([0, 5]), roll.choice([0, 0.3])
    open_ns = roll.choice([0, 1])
    for counter in range(count):
        due_ns = counter * PERIOD_NS
        begin_ns = due_ns + open_ns * roll.choice([0, 300, 4 * PERIOD_NS])
        flags, fate = FLAG_WARM_UP * (counter < warm_up), roll.random()
        end_ns: int | None = begin_ns + roll.randrange(1, 3 * PERIOD_NS)
        if fate < loss:
            end_ns, flags = None, flags | (FLAG_TIMEOUT if fate < loss / 2 else FLAG_FAILED)
        elif roll.random() < 0.05:
            flags |= FLAG_CORRUPT
        if flow.result == "result":
            yield _row(flow, counter, "goal", flags & FLAG_WARM_UP, due_ns, begin_ns, begin_ns + 9)
        if flow.result != "result" or roll.random() >= 0.03:
            yield _row(flow, counter, flow.result, flags, due_ns, begin_ns, end_ns)
        kind = "goal" if flow.result == "result" else "call"
        served = _row(flow, counter, kind, flags & FLAG_WARM_UP, None, begin_ns, begin_ns + 99)
        yield served | {"node": flow.receivers[0]}
