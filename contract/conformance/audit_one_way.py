"""Check messages without replies, from each sender to its receivers: topics and pipelines."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from .audit import Expect, NodeRun, some
from .cell import Problem
from .roles import CALL, MESSAGE, RELAY, RESULT
from .samples import CORRUPT, FAILED, UNKNOWN_NS, Record

BEST_EFFORT_LOSS_MAX = 0.1
"""The share of messages that a best-effort cell may lose at these rates on a loaded machine."""
LOSSLESS = ("at_least_once", "exactly_once", "reliable")
ORDERED = ("per_sender", "total")


def sent_by_seq(senders: list[NodeRun]) -> dict[int, Record]:
    """Return the records of everything that the nodes sent and that did not fail, by `seq`."""
    return {
        record.seq: record
        for sender in senders
        for record in sender.of_kind(MESSAGE, CALL, RESULT, RELAY)
        if not record.flags & FAILED
    }


def topic(senders: list[NodeRun], receivers: list[NodeRun], expect: Expect) -> Iterator[Problem]:
    """Yield the breaches of topics: losses, duplicates and wrong send times."""
    sent = sent_by_seq(senders)
    for receiver in receivers:
        yield from _deliveries(sent, receiver, expect, "C-29")
        yield from _send_times(sent, receiver, "C-27", "the publisher's begin_ns")


def pipeline(senders: list[NodeRun], receivers: list[NodeRun], expect: Expect) -> Iterator[Problem]:
    """Yield the breaches of C-37 on each channel of a chain, from the source to the sink."""
    chain = sorted([*senders, *receivers], key=lambda run: run.spec["hop"])
    for relay in chain[1:-1]:
        yield from _relayed(relay)
    for sender, receiver in itertools.pairwise(chain):
        path = f" from hop {sender.spec['hop']} to hop {receiver.spec['hop']}"
        yield from _deliveries(sent_by_seq([sender]), receiver, expect, "C-37", path)
        yield from _channel(sender, receiver)
    source, sink = chain[0], chain[-1]
    relays = ", ".join(str(relay.spec["hop"]) for relay in chain[1:-1]) or "none"
    expected = f"the source's begin_ns (hops of the relays between: {relays})"
    yield from _send_times(sent_by_seq([source]), sink, "C-37", expected)


def _deliveries(
    sent: dict[int, Record], receiver: NodeRun, expect: Expect, clause: str, path: str = ""
) -> Iterator[Problem]:
    """Yield the breaches of deliveries to one receiver: losses and duplicates.

    `path` names the channel of a chain.
    """
    literal = bool(receiver.spec["payload.literal"])
    arrivals = Counter(record.seq for record in receiver.of_kind(MESSAGE, RELAY))
    lost = len(sent) - sum(arrivals.values()) if literal else len(set(sent) - set(arrivals))
    delivery = receiver.node.fields("READY").get("guarantee", {}).get("delivery", "")
    if delivery != "at_least_once" and not literal and not expect.duplicates:
        repeated = [hex(seq) for seq, count in arrivals.items() if count > 1]
        if repeated:
            text = f"duplicates{path} with delivery {delivery}: {some(repeated)}"
            yield receiver.problem(clause, text)
    if not expect.loss and not expect.corrupt and lost > loss_max(receiver, len(sent)):
        missing = [hex(seq) for seq in sent if seq not in arrivals]
        text = f"lost {lost} of {len(sent)} ({some(missing)}){path} with delivery {delivery}"
        yield receiver.problem("C-22" if literal and clause == "C-29" else clause, text)


def is_delivered(receiver: NodeRun, arrived: int, sent: int) -> bool:
    """Return whether a receiver's guarantee allows that `arrived` of `sent` messages arrived."""
    return 0 <= sent - arrived <= loss_max(receiver, sent)


def loss_max(receiver: NodeRun, sent: int) -> float:
    """Return the number of messages that a receiver may lose by its guarantee."""
    delivery = receiver.node.fields("READY").get("guarantee", {}).get("delivery", "")
    return 0.0 if delivery in LOSSLESS else sent * BEST_EFFORT_LOSS_MAX


def _send_times(
    sent: dict[int, Record], receiver: NodeRun, clause: str, expected: str
) -> Iterator[Problem]:
    """Yield a breach if a receiver's `begin_ns` is not the send time of the sender's record."""
    if not receiver.carries_time:
        return
    wrong = [
        (hex(r.seq), r.begin_ns, sent[r.seq].begin_ns)
        for r in receiver.of_kind(MESSAGE)
        if r.seq in sent and not r.flags & CORRUPT and r.begin_ns != sent[r.seq].begin_ns
    ]
    if wrong:
        text = f"begin_ns is not {expected} (seq, found, must be)"
        yield receiver.problem(clause, f"{text}: {some(wrong)}")


def _relayed(relay: NodeRun) -> Iterator[Problem]:
    """Yield the breaches of one relay by its own records: the times and the order of sends."""
    records = sorted(relay.of_kind(RELAY), key=lambda record: (record.intended_ns, record.begin_ns))
    early = [tuple(record) for record in records if record.begin_ns < record.intended_ns]
    if early:
        text = f"begin_ns is before intended_ns, the arrival: records {some(early)}"
        yield relay.problem("C-37", text)
    swapped = [
        (hex(first.seq), hex(second.seq))
        for first, second in itertools.pairwise(records)
        if second.begin_ns < first.begin_ns
    ]
    if swapped:
        text = f"sent in an order that is not the order of arrival: {some(swapped)}"
        yield relay.problem("C-37", text)


def _channel(sender: NodeRun, receiver: NodeRun) -> Iterator[Problem]:
    """Yield the breaches between two neighbours of a chain: changed bytes, times and order."""
    sent = sent_by_seq([sender])
    arrivals = [r for r in receiver.of_kind(MESSAGE, RELAY) if r.seq in sent]
    before, here = f"hop {sender.spec['hop']}", f"hop {receiver.spec['hop']}"
    if not sender.sends:
        changed = [hex(r.seq) for r in arrivals if (r.flags ^ sent[r.seq].flags) & CORRUPT]
        if changed:
            text = f"the flag corrupt differs at {before} and {here}, so {before} changed the bytes"
            yield receiver.problem("C-37", f"{text}: {some(changed)}")
    early = [
        (hex(r.seq), r.arrival_ns, sent[r.seq].begin_ns)
        for r in arrivals
        if UNKNOWN_NS != r.arrival_ns < sent[r.seq].begin_ns
    ]
    if early:
        text = f"arrived at {here} before {before} sent it (seq, arrival, begin_ns)"
        yield receiver.problem("C-37", f"{text}: {some(early)}")
    if receiver.node.fields("READY").get("guarantee", {}).get("ordering") not in ORDERED:
        return
    order = sorted(arrivals, key=lambda record: (record.arrival_ns, record.seq))
    swapped = [
        (hex(first.seq), hex(second.seq))
        for first, second in itertools.pairwise(order)
        if sent[second.seq].begin_ns < sent[first.seq].begin_ns
    ]
    if swapped:
        text = f"the order of arrival at {here} is not the order of sends at {before}"
        yield receiver.problem("C-37", f"{text}: {some(swapped)}")
