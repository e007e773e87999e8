"""Check whether a node's lines and records are possible in its run.

An impossible value is a violation of the contract by the node. The attempt fails, and its reason
names the clause. Losses, delays and timeouts are results, not violations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model import words
from wattwire.model.deployment import ROLES
from wattwire.model.hosts.clocks import ONE_CLOCK, TIMES, NodeClocks
from wattwire.model.records import Records, Samples
from wattwire.model.sample_codes import (
    FLAG_CORRUPT,
    FLAG_FAILED,
    FLAG_TIMEOUT,
    KINDS,
    PROBE_COUNTER,
    UNKNOWN_NS,
    UNKNOWN_PEER,
)
from wattwire.run.node_specs import RunNode
from wattwire.run.results.convert import known
from wattwire.run.run_processes import ProcessState

CLOCK_TOLERANCE_NS = 10_000
"""Largest time (ns) by which the later of two readings of one clock may appear earlier."""
SEQ_SHIFT = np.uint64(48)
ACK_BYTES = 8
RECORD_HEAD_BYTES, RECORD_SAMPLE_BYTES = 96, 16


def scheduled(spec: dict[str, Any]) -> int:
    """Return the number of messages that the contract requires of a sender (C-10, C-11)."""
    if spec["loop"] == "closed":
        return int(spec["count"])
    return max(0, -((int(spec["phase_ns"]) - int(spec["duration_ns"])) // int(spec["period_ns"])))


def line_faults(node: RunNode, state: ProcessState, start_ns: int, stop_ns: int) -> Iterator[str]:
    """Yield each impossible value or order in a node's lines, with its clause.

    `start_ns` and `stop_ns` are the times of GO and STOP, or 0 if the node did not receive them.
    """
    lines, spawned_ns = state.lines, state.spawned_ns
    ready, sent, done = (lines.get(keyword) for keyword in ("READY", "SENT", "DONE"))
    if "LISTENING" in lines and not node.listens:
        yield f"C-06: the {node.role} printed LISTENING, but no node connects to it"
    if ready is not None:
        age_ns = ready["seen_ns"] - spawned_ns
        for key in ("startup_ns", "discovery_ns"):
            if (ready[key] or 0) > age_ns:
                yield f"C-07: READY: {key} is {ready[key]}, but the process was {age_ns} ns old"
    if "COUNTED" in lines and not node.spec["count_beyond"]:
        yield "C-11: it printed COUNTED, which is not allowed with count_beyond = 0"
    if sent is not None:
        yield from _sent_faults(node, sent, spawned_ns, start_ns)
    if done is not None and stop_ns and done["seen_ns"] < stop_ns:
        yield "C-15: DONE came before STOP"
    if done is None and (state.exit or {}).get("code") == 0:
        yield "C-16: it ended with code 0 without DONE"


def count_faults(done: dict[str, Any] | None, parts: Sequence[Samples]) -> Iterator[str]:
    """Yield each difference between the dropped records in DONE and in the file headers (C-26)."""
    overflow = sum(part.overflow for part in parts)
    if done is not None and parts and done["overflow"] != overflow:
        yield f"C-26: overflow is {done['overflow']} in DONE and {overflow} in its files"


def _sent_faults(
    node: RunNode, sent: dict[str, Any], spawned_ns: int, start_ns: int
) -> Iterator[str]:
    """Yield each impossible value in a node's SENT line, with its clause."""
    if not node.sends:
        yield f"C-14: the {node.role} printed SENT, which only senders and clients print"
        return
    if start_ns and sent["seen_ns"] < start_ns:
        yield "C-14: SENT came before the window began"
    demanded = scheduled(node.spec)
    if sent["scheduled"] != demanded:
        yield f"C-14: SENT: scheduled is {sent['scheduled']}; the spec requires {demanded}"
    elif sent["sent"] + sent["skipped"] > demanded + node.spec["count_beyond"]:
        yield f"C-14: SENT: sent {sent['sent']} and skipped {sent['skipped']} of {demanded}"
    for key in ("begin_ns", "end_ns"):
        if sent[key] is not None and not spawned_ns <= sent[key] <= sent["seen_ns"]:
            yield f"C-14: SENT: {key} is {sent[key]}, outside the lifetime of the process"


