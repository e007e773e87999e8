"""Scenarios for end of input, signals, the death of a peer, and the descriptor of lines."""

from __future__ import annotations

import signal
import time

from .cell import Problem
from .group import AT_ONCE_S, HANG_S, Group, pair, pause
from .process import NodeProcess
from .roles import PATTERNS, SENDING_ROLES, calling
from .scenario import Bench, Scenario, sleep_until
from .spec import MILLISECOND_NS
from .usage import dead_endpoints

CHILD_NS = 3_000 * MILLISECOND_NS
GO_SOON_NS = 50 * MILLISECOND_NS
GO_TRIES = 4
ENDLESS = {"duration_ns": 60_000 * MILLISECOND_NS}


def _ends(node: NodeProcess, code: int | None, clause: str, phase: str) -> list[Problem]:
    """Return a breach of `clause` if the node continues or ends with a code other than `code`."""
    exit_code = node.wait_exit(AT_ONCE_S)
    if exit_code is None:
        return [Problem(clause, f"{node.label}: {phase}: the process does not end")]
    if code is not None and exit_code != code:
        return [Problem(clause, f"{node.label}: {phase}: exit code {exit_code}, expected {code}")]
    return []


def end_of_input(pattern: str) -> Scenario:
    """Check the end of input while waiting for peers, when READY, in the window and after STOP."""

    def check(bench: Bench) -> list[Problem]:
        problems = []
        endpoints = dead_endpoints(bench, pattern)
        lone_nodes = []
        for role in PATTERNS[pattern].roles:
            spec = bench.lone_spec(pattern, role)
            spec["peers.endpoints"] = endpoints
            lone_nodes.append(bench.single(spec))
        for node in lone_nodes:
            node.close_input()
        for node in lone_nodes:
            # A node may fail at the dead endpoint (4) before it reads the end of input.
            exit_code = node.wait_exit(AT_ONCE_S)
            node.kill()
            if exit_code not in (4, 5):
                text = f"{node.label}: end of input before READY: exit code {exit_code}, expected 5"
                problems.append(Problem("C-09", text))
        changes = {**ENDLESS, "linger_ms": 60_000, "quiet_ms": 60_000} | _long_window(bench)
        for phase in ("READY", "the window", "the drain"):
            with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
                group.start()
                if phase != "READY":
                    group.go()
                    sleep_until(group.start_ns + 60 * MILLISECOND_NS)
                if phase == "the drain":
                    group.stop(group.receivers)
                    time.sleep(0.05)
                nodes = group.receivers if phase == "the drain" else group.nodes
                for node in nodes:
                    node.close_input()
                for node in nodes:
                    problems += _ends(node, 5, "C-09", f"end of input in {phase}")
        return problems

    return Scenario(f"end-of-input[{pattern}]", ("C-09",), check)


def _long_window(bench: Bench) -> dict[str, object]:
    """Return spec changes for a long closed loop where the cell has no open loop."""
    if "loop.open" in bench.cell.capabilities:
        return {}
    return {"duration_ns": 0, "count": 1_000_000}


def blocked(pattern: str) -> Scenario:
    """Check the end of input while a call is open to a server that does not answer."""

    def check(bench: Bench) -> list[Problem]:
        changes = {"timeout_ns": 60_000 * MILLISECOND_NS, **ENDLESS, **_long_window(bench)}
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
            group.start()
            pause(group.receivers[0])
            group.go()
            sleep_until(group.start_ns + 100 * MILLISECOND_NS)
            group.senders[0].close_input()
            return _ends(group.senders[0], 5, "C-09", "end of input while a call is open")

    return Scenario(f"blocked[{pattern}]", ("C-09",), check)


def terminated(bench: Bench) -> list[Problem]:
    """Check that SIGTERM in the window ends every node."""
    pattern = bench.cell.patterns[0]
    problems = []
    changes = {**ENDLESS, **_long_window(bench)}
    with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
        group.start()
        group.go()
        sleep_until(group.start_ns + 60 * MILLISECOND_NS)
        for node in group.nodes:
            node.signal(signal.SIGTERM)
        for node in group.nodes:
            problems += _ends(node, None, "C-09", "SIGTERM in the window")
    return problems


def peer_killed(pattern: str) -> Scenario:
    """Check that a node whose peer was killed ends with DONE at STOP, or with 4."""

    def check(bench: Bench) -> list[Problem]:
        problems = []
        changes = {"timeout_ns": 200 * MILLISECOND_NS, "overrun_ns": 500 * MILLISECOND_NS}
        if "loop.open" in bench.cell.capabilities:
            changes.update(duration_ns=500 * MILLISECOND_NS)
        for victim in PATTERNS[pattern].roles:
            with bench.group(pattern, pair(bench.cell, bench.cell, pattern, changes)) as group:
                group.start()
                group.go()
                sleep_until(group.start_ns + 150 * MILLISECOND_NS)
                group.node(victim).signal(signal.SIGKILL)
                problems += _survives(group, victim)
        return problems

    return Scenario(f"peer-killed[{pattern}]", ("C-12",), check)


