"""Scenarios for the window: schedules, lateness, timeouts, STOP, drain and overflow.

They examine C-10 to C-17 and C-26 to C-30.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from .audit import Expect, some
from .audit_peers import audit, closing_problems, node_runs
from .cell import Problem, Skipped
from .group import HANG_S, Group, Member, pair, pause, resume
from .roles import CALL, MESSAGE, PATTERNS, RESULT, SENDING_ROLES, calling
from .samples import TIMEOUT, UNKNOWN_NS, Record
from .scenario import ALWAYS, Bench, Scenario, Stopwatch, sleep_until
from .spec import MILLISECOND_NS, closed_loop, gentle, open_loop


def plain(pattern: str) -> Scenario:
    """Check an open loop with phase and warm-up."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open")
        changes = gentle(pattern, 40, 8) | {
            "phase_ns": 3_000_001,
            "warmup_ns": 100 * MILLISECOND_NS,
        }
        return bench.whole_run(pattern, changes)

    return Scenario(
        f"open[{pattern}]", ("C-10", "C-12", *PATTERNS[pattern].clauses, *ALWAYS), check
    )


def closed(pattern: str) -> Scenario:
    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.closed")
        changes = closed_loop(50) | {"warmup_ns": 10 * MILLISECOND_NS}
        problems = bench.whole_run(pattern, changes)
        # A warm-up that is longer than the closed loop must flag every record.
        return problems + bench.whole_run(pattern, closed_loop(5) | {"warmup_ns": 10**11})

    return Scenario(f"closed[{pattern}]", ("C-11", *PATTERNS[pattern].clauses, *ALWAYS), check)


def beyond(pattern: str) -> Scenario:
    """Check a closed loop that continues after its count, with and without STOP."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.closed")
        changes = closed_loop(20) | {"count_beyond": 5}
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            group.run()
            problems = audit(group) + closing_problems(group)
            sender = group.senders[0]
            if sender.fields("SENT").get("sent") != 25:
                sent = sender.fields("SENT").get("sent")
                text = f"{sender.label}: expected 25 calls without STOP, found {sent}"
                problems.append(Problem("C-11", text))
        return problems or _stopped_beyond(bench, pattern)

    clauses = ("C-11", "C-15", *PATTERNS[pattern].clauses, *ALWAYS)
    return Scenario(f"beyond[{pattern}]", clauses, check)


def _stopped_beyond(bench: Bench, pattern: str) -> list[Problem]:
    """Return the breaches of a client that receives STOP while its server is paused.

    The call that is open at STOP must end normally.
    """
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
        # A pause of a few periods leaves slots that a native timer may skip.
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
    """Check two senders with one receiver: each `seq` contains its sender's node."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open")
        roles = PATTERNS[pattern]
        changes = gentle(pattern, 25, 12)
        members = [
            Member(bench.cell, roles.sender, {**changes, "phase_ns": i * 1_000_003}) for i in (0, 1)
        ]
        members.append(Member(bench.cell, roles.receiver, changes))
        return bench.whole_run(pattern, members=members)

    return Scenario(f"two-senders[{pattern}]", ("C-17", *ALWAYS), check)