def record_faults(
    node: RunNode,
    samples: Samples,
    first_ns: int,
    last_ns: int,
    clocks: NodeClocks = ONE_CLOCK,
) -> Iterator[str]:
    """Yield each kind of impossible record in a file, with its clause, count and first record.

    `first_ns` and `last_ns` are the limits of the lifetime of the run's processes, on the reference
    clock of `clocks`, to which the times of the records are converted.
    """
    band_ns = max((clocks.band_ns(node.node, other) for other in clocks.relations), default=0)
    limits = first_ns - band_ns, last_ns + band_ns
    counts: Counter[tuple[str, str]] = Counter()
    firsts: dict[tuple[str, str], str] = {}
    for records in samples.chunks():
        times = _times_on_one_clock(node, records, clocks)
        for clause, text, mask in _wrong_records(node, records, times, limits, band_ns):
            fault, count = (clause, text), int(mask.sum())
            counts[fault] += count
            if count and fault not in firsts:
                firsts[fault] = str(records[int(np.argmax(mask))])
    for fault, count in counts.items():
        if count:
            clause, text = fault
            affected = (
                f"found {words.plural(count, 'record')} {text} (of "
                f"{words.count(samples.count)} in total)"
            )
            yield f"{clause}: {affected}; the first: {firsts[fault]}"


Masked = tuple[str, str, npt.NDArray[np.bool_]]
"""Clause, text, and the mask of wrong records."""
Integers = npt.NDArray[np.int64]


def _times_on_one_clock(
    node: RunNode, records: Records, clocks: NodeClocks
) -> tuple[Integers, Integers, Integers]:
    """Return the intended, begin and end times of a node's records on the reference clock.

    Messages carry `begin_ns` on the clock of their sender (C-27).
    """
    intended, begins, ends = (records[name] for name in TIMES)
    if clocks.are_one:
        return intended, begins, ends
    frame = pl.DataFrame(
        {
            "node": np.full(len(records), node.node, np.uint16),
            "sender": (records["seq"] >> SEQ_SHIFT).astype(np.uint16),
            "kind": pl.Series(np.array(KINDS, dtype=object)[records["kind"]], dtype=pl.String),
            **{name: known(records[name], UNKNOWN_NS) for name in TIMES},
        }
    )
    converted = clocks.converted(frame).select(pl.col(*TIMES).fill_null(UNKNOWN_NS))
    intended, begins, ends = (converted[name].to_numpy() for name in TIMES)
    return intended, begins, ends


def _wrong_records(
    node: RunNode,
    records: Records,
    record_times: tuple[Integers, Integers, Integers],
    limits_ns: tuple[int, int],
    band_ns: int,
) -> Iterator[Masked]:
    """Yield the clause, the text and the mask of wrong records for each check.

    `record_times` are the intended, begin and end times on one clock, with an error of at most
    `band_ns` for times of another clock.
    """
    kinds, flags = records["kind"], records["flags"]
    allowed = [KINDS.index(kind) for kind in ROLES[node.role].kinds]
    yield "C-27", f"with a kind that the role {node.role} does not record", ~np.isin(kinds, allowed)
    senders = records["seq"] >> SEQ_SHIFT
    known_senders = {node.node} if node.sends else {*node.spec["peers.nodes"]}
    if not _carries_sequence(node.spec):
        known_senders.add(UNKNOWN_PEER)
    yield "C-17", "of a sender that is not in the run", ~np.isin(senders, sorted(known_senders))
    counters = records["seq"] & np.uint64(PROBE_COUNTER)
    probes = counters == np.uint64(PROBE_COUNTER)
    yield "C-17", "of a probe, which must not be recorded", probes
    sound = (flags & FLAG_CORRUPT) == 0
    # The send time in a corrupt payload is meaningless, and no latency is computed from it.
    first_ns, last_ns = limits_ns
    named = zip(TIMES, record_times, (True, sound, True), strict=True)
    for name, times, mask in named:
        outside = (times < first_ns) | (times > last_ns)
        text = f"with {name} outside the lifetime of the run's processes"
        yield "C-27", text, (times != UNKNOWN_NS) & outside & mask
    _, begins, ends = record_times
    both_known = (begins != UNKNOWN_NS) & (ends != UNKNOWN_NS) & sound
    # Do not subtract: the difference of two 64-bit integers may overflow.
    latest_begins = np.clip(ends, -(2**62), 2**62) + CLOCK_TOLERANCE_NS + band_ns
    yield "C-27", "with end_ns before begin_ns", both_known & (latest_begins < begins)
    flagged = (flags & (FLAG_TIMEOUT | FLAG_FAILED)) != 0
    yield (
        "C-27",
        "without an end and without a flag that explains this",
        (ends == UNKNOWN_NS) & ~flagged,
    )
    lengths = _lengths(node.spec)
    checked = sound & ~flagged & (kinds != KINDS.index("accept"))
    text = f"of another length than {' or '.join(map(str, lengths))} bytes"
    yield "C-25", text, checked & ~np.isin(records["bytes"], lengths)


