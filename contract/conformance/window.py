"""The window: schedules, lateness, timeouts, STOP, drain, overflow (C-10 to C-17, C-26 to C-30)."""

from __future__ import annotations

import time
from typing import Any

from .audit import Expect, some
from .audit_peers import audit, closing_problems, node_runs
from .cell import PATTERN_ROLES, SENDING_ROLES, Problem, Skipped
from .group import HANG_S, Group, Member, pair, pause, resume
from .samples import CALL, MESSAGE, RESULT, TIMEOUT, UNKNOWN_NS, Record
from .scenario import ALWAYS, Bench, Scenario, Stopwatch, sleep_until
from .spec import MILLISECOND_NS, closed_loop, gentle, open_loop

OWN = {"topic": ("C-29",), "service": (), "pingpong": ("C-28",), "action": ("C-30",)}


def plain(pattern: str) -> Scenario:
    """An open loop with phase and warm-up."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open")
        changes = gentle(pattern, 40, 8) | {
            "phase_ns": 3_000_001,
            "warmup_ns": 100 * MILLISECOND_NS,
        }
        return bench.whole_run(pattern, changes)

    return Scenario(f"open[{pattern}]", ("C-10", "C-12", *OWN[pattern], *ALWAYS), check)


def closed(pattern: str) -> Scenario:
    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.closed")
        changes = closed_loop(50) | {"warmup_ns": 10 * MILLISECOND_NS}
        problems = bench.whole_run(pattern, changes)
        # Nothing in a closed loop is due later: a warm-up longer than it flags everything.
        return problems + bench.whole_run(pattern, closed_loop(5) | {"warmup_ns": 10**11})

    return Scenario(f"closed[{pattern}]", ("C-11", *OWN[pattern], *ALWAYS), check)


def beyond(pattern: str) -> Scenario:
    """A closed loop that goes on after its count: to its own end, and until STOP."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.closed")
        changes = closed_loop(20) | {"count_beyond": 5}
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            group.run()
            problems = audit(group) + closing_problems(group)
            sender = group.senders[0]
            if sender.fields("SENT").get("sent") != 25:
                found = sender.fields("SENT").get("sent")
                text = f"{sender.label}: without STOP 25 calls must be made; {found} were"
                problems.append(Problem("C-11", text))
        return problems or _stopped_beyond(bench, pattern)

    return Scenario(f"beyond[{pattern}]", ("C-11", "C-15", *OWN[pattern], *ALWAYS), check)


def _stopped_beyond(bench: Bench, pattern: str) -> list[Problem]:
    """STOP comes while the server is held: the call that is open then ends as any other."""
    changes = closed_loop(20) | {"count_beyond": 150_000, "record.capacity": 200_000}
    with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
        group.start()
        group.go()
        sender, receiver = group.senders[0], group.receivers[0]
        group.expect(sender, "COUNTED", "C-11", HANG_S)
        pause(receiver)
        time.sleep(0.05)
        group.stop([sender])
        time.sleep(0.1)
        resume(receiver)
        group.wait_done([sender])
        group.stop([receiver])
        group.wait_done([receiver])
        return audit(group)


def native(pattern: str) -> Scenario:
    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open", "pacing.native")
        changes = open_loop(25, 20) | {"pacing": "native"}
        watch = Stopwatch()
        # Held for a few periods, so that there are slots to pass over.
        return bench.whole_run(
            pattern, changes, during=lambda group: _hold(group, group.senders[0], watch, 150, 110)
        )

    return Scenario(f"native[{pattern}]", ("C-10", *ALWAYS), check)


def fan_out(bench: Bench) -> list[Problem]:
    changes = open_loop(30, 10)
    members = [Member(bench.cell, "publisher", changes)]
    members += [Member(bench.cell, "subscriber", changes) for _ in range(3)]
    return bench.whole_run("topic", members=members)


def many_senders(pattern: str) -> Scenario:
    """Two senders and one receiver: each seq keeps its sender's node."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open")
        sender, receiver = PATTERN_ROLES[pattern]
        changes = gentle(pattern, 25, 12)
        members = [
            Member(bench.cell, sender, {**changes, "phase_ns": i * 1_000_003}) for i in (0, 1)
        ]
        return bench.whole_run(pattern, members=[*members, Member(bench.cell, receiver, changes)])

    return Scenario(f"two-senders[{pattern}]", ("C-17", *ALWAYS), check)


def late(pattern: str) -> Scenario:
    """The sender is held for 300 ms of its window: it is late, and stays on its schedule."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open", "pacing.kit")
        watch = Stopwatch()

        def hold(group: Group) -> None:
            _hold(group, group.senders[0], watch, 150, 300)

        # A call takes longer than a message, and must leave time to catch up.
        window = gentle(pattern, 90, 10) if pattern == "topic" else gentle(pattern, 60, 20)
        changes = window | bench.cell.prompt
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            group.run(hold)
            problems = audit(group, Expect(loss=_drops(group))) + closing_problems(group)
            run = next(run for run in node_runs(group) if run.sends)
            attempts = sorted(run.of_kind(MESSAGE, CALL, RESULT))
            return problems + [run.problem(c, text) for c, text in _late_breaches(attempts, watch)]

    return Scenario(f"late[{pattern}]", ("C-10", *ALWAYS), check)


