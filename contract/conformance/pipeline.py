"""Scenarios for pipelines: the specs of a chain, its length, and what a relay sends on (C-37)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from .audit import Expect, NodeRun, some
from .audit_one_way import is_delivered
from .audit_peers import audit, node_runs
from .cell import Broken, Problem, Skipped, Wire
from .group import GO_MARGIN_NS, HANG_S, Member, pair
from .payload import encoded, same
from .process import NodeProcess
from .roles import PATTERNS, chain_roles
from .samples import CORRUPT, FAILED, UNKNOWN_NS, Record
from .scenario import ALWAYS, Bench, Scenario
from .spec import (
    MILLISECOND_NS,
    SEED,
    SENDER_NODE,
    WIRE_ENCODINGS,
    new_token,
    open_loop,
    stranger_pace,
)
from .usage import refusal
from .wire import MESSAGE, SIZE, await_line, go, made_wire, plants, stop

ROLES = PATTERNS["pipeline"]
DROPPED = {0, 3, 7, 39}
SENT_BEFORE, SENT_AFTER = 2, 5
"""Numbers of messages that a relay receives before and after its successor closes."""


def bad_hop(bench: Bench) -> list[Problem]:
    """Check specs of a chain without a valid hop, and a spec of another pattern with a hop."""
    problems: list[Problem] = []
    for role in ROLES.roles:
        good = bench.lone_spec(ROLES.name, role)
        without_hop = {key: value for key, value in good.items() if key != "hop"}
        cases = [("missing", without_hop), ("wrongly typed", {**good, "hop": "1"})]
        for change, spec in cases:
            problems += _refused_hop(bench, spec, f"hop: {change}")
    others = [pattern for pattern in bench.cell.patterns if not PATTERNS[pattern].is_chain]
    for pattern in others[:1]:
        spec = bench.lone_spec(pattern, PATTERNS[pattern].sender) | {"hop": 0}
        problems += _refused_hop(bench, spec, f"hop: in a spec of the pattern {pattern}")
    return problems


def _refused_hop(bench: Bench, spec: dict[str, Any], case: str) -> list[Problem]:
    """Return the breaches of a node that must exit with 2 and name the key `hop`."""
    node = bench.single(spec)
    problems, error = refusal(node, 2, "C-02", case)
    if not problems and error.get("key") != "hop":
        text = f"{node.label}: {case}: the ERROR line names {error.get('key')!r}"
        problems.append(Problem("C-02", text))
    return problems


def chain(relays: int) -> Scenario:
    """Check a chain with this number of relays."""

    def check(bench: Bench) -> list[Problem]:
        changes = open_loop(40, 8) | {"phase_ns": 3_000_001, "warmup_ns": 100 * MILLISECOND_NS}
        members = [Member(bench.cell, role, changes) for role in chain_roles(ROLES, relays)]
        return bench.whole_run(ROLES.name, members=members)

    return Scenario(f"chain[{relays}]", ("C-37", *ALWAYS), check)


def strangers(bench: Bench) -> list[Problem]:
    """Check a chain whose first relay receives messages of other runs and of a wrong length.

    It must not send the former. It must send the latter, and every later node flags them.
    """
    cell, changes = bench.cell, stranger_pace(0)
    wrong_seed, unknown, wrong_length = SENDER_NODE + 1, 0x0909, SENDER_NODE + 2
    known = {**changes, "peers.nodes": [SENDER_NODE, wrong_seed, wrong_length]}
    members = [
        Member(cell, ROLES.sender, changes, node=SENDER_NODE),
        Member(cell, ROLES.sender, stranger_pace(1, payload__seed=SEED + 1), wrong_seed, True),
        Member(cell, ROLES.sender, stranger_pace(2), unknown, True),
        Member(cell, ROLES.sender, stranger_pace(3, payload__bytes=72), wrong_length, True),
    ]
    # A relay that is READY before it has matched a stranger would lose the stranger's messages.
    neighbours = len(members) + ROLES.neighbours(ROLES.receiver)
    members += [
        Member(cell, ROLES.relay, {**known, "peers.count": neighbours}),
        *(Member(cell, role, known) for role in (ROLES.relay, ROLES.receiver)),
    ]
    with bench.group(ROLES.name, members) as group:
        group.run()
        problems = audit(group, Expect(foreign=True, corrupt=True))
        receivers = [run for run in node_runs(group) if not run.sends]
        sent = {node.spec["node"]: node.fields("DONE").get("sent", 0) for node in group.senders}
    corrupt = sent[wrong_length]
    for receiver in sorted(receivers, key=lambda run: int(run.spec["hop"])):
        foreign = sent[wrong_seed] + sent[unknown] if receiver.spec["hop"] == 1 else 0
        problems += _stranger_breaches(receiver, foreign, corrupt, wrong_length)
        corrupt = sum(record.node == wrong_length for record in receiver.records)
    return problems


def _stranger_breaches(
    receiver: NodeRun, foreign: int, corrupt: int, wrong_length: int
) -> Iterator[Problem]:
    """Yield the breaches of a node to which its predecessor sent foreign and corrupt messages."""
    done = receiver.node.fields("DONE")
    before = receiver.spec["hop"] - 1
    if not is_delivered(receiver, done.get("foreign", -1), foreign):
        text = f"DONE reports foreign {done.get('foreign')}; hop {before} sent {foreign} foreign "
        yield receiver.problem("C-37", text + "messages (a relay sends none)")
    arrived = [record for record in receiver.records if record.node == wrong_length]
    flagged = [record for record in arrived if record.flags & CORRUPT]
    is_complete = is_delivered(receiver, len(arrived), corrupt)
    if not is_complete or len(flagged) != len(arrived) or done.get("corrupt") != len(arrived):
        text = f"{corrupt} messages had 72 bytes instead of 64; DONE reports corrupt "
        text += f"{done.get('corrupt')}, and {len(flagged)} of {len(arrived)} records of them have "
        yield receiver.problem("C-37", text + f"the flag; hop {before} must send them unchanged")


def planted_loss(bench: Bench) -> list[Problem]:
    """Check that exactly the messages that the first relay drops on request are lost."""
    if "drop_counters" not in bench.cell.settings:
        raise Skipped("the middleware has no setting drop_counters")
    members = pair(bench.cell, bench.cell, ROLES.name, open_loop(40, 5))
    members[1].changes["settings.drop_counters"] = ",".join(map(str, sorted(DROPPED)))
    with bench.group(ROLES.name, members) as group:
        group.run()
        problems = audit(group, Expect(loss=True))
        for run in node_runs(group):
            expected = DROPPED if run.spec["hop"] > 1 else set()
            lost = set(range(40)) - {record.counter for record in run.records}
            if lost != expected:
                text = f"hop 1 dropped {sorted(DROPPED)}, but this node lacks {sorted(lost)}; "
                problems.append(run.problem("C-37", f"{text}expected {sorted(expected)}"))
    return problems


def missing_neighbour(bench: Bench) -> list[Problem]:
    """Check a relay with two neighbours on one channel and none on the other: it must end with 4.

    It may become READY if it reports that it does not know its peers (`matched` null).
    """
    if bench.cell.listening_role(ROLES.name) != "none":
        raise Skipped("the relay opens the connection to its successor")
    problems: list[Problem] = []
    for role in (ROLES.sender, ROLES.receiver):
        spec = bench.lone_spec(ROLES.name, ROLES.relay, ready_timeout_ms=5_000)
        specs = [bench.lone_spec(ROLES.name, role) for _ in range(spec["peers.count"])]
        nodes = [
            bench.single(other | {"run": spec["run"], "node": other["node"] + number})
            for number, other in enumerate(specs)
        ]
        relay = bench.single(spec)
        try:
            ready = relay.wait_line("READY", spec["ready_timeout_ms"] / 1000 + HANG_S)
            if ready is None or ready.fields is None:
                case = f"its only neighbours are {len(nodes)} nodes with the role {role}"
                problems += refusal(relay, 4, "C-04", case)[0]
            elif ready.fields.get("matched") is not None:
                text = f"READY reports matched {ready.fields['matched']}, but all neighbours are "
                problems.append(Problem("C-37", f"{relay.label}: {text}nodes with the role {role}"))
        finally:
            for node in (relay, *nodes):
                node.kill()
    return problems


class LoneRelay:
    """One relay with the suite as its predecessor and as its successor.

    `frames` contains the messages for the predecessor to send, in order, and `sent` their number.
    """

    def __init__(self, bench: Bench, spec: dict[str, Any], node: NodeProcess, far: Wire) -> None:
        self.spec, self.node, self.far = spec, node, far
        self._near = made_wire(bench, new_token())
        self._endpoint = ""
        self._sent = 0

    def connect(self) -> None:
        """Wait for LISTENING, and send a foreign message as the first one.

        A relay may wait for its predecessor, and a wire connects when it sends.
        """
        self._endpoint = await_line(self.node, "LISTENING", "C-06")["endpoints"][0]
        encoding = self.spec["payload.encoding"]
        self.send(encoded((SENDER_NODE + 1) << 48, 1, SIZE, SEED, encoding))

    def send(self, data: bytes) -> None:
        self._near.send(MESSAGE, self._sent, data, self._endpoint)
        self._sent += 1

    def close(self) -> None:
        self.node.kill()
        self._near.close()
        self.far.close()


@contextlib.contextmanager
def lone_relay(bench: Bench, **changes: Any) -> Iterator[LoneRelay]:
    """Start a relay between two wires of the suite, and yield it in its window."""
    far = made_wire(bench, new_token())
    spec = bench.lone_spec(ROLES.name, ROLES.relay, payload__bytes=SIZE, **changes)
    spec["peers.endpoints"] = [far.endpoint]
    relay = LoneRelay(bench, spec, bench.single(spec), far)
    try:
        relay.connect()
        go(relay.node)
        time.sleep(GO_MARGIN_NS / 1e9 + 0.02)
        yield relay
    finally:
        relay.close()


def relayed_bytes(encoding: str) -> Scenario:
    """Check byte by byte that a relay sends valid, corrupt, repeated and reordered messages on.

    The relay's predecessor also sends foreign messages, which the relay must not send.
    """

    def check(bench: Bench) -> list[Problem]:
        bench.need(f"encoding.{encoding}")
        with lone_relay(bench, payload__encoding=encoding) as relay:
            # A relay may send or drop a probe and a record that its decoder rejects.
            sent = [
                plant
                for plant in plants(encoding, time.monotonic_ns())
                if plant[0] in ("good", "corrupt", "foreign")
            ]
            for _, _, data in sent:
                relay.send(data)
            due = [plant for plant in sent if plant[0] != "foreign"]
            arrived = [relay.far.receive(HANG_S) for _ in due]
            frames = [frame[2] if frame is not None else b"" for frame in arrived]
            further = relay.far.receive(0.1)
            done, records, problems = stop(relay.node)
        texts = [*_frame_breaches(due, frames, encoding), *_count_breaches(due, done, records)]
        if further is not None:
            texts.append(("C-37", f"sent more messages than arrived: {further[2]!r:.80}"))
        foreign = 1 + sum(kind == "foreign" for kind, _, _ in sent)
        if done.get("foreign") != foreign:
            texts.append(
                ("C-18", f"DONE reports foreign {done.get('foreign')}, expected {foreign}")
            )
        where = f"{relay.node.label}: hop {relay.spec['hop']}: {encoding}"
        return problems + [Problem(clause, f"{where}: {text}") for clause, text in texts]

    return Scenario(f"wire-relayed[{encoding}]", ("C-37", "C-21", "C-18", "C-16"), check)


def _frame_breaches(
    due: list[tuple[str, int, bytes]], frames: list[bytes], encoding: str
) -> Iterator[tuple[str, str]]:
    """Yield (clause, text) for the first message that a relay did not send unchanged."""
    for number, ((kind, counter, expected), data) in enumerate(zip(due, frames, strict=True)):
        if same(data, expected, encoding):
            continue
        text = f"message {number} that the relay sent must be the {kind} arrival {counter}"
        if any(same(data, other, encoding) for _, _, other in due):
            yield "C-37", f"{text}, but it is another arrival; relays keep the order and lose none"
        elif not data:
            yield "C-37", f"{text}, but no message arrived"
        else:
            size = max(len(expected), len(data))
            at = next(i for i in range(size) if data[i : i + 1] != expected[i : i + 1])
            text += f", but it differs at offset {at}: found {data[at : at + 8]!r}, expected "
            yield "C-37", f"{text}{expected[at : at + 8]!r} ({len(expected)} bytes)"
        return


def _count_breaches(
    due: list[tuple[str, int, bytes]], done: dict[str, Any], records: list[Record]
) -> Iterator[tuple[str, str]]:
    """Yield (clause, text) for wrong counts in DONE, and for wrong records of a lone relay."""
    corrupt = sorted(counter for kind, counter, _ in due if kind == "corrupt")
    counts = {
        "sent": ("C-37", len(due)), "received": ("C-16", len(due)),
        "recorded": ("C-16", len(due)), "corrupt": ("C-21", len(corrupt)),
    }  # fmt: skip
    for name, (clause, expected) in counts.items():
        if done.get(name) != expected:
            yield clause, f"DONE reports {name} {done.get(name)}, expected {expected}"
    flagged = sorted(record.counter for record in records if record.flags & CORRUPT)
    if flagged != corrupt:
        yield "C-21", f"recorded as corrupt: {flagged}, expected {corrupt}"
    order = [r.counter for r in sorted(records, key=lambda record: record.begin_ns)]
    if order != [counter for _, counter, _ in due]:
        text = f"recorded the counters {order} in the order of begin_ns; the order of arrival is "
        yield "C-37", text + str([counter for _, counter, _ in due])
    wrong = [tuple(r) for r in records if not r.intended_ns <= r.begin_ns <= r.end_ns]
    if wrong:
        yield "C-37", f"the times must be arrival <= begin <= end: records {some(wrong)}"


def failed_sends(bench: Bench) -> list[Problem]:
    """Check a relay whose successor closes: it records its failed sends, or ends with 4."""
    encodings = [name for name in WIRE_ENCODINGS if f"encoding.{name}" in bench.cell.capabilities]
    with lone_relay(bench, payload__encoding=encodings[0]) as relay:
        for counter in range(SENT_BEFORE + SENT_AFTER):
            if counter == SENT_BEFORE:
                relay.far.close()
            seq = SENDER_NODE << 48 | counter
            with contextlib.suppress(OSError):  # the relay may have ended
                relay.send(encoded(seq, time.monotonic_ns(), SIZE, SEED, encodings[0]))
            if counter < SENT_BEFORE and relay.far.receive(HANG_S) is None:
                raise Broken("C-37", f"{relay.node.label}: did not send message {counter}")
            time.sleep(0.02)
        if relay.node.wait_exit(0.1) is not None:
            return refusal(relay.node, 4, "C-04", "its successor closed")[0]
        done, records, problems = stop(relay.node)
    failed = [record for record in records if record.flags & FAILED]
    texts = []
    if not failed:
        text = f"the successor closed before {SENT_AFTER} messages, but no record has the flag "
        texts.append(f"{text}failed")
    if any(record.end_ns != UNKNOWN_NS for record in failed):
        texts.append("end_ns of a failed send must be unknown")
    if done.get("sent") != len(records) - len(failed):
        text = f"DONE reports sent {done.get('sent')}, but {len(records) - len(failed)} records "
        texts.append(text + "do not have the flag failed")
    if len(records) != SENT_BEFORE + SENT_AFTER:
        texts.append(f"{len(records)} records of {SENT_BEFORE + SENT_AFTER} arrivals")
    where = f"{relay.node.label}: hop {relay.spec['hop']}"
    return problems + [Problem("C-37", f"{where}: {text}") for text in texts]


def scenarios(patterns: list[str]) -> list[Scenario]:
    if ROLES.name not in patterns:
        return []
    return [
        Scenario("bad-hop", ("C-37", "C-02"), bad_hop),
        *(chain(relays) for relays in (0, 1, 3)),
        Scenario("strangers[pipeline]", ("C-37", "C-18", "C-21"), strangers),
        Scenario("missing-neighbour", ("C-37", "C-04"), missing_neighbour),
        Scenario("planted-loss[pipeline]", ("C-37",), planted_loss),
        *(relayed_bytes(encoding) for encoding in WIRE_ENCODINGS),
        Scenario("failed-sends[pipeline]", ("C-37",), failed_sends),
    ]