def _carries_sequence(spec: dict[str, Any]) -> bool:
    """Return whether the payload contains the sequence number."""
    unit = 2 if spec["payload.encoding"] == "text" else 1
    return not spec["payload.literal"] and int(spec["payload.bytes"]) >= 8 * unit


def _lengths(spec: dict[str, Any]) -> list[int]:
    """Return the payload lengths (bytes) that records may have: message and reply."""
    encoding, length = spec["payload.encoding"], message_bytes(spec)
    lengths = {length}
    if spec["reply"] == "literal":
        lengths.add(len(spec["reply.literal"].encode()))
    elif spec["reply"] == "ack":
        lengths.add(min(length, ACK_BYTES * (2 if encoding == "text" else 1)))
    return sorted(lengths)


def message_bytes(spec: Mapping[str, Any]) -> int:
    """Return the payload length (bytes) in the records of messages (C-25, C-32)."""
    literal = spec["payload.literal"]
    length = len(literal.encode()) if literal else int(spec["payload.bytes"])
    if spec["payload.encoding"] == "record":
        length -= (length - RECORD_HEAD_BYTES) % RECORD_SAMPLE_BYTES
    return length


def sequence_faults(
    nodes: Sequence[RunNode], samples: Mapping[int, Sequence[Samples]]
) -> Iterator[str]:
    """Yield each impossible sequence number in the records of the run's nodes.

    A message that its sender sent twice (C-17) and the arrival of a message that was never sent
    (C-21) are impossible. Senders with missing or incomplete records are not checked.
    """
    sent_by_node = {}
    for node in nodes:
        parts = samples.get(node.node, [])
        is_complete = parts and not any(part.overflow for part in parts)
        if not is_complete or not node.sends:
            continue
        sequences = _sent_sequences(node, parts)
        if (sequences[1:] == sequences[:-1]).any():
            yield f"{node.process} broke C-17: it recorded messages more than once"
        if ROLES[node.role].records_all and _carries_sequence(node.spec):
            sent_by_node[node.node] = sequences
    sent_sequences = np.concatenate([np.empty(0, np.uint64), *sent_by_node.values()])
    sent_sequences.sort()
    senders = sorted(sent_by_node)
    del sent_by_node
    for node in nodes:
        for part in [] if node.sends or not senders else samples.get(node.node, []):
            unsent = _unsent_sequences(part, senders, sent_sequences)
            if len(unsent):
                yield (
                    f"{node.process} broke C-21: it recorded "
                    f"{words.plural(len(unsent), 'message')} that no node sent; the first has "
                    f"counter {int(unsent[0]) & PROBE_COUNTER}"
                )


def _sent_sequences(node: RunNode, parts: Sequence[Samples]) -> npt.NDArray[np.uint64]:
    """Return the sequence numbers that a sender sent, in ascending order."""
    kind = KINDS.index(ROLES[node.role].kinds[-1])
    parts_sent = [
        records["seq"][records["kind"] == kind] for part in parts for records in part.chunks()
    ]
    sequences = np.concatenate([np.empty(0, np.uint64), *parts_sent])
    sequences.sort()
    return sequences


def _unsent_sequences(
    part: Samples, senders: list[int], sent_sequences: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """Return the distinct, uncorrupted arrivals from `senders` that are not in `sent_sequences`.

    `sent_sequences` is sorted.
    """
    unsent = np.empty(0, np.uint64)
    for records in part.chunks():
        from_senders = np.isin(records["seq"] >> SEQ_SHIFT, senders)
        sound = (records["flags"] & FLAG_CORRUPT) == 0
        arrived = records["seq"][from_senders & sound]
        indices = np.searchsorted(sent_sequences, arrived)
        unknown = np.ones(len(arrived), np.bool_)
        in_range = indices < len(sent_sequences)
        unknown[in_range] = sent_sequences[indices[in_range]] != arrived[in_range]
        if unknown.any():
            unsent = np.union1d(unsent, arrived[unknown])
    return unsent
