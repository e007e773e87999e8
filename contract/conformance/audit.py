"""Check each node after a complete run: its lines, counts and records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .cell import Problem
from .group import Group
from .payload import nominal_size
from .process import NodeProcess
from .roles import (
    ACCEPT,
    CALL,
    CALLING_ROLES,
    FEEDBACK,
    GOAL,
    MESSAGE,
    PATTERNS,
    RELAY,
    RELAY_ROLES,
    RESULT,
    ROLE_KINDS,
    SENDING_ROLES,
)  # fmt: skip
from .samples import (
    CORRUPT,
    FAILED,
    PROBE,
    TIMEOUT,
    UNKNOWN_NS,
    UNKNOWN_PEER,
    WARM_UP,
    Record,
    Samples,
)  # fmt: skip
from .schema import breaches
from .spec import scheduled

SCHEMA_CLAUSES = {
    "LISTENING": "C-06", "READY": "C-07", "COUNTED": "C-11", "SENT": "C-14", "DONE": "C-16",
}  # fmt: skip
LINE_ORDER = tuple(SCHEMA_CLAUSES)


@dataclass(frozen=True)
class Expect:
    """Deviations that a scenario causes on purpose; the audit does not report them."""

    complete: bool = True
    """Whether every sender can complete its schedule."""
    timeouts: bool = False
    overflow: bool = False
    foreign: bool = False
    corrupt: bool = False
    loss: bool = False
    duplicates: bool = False


@dataclass(frozen=True)
class NodeRun:
    """A node that has ended, with its sample files."""

    node: NodeProcess
    samples: Samples
    stranger: bool

    @property
    def spec(self) -> dict[str, Any]:
        return self.node.spec

    @property
    def label(self) -> str:
        return self.node.label

    @property
    def records(self) -> list[Record]:
        return self.samples.records

    @property
    def sends(self) -> bool:
        """Whether the node's role sends messages or makes calls."""
        return self.spec["role"] in SENDING_ROLES

    @property
    def unrecorded(self) -> bool:
        """Whether the node is a server without records (C-34).

        Its processes share no memory, so its clients provide the records.
        """
        capabilities = self.node.cell.capabilities
        return not self.sends and "server_unrecorded" in capabilities

    @property
    def unit(self) -> int:
        """The number of characters or bytes per byte of the header."""
        return 2 if self.spec["payload.encoding"] == "text" else 1

    @property
    def length(self) -> int:
        """The value of `bytes` that C-25 requires in a record of this node."""
        literal: str = self.spec["payload.literal"]
        size: int = self.spec["payload.bytes"]
        if self.spec["payload.encoding"] == "record":
            return nominal_size(size)
        return len(literal.encode()) if literal else size

    @property
    def carries_seq(self) -> bool:
        """Whether the payload has room for the sequence number."""
        return not self.spec["payload.literal"] and self.length >= 8 * self.unit

    @property
    def carries_time(self) -> bool:
        """Whether the payload has room for the send time."""
        return not self.spec["payload.literal"] and self.length >= 16 * self.unit

    def of_kind(self, *kinds: int) -> list[Record]:
        return [record for record in self.records if record.kind in kinds]

    def problem(self, clause: str, text: str) -> Problem:
        return Problem(clause, f"{self.label}: {text}")


def some(items: list[Any]) -> str:
    """Return the first three items of a list as text, with the number of further items."""
    more = f" and {len(items) - 3} more" if len(items) > 3 else ""
    return ", ".join(str(item) for item in items[:3]) + more


def audit_lines(node: NodeProcess, listening_role: str, settings: dict[str, Any]) -> list[Problem]:
    """Return the breaches of C-05, C-06, C-07 and of each line's schema."""
    problems = []
    for line in node.lines:
        if line.fields is None:
            text = f"{node.label}: found the line {line.text[:120]!r} on descriptor 3; "
            problems.append(Problem("C-05", text + "allowed: only `KEYWORD {…}` lines"))
            continue
        clause = SCHEMA_CLAUSES.get(line.keyword, "C-05")
        for breach in breaches(line.keyword.lower(), line.fields):
            problems.append(Problem(clause, f"{node.label}: {line.keyword}: {breach}"))
    keywords = [line.keyword for line in node.lines if line.fields is not None]
    expected_keywords = [keyword for keyword in LINE_ORDER if keyword in keywords]
    if keywords != expected_keywords:
        text = f"{node.label}: printed the lines {' '.join(keywords)}; "
        problems.append(Problem("C-05", text + f"expected {' '.join(expected_keywords)}"))
    listens = PATTERNS[node.spec["pattern"]].listens(node.spec["role"], listening_role)
    if ("LISTENING" in keywords) != listens:
        text = "prints LISTENING, but by the manifest this role does not listen"
        if listens:
            text = "does not print LISTENING, but by the manifest this role listens"
        problems.append(Problem("C-06", f"{node.label}: {text}"))
    problems += [Problem("C-07", f"{node.label}: READY: {text}") for text in _ready(node, settings)]
    return problems


