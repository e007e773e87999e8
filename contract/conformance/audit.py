"""Checks of each node after a complete run: its lines, counts and records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .cell import SENDING_ROLES, Problem
from .group import Group
from .payload import nominal_size
from .process import NodeProcess
from .samples import (
    ACCEPT,
    CALL,
    CORRUPT,
    FAILED,
    FEEDBACK,
    GOAL,
    MESSAGE,
    PROBE,
    RESULT,
    ROLE_KINDS,
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
    """Deviations that a scenario causes on purpose, so that the audit reports no breach."""

    complete: bool = True
    """True if every sender could complete its schedule."""
    timeouts: bool = False
    overflow: bool = False
    foreign: bool = False
    corrupt: bool = False
    loss: bool = False
    duplicates: bool = False


@dataclass(frozen=True)
class NodeRun:
    """One ended node with its files."""

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
        """Return whether the node's role sends messages or makes calls."""
        return self.spec["role"] in SENDING_ROLES

    @property
    def unrecorded(self) -> bool:
        """Return whether the node is a server without records of its own (C-34).

        Its processes share no memory, so the records of its clients count instead.
        """
        capabilities = self.node.cell.capabilities
        return not self.sends and "server_unrecorded" in capabilities

    @property
    def unit(self) -> int:
        """Return the number of characters or bytes per byte of the header."""
        return 2 if self.spec["payload.encoding"] == "text" else 1

    @property
    def length(self) -> int:
        """Return the `bytes` that a record of this node must have, by C-25."""
        literal: str = self.spec["payload.literal"]
        size: int = self.spec["payload.bytes"]
        if self.spec["payload.encoding"] == "record":
            return nominal_size(size)
        return len(literal.encode()) if literal else size

    @property
    def carries_seq(self) -> bool:
        """Return whether the payload has room for the sequence number."""
        return not self.spec["payload.literal"] and self.length >= 8 * self.unit

    @property
    def carries_time(self) -> bool:
        """Return whether the payload has room for the send time."""
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
            text = f"{node.label}: standard output holds {line.text[:120]!r}; "
            problems.append(Problem("C-05", text + "only `KEYWORD {…}` lines may be there"))
            continue
        clause = SCHEMA_CLAUSES.get(line.keyword, "C-05")
        for breach in breaches(line.keyword.lower(), line.fields):
            problems.append(Problem(clause, f"{node.label}: {line.keyword}: {breach}"))
    keywords = [line.keyword for line in node.lines if line.fields is not None]
    due_keywords = [keyword for keyword in LINE_ORDER if keyword in keywords]
    if keywords != due_keywords:
        text = f"{node.label}: lines {' '.join(keywords)}; each once, as {' '.join(due_keywords)}"
        problems.append(Problem("C-05", text))
    listens = node.spec["role"] == listening_role
    if ("LISTENING" in keywords) != listens:
        text = "prints LISTENING, but the manifest does not say that this role listens"
        text = (
            "prints no LISTENING, but the manifest says that this role listens" if listens else text
        )
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
        yield f"matched {matched}, but peers.count is {node.spec['peers.count']}"
    startup_ns, discovery_ns = line.fields.get("startup_ns"), line.fields.get("discovery_ns")
    if isinstance(startup_ns, int) and startup_ns > line.t_ns - node.spawn_ns:
        yield f"startup_ns {startup_ns}, but the process is {line.t_ns - node.spawn_ns} ns old"
    if isinstance(startup_ns, int) and isinstance(discovery_ns, int) and discovery_ns > startup_ns:
        yield f"discovery_ns {discovery_ns} is more than startup_ns {startup_ns}"
    effective = line.fields.get("effective")
    for name in settings:
        if isinstance(effective, dict) and name not in effective:
            yield f"effective has no entry for the setting {name!r}"


def audit_counts(run: NodeRun, expect: Expect) -> Iterator[Problem]:
    """Yield the breaches of C-16, C-26 and C-34: differences between DONE and the files."""
    done = run.node.fields("DONE")
    unknown = [name for name in ("received", "foreign", "corrupt") if done.get(name) is None]
    if done and bool(unknown) is not run.unrecorded:
        text = f"DONE has null for {some(unknown) if unknown else 'nothing'}; "
        text += "exactly a server that declares server_unrecorded has null for all three"
        yield run.problem("C-34", text)
        return
    recorded, overflow = done.get("recorded"), done.get("overflow")
    if recorded != len(run.records):
        text = f"DONE says recorded {recorded}; the files hold {len(run.records)} records"
        yield run.problem("C-16", text)
    if overflow != run.samples.overflow:
        text = f"DONE says overflow {overflow}; the files' headers say {run.samples.overflow}"
        yield run.problem("C-26", text)
    if overflow and not expect.overflow:
        capacity = run.spec["record.capacity"]
        yield run.problem("C-26", f"overflow {overflow} with room for {capacity} records")
    if done.get("foreign") and not expect.foreign:
        yield run.problem("C-18", f"foreign {done['foreign']} where no stranger was")
    if done.get("corrupt") and not expect.corrupt:
        yield run.problem("C-21", f"corrupt {done['corrupt']} where every payload was sound")
    if not overflow and not run.unrecorded:
        yield from _count_problems(run, done, expect)