def _drops(group: Group) -> bool:
    """Whether the middleware says that it drops: the burst after the hold may overflow it then."""
    overloads = [node.fields("READY")["guarantee"]["overload"] for node in group.nodes]
    return any(overload.startswith("drop") for overload in overloads)


def _hold(group: Group, node: Any, watch: Stopwatch, after_ms: int, for_ms: int) -> None:
    sleep_until(group.start_ns + after_ms * MILLISECOND_NS)
    pause(node)
    watch.pause_ns = time.monotonic_ns()
    time.sleep(for_ms / 1000)
    watch.resume_ns = time.monotonic_ns()
    resume(node)


def _late_breaches(attempts: list[Record], watch: Stopwatch) -> list[tuple[str, str]]:
    found = []
    settle_ns = 30 * MILLISECOND_NS
    held = range(watch.pause_ns + settle_ns, watch.resume_ns)
    inside = [tuple(record) for record in attempts if record.begin_ns in held]
    if inside:
        text = f"held from {held.start} to {held.stop}, yet messages began then"
        found.append(("C-27", f"{text}: {some(inside)}"))
    due = [record for record in attempts if record.intended_ns in held]
    if not due:
        found.append(("C-10", "no message keeps an intended time of the time it was held"))
    tail = [record.begin_ns - record.intended_ns for record in attempts[-10:]]
    if tail and min(tail) > (watch.resume_ns - watch.pause_ns) // 2:
        text = f"after being held it stays {min(tail)} ns behind; late messages are sent at once"
        found.append(("C-10", text))
    return found


def overrun(pattern: str) -> Scenario:
    """The sender is held past the end of its window: what is left is not sent."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open", "pacing.kit")
        watch = Stopwatch()
        changes = open_loop(30, 10) | {"overrun_ns": 50 * MILLISECOND_NS}
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            group.run(lambda group: _hold(group, group.senders[0], watch, 120, 500))
            problems = audit(group, Expect(complete=False))
            run = next(run for run in node_runs(group) if run.sends)
            last_ns = group.start_ns + (300 + 50) * MILLISECOND_NS
            after = [tuple(r) for r in run.of_kind(MESSAGE, CALL, RESULT) if r.begin_ns > last_ns]
            # One may have been between its due time and its stamp when it was held.
            if len(after) > 1:
                text = f"sent after start + duration + overrun: {some(after)}"
                problems.append(run.problem("C-10", text))
            return problems

    return Scenario(f"overrun[{pattern}]", ("C-10", *ALWAYS), check)


def broken_off(pattern: str) -> Scenario:
    """STOP in the middle of a long schedule."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open")
        with bench.group(
            pattern, pair(bench.cell, bench.cell, pattern, gentle(pattern, 6000, 10))
        ) as group:
            group.start()
            group.go()
            sleep_until(group.start_ns + 200 * MILLISECOND_NS)
            group.finish()
            # A call that was open when STOP came has no reply in time.
            problems = audit(group, Expect(complete=False, timeouts=pattern != "topic"))
            for run in node_runs(group):
                if not run.records and not run.unrecorded:
                    problems.append(run.problem("C-15", "no record of the time before STOP"))
            return problems

    return Scenario(f"broken-off[{pattern}]", ("C-15", *ALWAYS), check)


def linger(bench: Bench) -> list[Problem]:
    """The publisher goes on; the subscriber must drain for linger_ms and then end."""
    changes = open_loop(1000, 10) | {"quiet_ms": 400, "linger_ms": 800}
    with bench.group("topic", pair(bench.cell, bench.cell, "topic", changes)) as group:
        group.start()
        group.go()
        sleep_until(group.start_ns + 200 * MILLISECOND_NS)
        receiver = group.receivers[0]
        group.stop([receiver])
        group.wait_done([receiver])
        problems = closing_problems(group)
        ends = [record.end_ns for record in group.samples(receiver).records]
        stop_ns = group.stop_ns[receiver]
        after = [end_ns for end_ns in ends if end_ns > stop_ns + 400 * MILLISECOND_NS]
        if not after:
            text = "messages came for all of linger_ms = 800 after STOP, but none is recorded "
            problems.append(Problem("C-15", f"{receiver.label}: {text}later than 400 ms after it"))
        # Slack for a machine of any load; a node without the bound goes on for ten seconds.
        latest_ns = stop_ns + (800 + 5_000) * MILLISECOND_NS
        if any(end_ns > latest_ns for end_ns in ends):
            text = f"{receiver.label}: messages recorded 5 s after linger_ms = 800 was over"
            problems.append(Problem("C-15", text))
        return problems