def _ready(node: NodeProcess, settings: dict[str, Any]) -> Iterator[str]:
    """Yield a text for each wrong field of the node's READY line."""
    line = node.line("READY")
    if line is None or line.fields is None:
        return
    matched = line.fields.get("matched")
    if isinstance(matched, int) and matched < node.spec["peers.count"]:
        yield f"matched is {matched}, but peers.count is {node.spec['peers.count']}"
    startup_ns, discovery_ns = line.fields.get("startup_ns"), line.fields.get("discovery_ns")
    if isinstance(startup_ns, int) and startup_ns > line.t_ns - node.spawn_ns:
        yield f"startup_ns is {startup_ns}, but the process is {line.t_ns - node.spawn_ns} ns old"
    if isinstance(startup_ns, int) and isinstance(discovery_ns, int) and discovery_ns > startup_ns:
        yield f"discovery_ns {discovery_ns} exceeds startup_ns {startup_ns}"
    effective = line.fields.get("effective")
    for name in settings:
        if isinstance(effective, dict) and name not in effective:
            yield f"effective has no entry for the setting {name!r}"


def audit_counts(run: NodeRun, expect: Expect) -> Iterator[Problem]:
    """Yield the breaches of C-16, C-26 and C-34: differences between DONE and the files."""
    done = run.node.fields("DONE")
    null_counts = [name for name in ("received", "foreign", "corrupt") if done.get(name) is None]
    if done and bool(null_counts) is not run.unrecorded:
        text = f"DONE has null for {some(null_counts) if null_counts else 'no count'}; only a "
        text += "server with server_unrecorded has null for received, foreign and corrupt"
        yield run.problem("C-34", text)
        return
    recorded, overflow = done.get("recorded"), done.get("overflow")
    if recorded != len(run.records):
        text = f"DONE reports recorded {recorded}, but the files have {len(run.records)} records"
        yield run.problem("C-16", text)
    if overflow != run.samples.overflow:
        text = f"DONE reports overflow {overflow}, but the files' headers {run.samples.overflow}"
        yield run.problem("C-26", text)
    if overflow and not expect.overflow:
        capacity = run.spec["record.capacity"]
        yield run.problem("C-26", f"overflow is {overflow} with room for {capacity} records")
    if done.get("foreign") and not expect.foreign:
        yield run.problem("C-18", f"foreign is {done['foreign']}, but no foreign message was sent")
    if done.get("corrupt") and not expect.corrupt:
        yield run.problem("C-21", f"corrupt is {done['corrupt']}, but every payload was valid")
    if not overflow and not run.unrecorded:
        yield from _count_problems(run, done, expect)


def _count_problems(run: NodeRun, done: dict[str, Any], expect: Expect) -> Iterator[Problem]:
    """Yield each difference between the counts of DONE and the counts of the records."""
    answered = [r for r in run.of_kind(MESSAGE, CALL, RESULT) if not r.flags & (TIMEOUT | FAILED)]
    if run.spec["role"] in RELAY_ROLES:
        relayed = run.of_kind(RELAY)
        sent = len([record for record in relayed if not record.flags & FAILED])
        received = len(relayed)
    elif run.sends:
        attempts = run.of_kind(MESSAGE, CALL, RESULT)
        calls = run.spec["role"] in CALLING_ROLES
        sent = len([record for record in attempts if calls or not record.flags & FAILED])
        received = len(answered) if calls else 0
    else:
        sent, received = None, len(run.of_kind(MESSAGE, CALL, GOAL))
    if sent is not None and done.get("sent") != sent:
        text = f"DONE reports sent {done.get('sent')}, but the records show {sent}"
        yield run.problem("C-16", text)
    # After a timeout the server may count a request whose reply it could not hand over.
    may_exceed = expect.timeouts and not run.sends and done.get("received", 0) >= received
    if done.get("received") != received and not may_exceed:
        text = f"DONE reports received {done.get('received')}, but the records show {received}"
        yield run.problem("C-16", text)
    corrupt = len({(r.seq, r.kind, r.end_ns) for r in run.records if r.flags & CORRUPT})
    if corrupt > done.get("corrupt", 0):
        text = f"DONE reports corrupt {done.get('corrupt')}, but {corrupt} records have the flag"
        yield run.problem("C-21", text)