def _survives(group: Group, victim: str) -> list[Problem]:
    """Return the breaches of the remaining nodes after the node in role `victim` was killed."""
    killed = group.node(victim)
    survivors = [node for node in (*group.senders, *group.receivers) if node is not killed]
    return [problem for node in survivors for problem in _survivor_ends(group, node, victim)]


def _survivor_ends(group: Group, survivor: NodeProcess, victim: str) -> list[Problem]:
    if survivor.spec["role"] in SENDING_ROLES:
        survivor.wait_line("SENT", group.window_s(survivor) + HANG_S)
    else:
        time.sleep(0.3)
    survivor.note_shared_memory()  # it may crash, and may have replaced files of the killed node
    survivor.write("STOP\n")
    code = survivor.wait_exit(survivor.spec["linger_ms"] / 1000 + HANG_S)
    cause = f"after SIGKILL of its {victim}"
    if code is None:
        return [Problem("C-12", f"{survivor.label}: {cause}, the node does not end at STOP")]
    if code not in (0, 4) or (code == 0 and survivor.line("DONE") is None):
        text = f"{survivor.label}: {cause}: exit code {code}, expected DONE and 0, or 4; "
        return [Problem("C-12", text + survivor.last_output())]
    return []


def lines_on_three(bench: Bench) -> list[Problem]:
    """Check that a node writes its lines to descriptor 3 and not to its log."""
    node = bench.single({})
    node.wait_exit(HANG_S)
    node.kill()
    log = (node.folder / "stderr").read_text(encoding="utf-8", errors="replace")
    error_lines = [line for line in log.splitlines() if line.startswith("ERROR {")]
    if node.line("ERROR") is not None and not error_lines:
        return []
    text = f"{node.label}: no ERROR line on descriptor 3 for an empty spec; {node.last_output()}"
    return [Problem("C-05", text)]


def children(pattern: str) -> Scenario:
    """Check that no child process has the descriptor of a node's lines once the node is READY."""

    def check(bench: Bench) -> list[Problem]:
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern)) as group:
            group.start()
            problems = []
            for node in group.nodes:
                end_ns = time.monotonic_ns() + CHILD_NS
                # A child has the descriptor until it has started its program or closed it.
                while (holders := node.others_with_lines()) and time.monotonic_ns() < end_ns:
                    time.sleep(0.05)
                for command in holders:
                    text = f"{node.label}: a child process holds descriptor 3: "
                    problems.append(Problem("C-05", text + f"{command:.200}"))
            return problems

    return Scenario(f"children[{pattern}]", ("C-05",), check)


def silent_until_go(pattern: str) -> Scenario:
    """Check that without GO nodes send, receive and record nothing, and do not print SENT."""

    def check(bench: Bench) -> list[Problem]:
        with bench.group(pattern, pair(bench.cell, bench.cell, pattern)) as group:
            group.start()
            early_nodes = [node for node in group.nodes if node.line("SENT") or node.line("DONE")]
            time.sleep(0.3)
            group.stop(group.nodes)
            group.wait_done(group.nodes)
            done_fields = [node.fields("DONE") for node in group.nodes]
        problems = [
            Problem("C-08", f"{node.label}: printed SENT or DONE before GO and STOP")
            for node in early_nodes
        ]
        for node, fields in zip(group.nodes, done_fields, strict=True):
            counts = {name: fields.get(name) for name in ("sent", "received", "recorded")}
            if any(counts.values()):
                text = f"{node.label}: {counts} without GO"
                problems.append(Problem("C-08", text))
        return problems

    return Scenario(f"silent-until-go[{pattern}]", ("C-08",), check)


def go_soon(pattern: str) -> Scenario:
    """Check that nodes accept the earliest start after GO that wattwire may set.

    A slow machine can cause a rejection, so the check makes up to GO_TRIES attempts.
    """

    def check(bench: Bench) -> list[Problem]:
        problems: list[Problem] = []
        for _ in range(GO_TRIES):
            with bench.group(pattern, pair(bench.cell, bench.cell, pattern)) as group:
                group.start()
                group.go(GO_SOON_NS)
                sleep_until(group.start_ns + 200 * MILLISECOND_NS)
                problems = [
                    Problem(
                        "C-08",
                        f"{node.label}: rejected GO {GO_SOON_NS} ns ahead: {error_line.fields}",
                    )
                    for node in group.nodes
                    if (error_line := node.line("ERROR"))
                ]
            if not problems:
                break
        return problems

    return Scenario(f"go-soon[{pattern}]", ("C-08",), check)


def scenarios(patterns: list[str]) -> list[Scenario]:
    return [
        *(end_of_input(pattern) for pattern in patterns),
        *(blocked(pattern) for pattern in calling(patterns)),
        *(peer_killed(pattern) for pattern in patterns),
        *(children(pattern) for pattern in patterns[:1]),
        *(silent_until_go(pattern) for pattern in patterns[:1]),
        *(go_soon(pattern) for pattern in patterns[:1]),
        Scenario("terminated", ("C-09",), terminated),
        Scenario("lines", ("C-05",), lines_on_three),
    ]
