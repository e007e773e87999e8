"""Check the nodes of a run against each other: deliveries, and the order of times."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from .audit import (
    Expect,
    NodeRun,
    audit_counts,
    audit_lines,
    audit_records,
    audit_schedule,
    some,
)  # fmt: skip
from .audit_one_way import BEST_EFFORT_LOSS_MAX, pipeline, topic
from .cell import Problem
from .group import Group
from .payload import SIZE_CLAUSES
from .roles import (
    ACCEPT,
    CALL,
    FEEDBACK,
    GOAL,
    PATTERN_CLAUSES,
    PATTERNS,
    RESULT,
)  # fmt: skip
from .samples import CORRUPT, FAILED, TIMEOUT, UNKNOWN_NS, Record


def node_runs(group: Group) -> list[NodeRun]:
    """Return the nodes of a finished group with the contents of their files."""
    strangers = {spec["node"] for member, spec in group.members if member.stranger}
    return [
        NodeRun(node, group.samples(node), node.spec["node"] in strangers) for node in group.nodes
    ]


def audit(group: Group, expect: Expect | None = None) -> list[Problem]:
    """Check a finished group against the clauses of every run, and return the breaches."""
    expect = expect or Expect()
    runs = node_runs(group)
    problems: list[Problem] = []
    cell = group.members[0][0].cell
    listening = cell.listening_role(group.pattern)
    for run in runs:
        problems += run.samples.problems
        problems += audit_lines(run.node, listening, dict(cell.settings))
        problems += audit_counts(run, expect)
        problems += audit_records(run, group, expect)
        if run.sends:
            problems += audit_schedule(run, group, expect)
    runs = [run for run in runs if not run.stranger]
    senders = [run for run in runs if run.sends]
    receivers = [run for run in runs if not run.sends and not run.unrecorded]
    if not expect.overflow:
        for receiver in receivers:
            problems += _identity(senders, receiver)
        problems += _matched(group.pattern, senders, receivers, expect)
    return problems


def _matched(
    pattern: str, senders: list[NodeRun], receivers: list[NodeRun], expect: Expect
) -> Iterator[Problem]:
    """Return the breaches of a pattern's own clause."""
    roles = PATTERNS[pattern]
    if roles.is_one_way:
        return (pipeline if roles.is_chain else topic)(senders, receivers, expect)
    if roles.is_of_calls:
        return _calls(pattern, senders, receivers, expect)
    return _action(senders, receivers, expect)


def size_clause(run: NodeRun) -> str:
    return SIZE_CLAUSES[run.spec["payload.encoding"]]


def _identity(senders: list[NodeRun], receiver: NodeRun) -> Iterator[Problem]:
    """Yield a breach if a receiver recorded sequence numbers that no sender recorded."""
    if receiver.spec["payload.literal"]:
        return
    sent_seqs = {r.seq for sender in senders for r in sender.records}
    unknown = [r.seq for r in receiver.records if r.seq not in sent_seqs and not r.flags & CORRUPT]
    if unknown:
        text = f"received sequences that no node sent: {some([hex(seq) for seq in unknown])}"
        yield receiver.problem(size_clause(receiver), text)


def _calls(
    pattern: str, senders: list[NodeRun], receivers: list[NodeRun], expect: Expect
) -> Iterator[Problem]:
    """Yield the breaches of services and pingpong: calls against the server's requests."""
    clause = PATTERN_CLAUSES.get(pattern, "C-27")
    if pattern == "pingpong":
        for run in (*senders, *receivers):
            wrong_kinds = [tuple(r) for r in run.records if r.kind != CALL]
            if wrong_kinds:
                text = f"pings and pongs must be recorded as calls, found {some(wrong_kinds)}"
                yield run.problem("C-28", text)
    served: dict[int, Record] = {}
    for receiver in receivers:
        if receiver.spec["payload.literal"]:
            yield from _literal_requests(senders, receiver, expect)
            return
        for record in receiver.of_kind(CALL):
            served[record.seq] = record
        calls = Counter(record.seq for record in receiver.of_kind(CALL))
        repeated = [hex(seq) for seq, count in calls.items() if count > 1]
        if repeated and not expect.timeouts:
            yield receiver.problem("C-25", f"requests recorded more than once: {some(repeated)}")
    for sender in senders if receivers else ():
        answered = [r for r in sender.of_kind(CALL) if not r.flags & (TIMEOUT | FAILED)]
        unserved = [hex(r.seq) for r in answered if r.seq not in served]
        if unserved:
            text = f"received replies to calls that no server recorded: {some(unserved)}"
            yield sender.problem(size_clause(sender), text)
        outside = [
            (hex(r.seq), r.begin_ns, served[r.seq].begin_ns, r.end_ns)
            for r in answered
            if r.seq in served and not r.begin_ns <= served[r.seq].begin_ns <= r.end_ns
        ]
        if outside:
            text = "the server received the request outside the call (seq, call, received, reply)"
            yield sender.problem(clause, f"{text}: {some(outside)}")