def _count_problems(run: NodeRun, done: dict[str, Any], expect: Expect) -> Iterator[Problem]:
    """Yield each difference between the counts of DONE and those of the records."""
    answered = [r for r in run.of_kind(MESSAGE, CALL, RESULT) if not r.flags & (TIMEOUT | FAILED)]
    if run.sends:
        attempts = run.of_kind(MESSAGE, CALL, RESULT)
        calls = run.spec["role"] != "publisher"
        sent = len([record for record in attempts if calls or not record.flags & FAILED])
        received = 0 if run.spec["role"] == "publisher" else len(answered)
    else:
        sent, received = None, len(run.of_kind(MESSAGE, CALL, GOAL))
    if sent is not None and done.get("sent") != sent:
        yield run.problem("C-16", f"DONE says sent {done.get('sent')}; the records say {sent}")
    # After a timeout the server may count a request whose reply it could not hand over.
    may_exceed = expect.timeouts and not run.sends and done.get("received", 0) >= received
    if done.get("received") != received and not may_exceed:
        text = f"DONE says received {done.get('received')}; the records say {received}"
        yield run.problem("C-16", text)
    corrupt = len({(r.seq, r.kind, r.end_ns) for r in run.records if r.flags & CORRUPT})
    if corrupt > done.get("corrupt", 0):
        text = f"{corrupt} records are flagged corrupt; DONE says {done.get('corrupt')}"
        yield run.problem("C-21", text)


def audit_records(run: NodeRun, group: Group, expect: Expect) -> Iterator[Problem]:
    """Yield the breaches of C-13, C-17, C-25 and C-27 that single records show."""
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
            note("C-25", f"kind that no {role} has", record)
        if record.flags & ~15:
            note("C-25", "unknown flags", record)
        if record.peer not in peers:
            note("C-25", f"peer is none of {sorted(peers)}", record)
        if record.bytes not in lengths and not record.flags & CORRUPT and record.kind != ACCEPT:
            note("C-25", f"bytes is none of {sorted(lengths)}", record)
        if record.counter == PROBE:
            note("C-17", "a probe was recorded", record)
        elif run.sends and record.node != spec["node"]:
            note("C-17", f"seq is not of node {spec['node']}", record)
        elif not run.sends and not literal and record.node not in spec["peers.nodes"]:
            note("C-17", f"seq is of none of {spec['peers.nodes']}", record)
        if record.flags & CORRUPT and not expect.corrupt:
            note("C-21", "flagged corrupt where every payload was sound", record)
        if record.flags & (TIMEOUT | FAILED) and not expect.timeouts:
            note("C-12", "flagged timeout or failed where nothing failed", record)
        time_ns = record.intended_ns if record.intended_ns != UNKNOWN_NS else record.end_ns
        if time_ns != UNKNOWN_NS and bool(record.flags & WARM_UP) != (time_ns < warm_until_ns):
            note("C-13", f"warm-up flag is wrong (warm until {warm_until_ns})", record)
        for text in _time_breaches(run, group, record):
            note("C-27", text, record)
    for (clause, text), records in records_by_breach.items():
        yield run.problem(clause, f"{text}: records {some(records)}")


def _time_breaches(run: NodeRun, group: Group, record: Record) -> Iterator[str]:
    """Yield a text for each breach of C-27 by the times of one record."""
    window = range(group.start_ns, group.done_ns + 1)
    if (record.intended_ns == UNKNOWN_NS) is (run.sends and record.kind != FEEDBACK):
        yield "intended_ns is known where it must be unknown, or the reverse"
    begin_known = record.begin_ns != UNKNOWN_NS
    if run.sends and not begin_known and record.kind != FEEDBACK:
        yield "begin_ns is unknown"
    arrival = record.kind == MESSAGE and not run.sends and not record.flags & CORRUPT
    if arrival and begin_known is not run.carries_time:
        yield "begin_ns must be the payload's send time, unknown where it does not fit"
    if begin_known and record.begin_ns not in window:
        yield f"begin_ns is outside the window on the host's monotonic clock, {window}"
    end_known = record.end_ns != UNKNOWN_NS
    if end_known and record.end_ns not in window:
        yield f"end_ns is outside the window on the host's monotonic clock, {window}"
    if end_known is bool(record.flags & TIMEOUT) and not record.flags & FAILED:
        yield "end_ns must be unknown exactly where the record is flagged timeout"
    if begin_known and end_known and record.end_ns < record.begin_ns:
        yield "end_ns is before begin_ns"