def audit_records(run: NodeRun, group: Group, expect: Expect) -> Iterator[Problem]:
    """Yield the breaches of C-13, C-17, C-25 and C-27 in single records."""
    spec, role = run.spec, run.spec["role"]
    records_by_breach: dict[tuple[str, str], list[Any]] = {}

    def note(clause: str, text: str, record: Record) -> None:
        records_by_breach.setdefault((clause, text), []).append(tuple(record))

    peers = {*spec["peers.nodes"], UNKNOWN_PEER}
    lengths = {run.length}
    if spec["reply"] == "literal":
        lengths.add(len(spec["reply.literal"].encode()))
    elif spec["reply"] == "ack":
        lengths.add(min(run.length, 8 * run.unit))
    warm_until_ns = group.start_ns + spec["warmup_ns"]
    literal = bool(spec["payload.literal"])
    for record in run.records:
        if record.kind not in ROLE_KINDS[role]:
            note("C-25", f"kind that a {role} cannot have", record)
        if record.flags & ~15:
            note("C-25", "unknown flags", record)
        if record.peer not in peers:
            note("C-25", f"peer is not one of {sorted(peers)}", record)
        if record.bytes not in lengths and not record.flags & CORRUPT and record.kind != ACCEPT:
            note("C-25", f"bytes is not one of {sorted(lengths)}", record)
        if record.counter == PROBE:
            note("C-17", "a probe was recorded", record)
        elif run.sends and record.node != spec["node"]:
            note("C-17", f"seq does not belong to node {spec['node']}", record)
        elif not run.sends and not literal and record.node not in spec["peers.nodes"]:
            note("C-17", f"seq does not belong to one of the nodes {spec['peers.nodes']}", record)
        if record.flags & CORRUPT and not expect.corrupt:
            note("C-21", "flag corrupt, but every payload was valid", record)
        if record.flags & (TIMEOUT | FAILED) and not expect.timeouts:
            note("C-12", "flag timeout or failed, but nothing failed", record)
        time_ns = record.intended_ns if record.intended_ns != UNKNOWN_NS else record.end_ns
        if time_ns != UNKNOWN_NS and bool(record.flags & WARM_UP) != (time_ns < warm_until_ns):
            note("C-13", f"wrong warm-up flag (the warm-up ends at {warm_until_ns})", record)
        for text in _time_breaches(run, group, record):
            note("C-27", text, record)
    for (clause, text), records in records_by_breach.items():
        yield run.problem(clause, f"{text}: records {some(records)}")


def _time_breaches(run: NodeRun, group: Group, record: Record) -> Iterator[str]:
    """Yield a text for each breach of C-27 by the times of one record."""
    window = range(group.start_ns, group.done_ns + 1)
    relays = record.kind == RELAY
    intends = relays or (run.sends and record.kind != FEEDBACK)
    if (record.intended_ns == UNKNOWN_NS) is intends:
        yield "intended_ns is known but must be unknown, or vice versa"
    begin_known = record.begin_ns != UNKNOWN_NS
    if intends and not begin_known:
        yield "begin_ns is unknown"
    if relays and record.intended_ns not in window:
        yield f"intended_ns is outside the window on the host's monotonic clock, {window}"
    arrival = record.kind == MESSAGE and not run.sends and not record.flags & CORRUPT
    if arrival and begin_known is not run.carries_time:
        yield "begin_ns must be the payload's send time, or unknown if it does not fit"
    if begin_known and record.begin_ns not in window:
        yield f"begin_ns is outside the window on the host's monotonic clock, {window}"
    end_known = record.end_ns != UNKNOWN_NS
    if end_known and record.end_ns not in window:
        yield f"end_ns is outside the window on the host's monotonic clock, {window}"
    if end_known is bool(record.flags & TIMEOUT) and not record.flags & FAILED:
        yield "end_ns must be unknown if and only if the record has the flag timeout"
    if relays and end_known is bool(record.flags & FAILED):
        yield "end_ns of a relayed message must be unknown if and only if it has the flag failed"
    if begin_known and end_known and record.end_ns < record.begin_ns:
        yield "end_ns is before begin_ns"