def _literal_requests(
    senders: list[NodeRun], receiver: NodeRun, expect: Expect
) -> Iterator[Problem]:
    """Yield a breach if the server's count of literal requests differs from the clients' count."""
    sent = sum(len(sender.of_kind(CALL)) for sender in senders)
    received = len(receiver.of_kind(CALL))
    if received != sent and not expect.timeouts:
        yield receiver.problem("C-22", f"recorded {received} requests; the clients made {sent}")


def _action(senders: list[NodeRun], receivers: list[NodeRun], expect: Expect) -> Iterator[Problem]:
    """Yield the breaches of actions: goals, acceptances, feedback and results."""
    if expect.timeouts:
        return
    for sender in senders:
        goals = {record.seq: record for record in sender.of_kind(GOAL)}
        results = {record.seq: record for record in sender.of_kind(RESULT)}
        if set(goals) != set(results):
            missing = [hex(seq) for seq in set(goals) ^ set(results)]
            text = f"goals without a result, or results without a goal: {some(missing)}"
            yield sender.problem("C-30", text)
        for seq in set(goals) & set(results):
            goal, result = goals[seq], results[seq]
            if goal.begin_ns != result.begin_ns or goal.end_ns > result.end_ns:
                text = f"goal {goal} and result {result} must have the same begin_ns, and the "
                text += "goal must end first"
                yield sender.problem("C-27", text)
                break
        yield from _feedback(sender, receivers, set(goals), expect)
    for receiver in receivers:
        counts = Counter(record.kind for record in receiver.records)
        expected = {
            GOAL: counts[GOAL],
            ACCEPT: counts[GOAL],
            FEEDBACK: counts[GOAL] * receiver.spec["action.feedback"],
        }
        recorded = {kind: counts[kind] for kind in expected}
        if recorded != expected:
            text = f"the numbers of records by kind (2 goal, 3 accept, 4 feedback) are {recorded}; "
            text += f"expected {expected}"
            yield receiver.problem("C-30", text)


def _feedback(
    sender: NodeRun, receivers: list[NodeRun], goals: set[int], expect: Expect
) -> Iterator[Problem]:
    """Yield the breaches of one client's feedback: wrong numbers and wrong send times."""
    published: dict[int, list[int]] = defaultdict(list)
    for receiver in receivers:
        for record in receiver.of_kind(FEEDBACK):
            published[record.seq].append(record.begin_ns)
    arrived: dict[int, list[int]] = defaultdict(list)
    for record in sender.of_kind(FEEDBACK):
        arrived[record.seq].append(record.begin_ns)
    expected = sender.spec["action.feedback"]
    incomplete = [hex(seq) for seq in goals if len(arrived[seq]) != expected]
    if not sender.carries_seq:
        # Feedback without a sequence does not identify its goal, so only the total is compared.
        count = sum(len(times) for times in arrived.values())
        incomplete = [str(count)] * (expected * len(goals) - count)
    if not expect.loss and len(incomplete) > BEST_EFFORT_LOSS_MAX * len(goals):
        text = f"goals without exactly {expected} feedback messages: {some(incomplete)}"
        yield sender.problem("C-30", text)
    if sender.carries_time:
        wrong = [
            (hex(seq), begin_ns)
            for seq, times in arrived.items()
            for begin_ns in times
            if begin_ns not in published[seq]
        ]
        if wrong:
            text = "begin_ns of feedback differs from the server's begin_ns (seq, begin_ns)"
            yield sender.problem("C-27", f"{text}: {some(wrong)}")


def closing_problems(group: Group) -> list[Problem]:
    """Return the breaches of C-15: a receiver printed DONE before quiet_ms and linger_ms passed.

    `linger_ms` counts from STOP. `quiet_ms` counts from STOP or from the last arrival after it.
    """
    problems = []
    for node in group.receivers:
        line, stop_ns = node.line("DONE"), group.stop_ns.get(node)
        if line is None or stop_ns is None:
            continue
        arrivals = [record.arrival_ns for record in group.samples(node).records]
        ends = [arrival_ns for arrival_ns in arrivals if arrival_ns != UNKNOWN_NS]
        quiet_from_ns = max([stop_ns, *ends])
        earliest_ns = min(
            quiet_from_ns + node.spec["quiet_ms"] * 1_000_000,
            stop_ns + node.spec["linger_ms"] * 1_000_000,
        )
        # The suite's time stamps of lines are late, never early. The tolerance of 20 ms allows for
        # kits that read `end_ns` before they register the arrival.
        if line.t_ns < earliest_ns - 20_000_000:
            early_ms = (earliest_ns - line.t_ns) / 1e6
            text = f"{node.label}: DONE came {early_ms:.0f} ms before quiet_ms or linger_ms"
            problems.append(Problem("C-15", text))
    return problems