def late(pattern: str) -> Scenario:
    """Check that a sender returns to its schedule after a pause of 300 ms."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open", "pacing.kit")
        watch = Stopwatch()

        def hold(group: Group) -> None:
            _hold(group, group.senders[0], watch, 150, 300)

        # Calls take longer than messages, so a longer period leaves time to catch up.
        window = (
            gentle(pattern, 90, 10) if PATTERNS[pattern].is_one_way else gentle(pattern, 60, 20)
        )
        changes = window | bench.cell.prompt
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            group.run(hold)
            problems = audit(group, Expect(loss=_drops(group))) + closing_problems(group)
            run = next(run for run in node_runs(group) if run.sends)
            attempts = sorted(run.of_kind(MESSAGE, CALL, RESULT))
            return problems + [run.problem(c, text) for c, text in _late_breaches(attempts, watch)]

    return Scenario(f"late[{pattern}]", ("C-10", *ALWAYS), check)


def _drops(group: Group) -> bool:
    """Return whether the middleware declares that it drops messages under overload.

    If so, the burst after the pause may cause losses.
    """
    overloads = [node.fields("READY")["guarantee"]["overload"] for node in group.nodes]
    return any(overload.startswith("drop") for overload in overloads)


def _hold(group: Group, node: Any, watch: Stopwatch, after_ms: int, for_ms: int) -> None:
    """Pause `node` for `for_ms`, beginning `after_ms` after the start, and store the times."""
    sleep_until(group.start_ns + after_ms * MILLISECOND_NS)
    pause(node)
    watch.pause_ns = time.monotonic_ns()
    time.sleep(for_ms / 1000)
    watch.resume_ns = time.monotonic_ns()
    resume(node)


def _late_breaches(attempts: list[Record], watch: Stopwatch) -> list[tuple[str, str]]:
    """Return (clause, text) for each breach of a sender that was paused."""
    breaches = []
    settle_ns = 30 * MILLISECOND_NS
    pause_ns = range(watch.pause_ns + settle_ns, watch.resume_ns)
    during_pause = [tuple(record) for record in attempts if record.begin_ns in pause_ns]
    if during_pause:
        text = f"messages began during the pause from {pause_ns.start} to {pause_ns.stop}"
        breaches.append(("C-27", f"{text}: {some(during_pause)}"))
    due_in_pause = [record for record in attempts if record.intended_ns in pause_ns]
    if not due_in_pause:
        breaches.append(("C-10", "no message has an intended time during the pause"))
    tail = [record.begin_ns - record.intended_ns for record in attempts[-10:]]
    if tail and min(tail) > (watch.resume_ns - watch.pause_ns) // 2:
        text = f"after the pause the sender stays {min(tail)} ns late; it must send late messages "
        text += "immediately"
        breaches.append(("C-10", text))
    return breaches


def overrun(pattern: str) -> Scenario:
    """Check a sender that is paused beyond the end of its window: it must not send the rest."""

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
            # The pause may have begun between the due time and the time stamp of one message.
            if len(after) > 1:
                text = f"sent messages after start + duration + overrun: {some(after)}"
                problems.append(run.problem("C-10", text))
            return problems

    return Scenario(f"overrun[{pattern}]", ("C-10", *ALWAYS), check)


def early_stop(pattern: str) -> Scenario:
    """Check STOP in the middle of a long schedule."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open")
        with bench.group(
            pattern, pair(bench.cell, bench.cell, pattern, gentle(pattern, 6000, 10))
        ) as group:
            group.start()
            group.go()
            sleep_until(group.start_ns + 200 * MILLISECOND_NS)
            group.finish()
            # A call that was open at STOP may time out.
            problems = audit(
                group, Expect(complete=False, timeouts=not PATTERNS[pattern].is_one_way)
            )
            for run in node_runs(group):
                if not run.records and not run.unrecorded:
                    problems.append(run.problem("C-15", "no record from before STOP"))
            return problems

    return Scenario(f"early-stop[{pattern}]", ("C-15", *ALWAYS), check)


def linger(pattern: str) -> Scenario:
    """Check a receiver whose sender continues: it must drain for `linger_ms` and then end.

    In a chain, this receiver is the first relay.
    """

    def check(bench: Bench) -> list[Problem]:
        changes = open_loop(1000, 10) | {"quiet_ms": 400, "linger_ms": 800}
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            group.start()
            group.go()
            sleep_until(group.start_ns + 200 * MILLISECOND_NS)
            receiver = group.receivers[0]
            group.stop([receiver])
            group.wait_done([receiver])
            problems = closing_problems(group)
            arrivals = [record.arrival_ns for record in group.samples(receiver).records]
            texts = _linger_breaches(arrivals, group.stop_ns[receiver])
            return problems + [Problem("C-15", f"{receiver.label}: {text}") for text in texts]

    return Scenario(f"linger[{pattern}]", ("C-15",), check)