def audit_schedule(run: NodeRun, group: Group, expect: Expect) -> Iterator[Problem]:
    """Yield the breaches of C-10, C-11, C-14 and C-17: a sender's records against its schedule."""
    spec, sent = run.spec, run.node.fields("SENT")
    done = run.node.fields("DONE")
    required = scheduled(spec)
    attempts = sorted(run.of_kind(MESSAGE, CALL, RESULT), key=lambda record: record.seq)
    counters = [record.counter for record in attempts]
    repeated = [counter for counter, count in Counter(counters).items() if count > 1]
    if repeated:
        yield run.problem("C-17", f"counters used more than once: {some(repeated)}")
    overflow = done.get("overflow", 0)
    without_gaps = (
        bool(overflow) or spec["pacing"] == "native" or counters == list(range(len(counters)))
    )
    if counters and not without_gaps:
        missing = sorted(set(range(max(counters) + 1)) - set(counters))
        text = f"counters must start at 0 and have no gap; the first is {counters[0]}"
        yield run.problem("C-17", f"{text}, missing are {some(missing)}")
    if sent.get("scheduled") != required:
        text = f"SENT reports scheduled {sent.get('scheduled')}; the spec requires {required}"
        yield run.problem("C-14", text)
    if sent.get("sent") != done.get("sent"):
        text = f"SENT reports sent {sent.get('sent')}, but DONE reports {done.get('sent')}"
        yield run.problem("C-14", text)
    handled = sent.get("sent", 0) + sent.get("skipped", 0)
    if expect.complete and handled < required and not expect.timeouts:
        text = f"sent or skipped only {handled} of {required} messages in an undisturbed window"
        yield run.problem("C-10" if spec["loop"] == "open" else "C-11", text)
    handled_max = required + spec["count_beyond"]
    if handled > handled_max:
        yield run.problem("C-11", f"sent {handled}; the spec allows at most {handled_max}")
    if (run.node.line("COUNTED") is None) is (handled > required):
        text = f"the node must print COUNTED if and only if it makes more than {required} calls; "
        yield run.problem("C-11", f"{text}it made {handled}")
    if spec["pacing"] == "kit" and sent.get("skipped"):
        yield run.problem("C-10", f"skipped {sent['skipped']} slots with pacing kit")
    if attempts and not overflow:
        yield from _sent_times(run, sent, attempts)
    yield from _intended(run, group)


def _sent_times(run: NodeRun, sent: dict[str, Any], attempts: list[Record]) -> Iterator[Problem]:
    """Yield each difference between the times of SENT and the times of the records (C-14)."""
    first_ns = min(record.begin_ns for record in attempts)
    if sent.get("begin_ns") != first_ns:
        text = f"SENT reports begin_ns {sent.get('begin_ns')}; the first message began at "
        text += str(first_ns)
        yield run.problem("C-14", text)
    ends = [record.end_ns for record in attempts if record.end_ns != UNKNOWN_NS]
    if len(ends) == len(attempts) and sent.get("end_ns") not in ends:
        text = f"SENT reports end_ns {sent.get('end_ns')}, but no message ended then; the last "
        text += f"ended at {max(ends)}"
        yield run.problem("C-14", text)


def _intended(run: NodeRun, group: Group) -> Iterator[Problem]:
    """Yield the breaches of a sender's intended times (C-10, C-11)."""
    spec = run.spec
    records_by_breach: dict[tuple[str, str], list[Any]] = {}
    period_ns, phase_ns = spec["period_ns"], spec["phase_ns"]
    slots = []
    for record in run.records:
        if record.kind == FEEDBACK:
            continue
        if spec["loop"] == "closed":
            if record.intended_ns != record.begin_ns:
                records_by_breach.setdefault(("C-11", "intended_ns is not begin_ns"), []).append(
                    tuple(record)
                )
            continue
        offset_ns = record.intended_ns - group.start_ns - phase_ns
        slot = offset_ns // period_ns
        slots.append((record.kind, slot))
        is_own_slot = slot == record.counter or spec["pacing"] == "native"
        if offset_ns % period_ns or not is_own_slot or not 0 <= slot < scheduled(spec):
            text = f"intended_ns is not start + {phase_ns} + counter x {period_ns}"
            records_by_breach.setdefault(("C-10", text), []).append(tuple(record))
        if record.begin_ns < max(group.start_ns, record.intended_ns - period_ns // 2):
            records_by_breach.setdefault(("C-10", "sent too early"), []).append(tuple(record))
    for (clause, text), records in records_by_breach.items():
        yield run.problem(clause, f"{text}: records {some(records)}")
    repeated = [slot for slot, count in Counter(slots).items() if count > 1]
    if repeated:
        yield run.problem("C-10", f"slots taken more than once: {some(repeated)}")