def audit_schedule(run: NodeRun, group: Group, expect: Expect) -> Iterator[Problem]:
    """Yield the breaches of C-10, C-11, C-14 and C-17: a sender's records against its schedule."""
    spec, sent = run.spec, run.node.fields("SENT")
    done = run.node.fields("DONE")
    demanded = scheduled(spec)
    attempts = sorted(run.of_kind(MESSAGE, CALL, RESULT), key=lambda record: record.seq)
    counters = [record.counter for record in attempts]
    repeated = [counter for counter, count in Counter(counters).items() if count > 1]
    if repeated:
        yield run.problem("C-17", f"counters {some(repeated)} were used more than once")
    overflow = done.get("overflow", 0)
    without_gaps = (
        bool(overflow) or spec["pacing"] == "native" or counters == list(range(len(counters)))
    )
    if counters and not without_gaps:
        missing = sorted(set(range(max(counters) + 1)) - set(counters))
        text = f"counters must run from 0 without a gap; first {counters[0]}"
        yield run.problem("C-17", f"{text}, missing {some(missing)}")
    if sent.get("scheduled") != demanded:
        text = f"SENT says scheduled {sent.get('scheduled')}; the spec demands {demanded}"
        yield run.problem("C-14", text)
    if sent.get("sent") != done.get("sent"):
        text = f"SENT says sent {sent.get('sent')}, DONE says {done.get('sent')}"
        yield run.problem("C-14", text)
    handled = sent.get("sent", 0) + sent.get("skipped", 0)
    if expect.complete and handled < demanded and not expect.timeouts:
        text = (
            f"sent and skipped {handled} of {demanded} messages in a window that nothing disturbed"
        )
        yield run.problem("C-10" if spec["loop"] == "open" else "C-11", text)
    handled_max = demanded + spec["count_beyond"]
    if handled > handled_max:
        yield run.problem("C-11", f"sent {handled}, where the spec allows {handled_max} at most")
    if (run.node.line("COUNTED") is None) is (handled > demanded):
        text = f"COUNTED must be printed exactly where more than {demanded} calls are made; "
        yield run.problem("C-11", f"{text}{handled} were made")
    if spec["pacing"] == "kit" and sent.get("skipped"):
        yield run.problem("C-10", f"skipped {sent['skipped']} slots with pacing kit")
    if attempts and not overflow:
        yield from _sent_times(run, sent, attempts)
    yield from _intended(run, group)


def _sent_times(run: NodeRun, sent: dict[str, Any], attempts: list[Record]) -> Iterator[Problem]:
    """Yield each difference between the times of SENT and those of the records (C-14)."""
    first_ns = min(record.begin_ns for record in attempts)
    if sent.get("begin_ns") != first_ns:
        text = f"SENT's begin_ns is {sent.get('begin_ns')}; the first message began at {first_ns}"
        yield run.problem("C-14", text)
    ends = [record.end_ns for record in attempts if record.end_ns != UNKNOWN_NS]
    if len(ends) == len(attempts) and sent.get("end_ns") not in ends:
        text = f"SENT's end_ns {sent.get('end_ns')} is no message's end; the last is {max(ends)}"
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
        due = slot == record.counter or spec["pacing"] == "native"
        if offset_ns % period_ns or not due or not 0 <= slot < scheduled(spec):
            text = f"intended_ns is not start + {phase_ns} + counter x {period_ns}"
            records_by_breach.setdefault(("C-10", text), []).append(tuple(record))
        if record.begin_ns < max(group.start_ns, record.intended_ns - period_ns // 2):
            records_by_breach.setdefault(("C-10", "left too early"), []).append(tuple(record))
    for (clause, text), records in records_by_breach.items():
        yield run.problem(clause, f"{text}: records {some(records)}")
    repeated = [slot for slot, count in Counter(slots).items() if count > 1]
    if repeated:
        yield run.problem("C-10", f"slots {some(repeated)} were taken more than once")