def drain(bench: Bench) -> list[Problem]:
    """What is still on its way at STOP arrives: the receiver was held and finds a queue."""
    changes = open_loop(8, 10)
    with bench.group("topic", pair(bench.cell, bench.cell, "topic", changes)) as group:
        group.start()
        receiver = group.receivers[0]
        group.go()
        sleep_until(group.start_ns - 20 * MILLISECOND_NS)
        pause(receiver)
        group.wait_sent()
        group.stop(group.senders)
        group.stop([receiver])
        resume(receiver)
        group.wait_done(group.nodes)
        return audit(group)


def timeouts(pattern: str, outstanding_max: int) -> Scenario:
    """The server is held for longer than a call may last."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open")
        if outstanding_max > 1 and pattern != "action":
            bench.need("async_client")
        watch = Stopwatch()
        changes = open_loop(40, 20) | {
            "timeout_ns": 100 * MILLISECOND_NS, "outstanding_max": outstanding_max,
        }  # fmt: skip
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            group.run(lambda group: _hold(group, group.receivers[0], watch, 100, 450))
            problems = audit(group, Expect(timeouts=True))
            run = next(run for run in node_runs(group) if run.sends)
            calls = sorted(run.of_kind(CALL, RESULT), key=lambda record: record.begin_ns)
            texts = _timeout_breaches(calls, outstanding_max)
            return problems + [run.problem("C-12", text) for text in texts]

    return Scenario(f"timeouts[{pattern} {outstanding_max}]", ("C-12", *ALWAYS), check)


def overlap(pattern: str) -> Scenario:
    """The server is held while calls fall due: as many are open as may be, and none is lost."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open", "async_client")
        watch = Stopwatch()
        changes = open_loop(30, 20) | {"outstanding_max": 3}
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            group.run(lambda group: _hold(group, group.receivers[0], watch, 150, 250))
            problems = audit(group) + closing_problems(group)
            run = next(run for run in node_runs(group) if run.sends)
            most = _most_open(run.of_kind(CALL), run.spec["timeout_ns"], MILLISECOND_NS)
            if most < 3:
                text = "the server was held for 250 ms and a call is due every 20 ms, but at most "
                text += f"{most} of outstanding_max = 3 calls were open at once"
                problems.append(run.problem("C-33", text))
            return problems

    return Scenario(f"overlap[{pattern}]", ("C-33", "C-12", *ALWAYS), check)


def _most_open(calls: list[Record], timeout_ns: int, overlap_ns: int) -> int:
    """Calls open at once; less than `overlap_ns` together is no overlap."""
    edges = []
    for record in calls:
        end_ns = record.end_ns if record.end_ns != UNKNOWN_NS else record.begin_ns + timeout_ns
        edges += [(record.begin_ns, 1), (max(record.begin_ns + 1, end_ns - overlap_ns), -1)]
    open_now = open_most = 0
    for _, step in sorted(edges):
        open_now += step
        open_most = max(open_most, open_now)
    return open_most