def _linger_breaches(arrivals: list[int], stop_ns: int) -> Iterator[str]:
    """Yield a text for each breach of a receiver with linger_ms = 800 whose sender continued."""
    if not any(arrival_ns > stop_ns + 400 * MILLISECOND_NS for arrival_ns in arrivals):
        yield (
            "messages arrived for linger_ms = 800 after STOP, but the node recorded none more than "
            "400 ms after STOP"
        )
    # A margin for a loaded machine; a node that ignores linger_ms continues for ten seconds.
    latest_ns = stop_ns + (800 + 5_000) * MILLISECOND_NS
    if any(arrival_ns > latest_ns for arrival_ns in arrivals):
        yield "messages recorded 5 s after the end of linger_ms = 800"


def drain(pattern: str) -> Scenario:
    """Check that messages in transit at STOP arrive: a paused receiver resumes with a queue.

    In a chain, this receiver is the first relay, and it must send its queue to the next node.
    """

    def check(bench: Bench) -> list[Problem]:
        changes = open_loop(8, 10)
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            group.start()
            receiver, *others = group.receivers
            group.go()
            sleep_until(group.start_ns - 20 * MILLISECOND_NS)
            pause(receiver)
            group.wait_sent()
            group.stop(group.senders)
            group.stop([receiver])
            resume(receiver)
            group.wait_done([receiver, *group.senders])
            for node in others:
                group.stop([node])
                group.wait_done([node])
            return audit(group)

    return Scenario(f"drain[{pattern}]", ("C-15", *ALWAYS), check)


def timeouts(pattern: str, outstanding_max: int) -> Scenario:
    """Check calls to a server that is paused for longer than their timeout."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open")
        if outstanding_max > 1 and PATTERNS[pattern].is_of_calls:
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
            texts = _timeout_breaches(calls, outstanding_max, watch.resume_ns)
            return problems + [run.problem("C-12", text) for text in texts]

    return Scenario(f"timeouts[{pattern} {outstanding_max}]", ("C-12", *ALWAYS), check)


def overlap(pattern: str) -> Scenario:
    """Check that `outstanding_max` calls are open while the server is paused; none is lost."""

    def check(bench: Bench) -> list[Problem]:
        bench.need("loop.open", "async_client")
        watch = Stopwatch()
        changes = open_loop(30, 20) | {"outstanding_max": 3}
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            group.run(lambda group: _hold(group, group.receivers[0], watch, 150, 250))
            problems = audit(group) + closing_problems(group)
            run = next(run for run in node_runs(group) if run.sends)
            timeout_ns = run.spec["timeout_ns"]
            open_max = _most_open(run.of_kind(CALL), timeout_ns, MILLISECOND_NS, watch.resume_ns)
            if open_max < 3:
                text = "the server was paused for 250 ms with a call due every 20 ms, but at most "
                text += f"{open_max} of outstanding_max = 3 calls were open at once"
                problems.append(run.problem("C-33", text))
            return problems

    return Scenario(f"overlap[{pattern}]", ("C-33", "C-12", *ALWAYS), check)


def _most_open(calls: list[Record], timeout_ns: int, overlap_ns: int, resume_ns: int) -> int:
    """Return the maximum number of calls open at once; the server resumed at `resume_ns`.

    Two calls overlap if both are open for at least `overlap_ns`. A call that timed out has no end:
    it is open for `timeout_ns`, or until the server resumes. A server that resumes may end calls
    early: gRPC's C++ library compares deadlines with a clock value from before the pause.
    """
    edges = []
    for record in calls:
        end_ns = record.end_ns
        if end_ns == UNKNOWN_NS:
            end_ns = record.begin_ns + timeout_ns
            end_ns = resume_ns if record.begin_ns < resume_ns < end_ns else end_ns
        edges += [(record.begin_ns, 1), (max(record.begin_ns + 1, end_ns - overlap_ns), -1)]
    open_now = open_max = 0
    for _, step in sorted(edges):
        open_now += step
        open_max = max(open_max, open_now)
    return open_max


def _timeout_breaches(calls: list[Record], outstanding_max: int, resume_ns: int) -> list[str]:
    """Return a text for each breach of C-12 by a client whose server was paused."""
    timeout_ns, slack_ns = 100 * MILLISECOND_NS, 40 * MILLISECOND_NS
    breaches = []
    if not any(record.flags & TIMEOUT for record in calls):
        text = "the server was paused for 450 ms, but no call with a timeout of 100 ms has the flag"
        breaches.append(text)
    long = [
        tuple(record)
        for record in calls
        if record.end_ns != UNKNOWN_NS and record.end_ns - record.begin_ns > timeout_ns + slack_ns
    ]
    if long:
        breaches.append(f"calls longer than timeout_ns do not have the flag: {some(long)}")
    # A short overlap does not count, because one call may end just after the next call began.
    open_max = _most_open(calls, timeout_ns, slack_ns // 4, resume_ns)
    if open_max > outstanding_max:
        text = f"{open_max} calls were open at once; outstanding_max is {outstanding_max}"
        breaches.append(text)
    return breaches


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
                    continue  # its clients provide the counts (C-34)
                total = sent if role in SENDING_ROLES else done.get("received", 0)
                if recorded > 10:
                    text = f"{node.label}: recorded {recorded} records with room for 10"
                    problems.append(Problem("C-26", text))
                if pattern != "action" and recorded + lost != total:
                    text = f"{node.label}: recorded {recorded} + overflow {lost}, expected {total}"
                    problems.append(Problem("C-26", text))
                if pattern == "action" and recorded + lost < total:
                    text = (
                        f"{node.label}: recorded {recorded} + overflow {lost}, expected at least "
                    )
                    text += f"{total} (one per goal)"
                    problems.append(Problem("C-26", text))
        return problems

    return Scenario(f"overflow[{pattern}]", ("C-26", "C-16"), check)


def unrecorded(pattern: str) -> Scenario:
    """Check that a server without records answers all calls; the audit checks its DONE."""

    def check(bench: Bench) -> list[Problem]:
        if "server_unrecorded" not in bench.cell.capabilities:
            raise Skipped("the cell's server records its calls")
        return bench.whole_run(pattern)

    return Scenario(f"unrecorded[{pattern}]", ("C-34", *ALWAYS), check)


def planted_loss(bench: Bench) -> list[Problem]:
    """Check that exactly the messages that the middleware drops on request are lost."""
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
            text = f"the sender dropped {sorted(dropped)}, but the receiver lacks {sorted(lost)}"
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
                text = f"{node.label}: {name} is {done.get(name)}, expected 45 (5 duplicates)"
                problems.append(Problem("C-16", text))
        return problems


def scenarios(patterns: list[str]) -> list[Scenario]:
    all_scenarios = [plain(pattern) for pattern in patterns]
    all_scenarios += [closed(pattern) for pattern in calling(patterns)]
    all_scenarios += [beyond(pattern) for pattern in calling(patterns)]
    all_scenarios += [native(pattern) for pattern in patterns]
    # Pingpong uses the service's code (C-28), and the source of a chain the publisher's (C-37).
    own_records = [pattern for pattern in patterns if pattern != "pingpong"]
    main_patterns = [pattern for pattern in own_records if not PATTERNS[pattern].is_chain]
    all_scenarios += [many_senders(pattern) for pattern in main_patterns]
    all_scenarios += [late(pattern) for pattern in main_patterns]
    all_scenarios += [overrun(pattern) for pattern in main_patterns]
    all_scenarios += [early_stop(pattern) for pattern in own_records]
    for outstanding_max in (1, 3):
        all_scenarios += [
            timeouts(pattern, outstanding_max)
            for pattern in calling(patterns)
            if pattern != "pingpong"
        ]
    all_scenarios += [overlap(pattern) for pattern in patterns if PATTERNS[pattern].is_of_calls]
    all_scenarios += [overflow(pattern) for pattern in own_records]
    all_scenarios += [unrecorded(pattern) for pattern in patterns if pattern == "service"]
    for pattern in patterns:
        if PATTERNS[pattern].is_one_way:
            all_scenarios += [linger(pattern), drain(pattern)]
    if "topic" in patterns:
        all_scenarios += [
            Scenario("fan-out", ("C-29", *ALWAYS), fan_out),
            Scenario("planted-loss", ("C-29",), planted_loss),
            Scenario("planted-duplicates", ("C-16",), planted_duplicates),
        ]
    return all_scenarios