def _timeout_breaches(calls: list[Record], outstanding_max: int) -> list[str]:
    timeout_ns, slack_ns = 100 * MILLISECOND_NS, 40 * MILLISECOND_NS
    found = []
    if not any(record.flags & TIMEOUT for record in calls):
        found.append("the server was held for 450 ms, yet no call of 100 ms is flagged timeout")
    long = [
        tuple(record)
        for record in calls
        if record.end_ns != UNKNOWN_NS and record.end_ns - record.begin_ns > timeout_ns + slack_ns
    ]
    if long:
        found.append(f"calls that lasted longer than timeout_ns are not flagged: {some(long)}")
    # A little less than it was open for, so that a hand-over is no overlap.
    open_most = _most_open(calls, timeout_ns, slack_ns // 4)
    if open_most > outstanding_max:
        text = f"{open_most} calls were open at once; outstanding_max is {outstanding_max}"
        found.append(text)
    return found


def overflow(pattern: str) -> Scenario:
    def check(bench: Bench) -> list[Problem]:
        changes = {"record.capacity": 10}
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            group.run()
            problems = audit(group, Expect(overflow=True))
            sent = group.senders[0].fields("DONE").get("sent", 0)
            for node in group.nodes:
                done = node.fields("DONE")
                recorded, lost = done.get("recorded", 0), done.get("overflow", 0)
                role = node.spec["role"]
                if role not in SENDING_ROLES and done.get("received") is None:
                    continue  # its clients' records count (C-34)
                total = sent if role in SENDING_ROLES else done.get("received", 0)
                if recorded > 10:
                    text = f"{node.label}: recorded {recorded} with room for 10"
                    problems.append(Problem("C-26", text))
                if pattern != "action" and recorded + lost != total:
                    text = f"{node.label}: recorded {recorded} + overflow {lost} must be {total}"
                    problems.append(Problem("C-26", text))
                if pattern == "action" and recorded + lost < total:
                    text = f"{node.label}: recorded {recorded} + overflow {lost} of {total} goals"
                    problems.append(Problem("C-26", text))
        return problems

    return Scenario(f"overflow[{pattern}]", ("C-26", "C-16"), check)


def unrecorded(pattern: str) -> Scenario:
    """A server that keeps no records answers as any other; the audit looks at its DONE."""

    def check(bench: Bench) -> list[Problem]:
        if "server_unrecorded" not in bench.cell.capabilities:
            raise Skipped("its server records what it answers")
        return bench.whole_run(pattern)

    return Scenario(f"unrecorded[{pattern}]", ("C-34", *ALWAYS), check)


def planted_loss(bench: Bench) -> list[Problem]:
    """Messages that the middleware is told to leave out are lost, exactly those."""
    if "drop_counters" not in bench.cell.settings:
        raise Skipped("the middleware has no setting drop_counters")
    dropped = {0, 3, 7, 39}
    listed = ",".join(str(counter) for counter in sorted(dropped))
    members = pair(bench.cell, bench.cell, "topic", open_loop(40, 5))
    members[0].changes["settings.drop_counters"] = listed
    with bench.group("topic", members) as group:
        group.run()
        problems = audit(group, Expect(loss=True))
        sender, receiver = node_runs(group)
        if receiver.sends:
            sender, receiver = receiver, sender
        sent = {record.counter for record in sender.records}
        lost = sent - {record.counter for record in receiver.records}
        if lost != dropped:
            text = f"left out {sorted(dropped)}, but lost are {sorted(lost)}"
            problems.append(receiver.problem("C-29", text))
        return problems


def planted_duplicates(bench: Bench) -> list[Problem]:
    if "duplicate_every" not in bench.cell.settings:
        raise Skipped("the middleware has no setting duplicate_every")
    members = pair(bench.cell, bench.cell, "topic", open_loop(40, 5))
    members[0].changes["settings.duplicate_every"] = 8
    with bench.group("topic", members) as group:
        group.run()
        problems = audit(group, Expect(duplicates=True))
        node = group.receivers[0]
        done = node.fields("DONE")
        for name in ("received", "recorded"):
            if done.get(name) != 45:
                text = f"{node.label}: {name} {done.get(name)}; 40 messages and 5 again are 45"
                problems.append(Problem("C-16", text))
        return problems


def scenarios(patterns: list[str]) -> list[Scenario]:
    calling = [pattern for pattern in patterns if pattern != "topic"]
    found = [plain(pattern) for pattern in patterns]
    found += [closed(pattern) for pattern in calling]
    found += [beyond(pattern) for pattern in calling]
    found += [native(pattern) for pattern in patterns]
    found += [many_senders(pattern) for pattern in patterns if pattern != "pingpong"]
    held = [pattern for pattern in patterns if pattern in ("topic", "service", "action")]
    found += [late(pattern) for pattern in held]
    found += [overrun(pattern) for pattern in held]
    found += [broken_off(pattern) for pattern in held]
    for most in (1, 3):
        found += [timeouts(pattern, most) for pattern in calling if pattern != "pingpong"]
    found += [overlap(pattern) for pattern in calling if pattern != "action"]
    found += [overflow(pattern) for pattern in held]
    found += [unrecorded(pattern) for pattern in patterns if pattern == "service"]
    if "topic" in patterns:
        found += [
            Scenario("fan-out", ("C-29", *ALWAYS), fan_out),
            Scenario("linger", ("C-15",), linger),
            Scenario("drain", ("C-15", *ALWAYS), drain),
            Scenario("planted-loss", ("C-29",), planted_loss),
            Scenario("planted-duplicates", ("C-16",), planted_duplicates),
        ]
    return found
