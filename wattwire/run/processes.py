"""Start and end the processes of a run, and write to them, through the agent."""

from __future__ import annotations

import contextlib
import queue
import re
import shutil
import socket
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wattwire.model.deployment import process_of
from wattwire.model.errors import WattwireError
from wattwire.rig import host
from wattwire.rig.agent import AgentClient, AgentError, wait_event
from wattwire.rig.builds import substitute
from wattwire.run.lines import BadLineError, parse_line, printable
from wattwire.run.network import HOST_ADDRESS
from wattwire.store.files import discard

SERVICE_TRIES = 3


class NodeEndedError(WattwireError):
    """Error for a node that ended or stopped responding unexpectedly. `process` is its name."""

    def __init__(self, process: str, problem: str, timed_out: bool = False) -> None:
        super().__init__(f"{process} {problem}")
        self.process = process
        self.problem = problem
        self.timed_out = timed_out


class BrokenContractError(NodeEndedError):
    """Error for a printed line that the contract does not allow. It ends the attempt."""


class GuardLostError(WattwireError):
    """Error for a guard that died. The harness failed, so the run is not valid."""


@dataclass
class ProcessState:
    """State of one process: the fields of its printed lines, and its exit."""

    spawned_ns: int = 0
    """CLOCK_MONOTONIC before the start: the earliest possible time of the process's actions."""
    breach: str = ""
    """Text of the first breach of the contract by a line; later lines were not read."""
    lines: dict[str, dict[str, Any]] = field(default_factory=dict)
    exit: dict[str, Any] | None = None
    pid: int | None = None
    guard_pid: int | None = None
    argv: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)


class RunProcesses:
    """The processes of one run. Every wait has a deadline and ends early if a process dies."""

    def __init__(self, agent: AgentClient, token: str, folder: Path) -> None:
        self._agent = agent
        self._token = token
        self._folder = folder
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.states: dict[str, ProcessState] = {}
        self.ending = False
        """Whether the run is ending. The loss of a guard is then not an error."""

    def spawn(self, process: str, argv: list[str], env: dict[str, str], lines: bool = True) -> None:
        """Start a process through its guard.

        If `lines` is true, read its output as a node's lines.
        """
        out = self._folder / "out" / process
        out.mkdir(parents=True, exist_ok=True)
        self.submit(process, argv, env, str(out), lines)()

    def submit(
        self, process: str, argv: list[str], env: dict[str, str], cwd: str, lines: bool = False
    ) -> Callable[[], None]:
        """Request the start of a process; return a function that waits until it has started."""
        state = ProcessState(argv=argv, env=env, spawned_ns=time.monotonic_ns())
        self.states[process] = state
        self._agent.subscribe(process, self._events)
        logs = self._folder / "logs"
        for log in (logs / f"{process}.out", logs / f"{process}.err"):
            discard(log)  # an earlier node may have created this file
        future = self._agent.submit(
            "spawn",
            process=process,
            run=self._token,
            argv=argv,
            env=env,
            cwd=cwd,
            stdout="lines-on-3" if lines else str(logs / f"{process}.out"),
            stderr=str(logs / f"{process}.err"),
            clear_env=False,
        )

        def wait_started() -> None:
            reply = self._agent.reply("spawn", future)
            state.pid, state.guard_pid = reply.get("pid"), reply.get("guard_pid")

        return wait_started

    def write(self, process: str, text: str) -> None:
        """Write a line to a process; do nothing if it has ended.

        The caller that waits for the response reports the end of the process.
        """
        try:
            self._agent.request("write", process=process, text=text + "\n")
        except AgentError as error:
            if error.kind != "failed":
                raise

    def wait_for(
        self, keyword: str, processes: Sequence[str], deadline_s: float, strict: bool = True
    ) -> list[str]:
        """Wait until each process has printed `keyword`; return the processes that have not.

        If `strict` is true, raise NodeEndedError when a process ends first or the deadline passes.
        """
        return self.wait_for_any((keyword,), processes, deadline_s, strict)

    def wait_for_any(
        self,
        keywords: Collection[str],
        processes: Sequence[str],
        deadline_s: float,
        strict: bool = True,
    ) -> list[str]:
        """Wait until each process has printed one of `keywords`; see `wait_for`."""

        def unanswered() -> list[str]:
            return [p for p in processes if self.states[p].lines.keys().isdisjoint(keywords)]

        expected = " or ".join(keywords)
        waiting = unanswered()
        while waiting:
            ended = [p for p in waiting if self.states[p].exit is not None]
            if ended and strict:
                raise NodeEndedError(ended[0], f"{self.describe_exit(ended[0])} before {expected}")
            waiting = [p for p in waiting if p not in ended]
            if not waiting:
                break
            event = wait_event(self._events, deadline_s)
            if event is None:
                if strict:
                    raise NodeEndedError(
                        waiting[0], f"did not print {expected} in time", timed_out=True
                    )
                return unanswered()
            self._take(event)
            waiting = [p for p in unanswered() if p in waiting]
        return unanswered()

    def wait_exit(self, processes: Iterable[str], deadline_s: float) -> list[str]:
        """Wait until all processes have ended; return the processes that have not."""
        while True:
            waiting = [p for p in processes if self.states[p].exit is None]
            if not waiting:
                return []
            event = wait_event(self._events, deadline_s)
            if event is None:
                return waiting
            self._take(event)

    def drain(self) -> None:
        """Process all pending events without waiting."""
        while (event := wait_event(self._events, time.monotonic())) is not None:
            self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        state = self.states.get(event.get("process", ""))
        if state is None:
            return
        if event["event"] == "guard_lost":
            state.exit = {"code": None, "signal": None, "guard_lost": True}
            if not self.ending:
                raise GuardLostError(f"the guard of {event['process']} died")
        if event["event"] == "exit":
            state.exit = {k: v for k, v in event.items() if k not in {"event", "process"}}
        elif event["event"] == "line" and not state.breach:
            self._note_line(state, event)

    def _note_line(self, state: ProcessState, event: dict[str, Any]) -> None:
        try:
            keyword, fields = parse_line(event.get("text", ""), state.lines)
        except BadLineError as error:
            state.breach = f"{event['process']} broke {error}"
            if not self.ending:
                raise BrokenContractError(event["process"], f"broke {error}") from None
            return
        state.lines[keyword] = {**fields, "seen_ns": event.get("t_ns")}

    def describe_exit(self, process: str) -> str:
        """Return a text that describes how a process ended, with its reported reason, if any."""
        state = self.states[process]
        exit_status = state.exit or {}
        how = (
            f"was killed by signal {exit_status['signal']}"
            if exit_status.get("signal")
            else (f"ended with code {exit_status.get('code')}")
        )
        reason = printable(state.lines.get("ERROR", {}).get("reason") or "")
        return f"{how} ({reason})" if reason else how

    def end_all(self) -> list[str]:
        """Kill all remaining processes of this run and return their names."""
        alive = [p for p, s in self.states.items() if s.exit is None and s.pid is not None]
        for process in alive:
            with contextlib.suppress(AgentError):  # the process has already ended
                self._agent.request("signal", process=process, signal="KILL", tree=True)
        stuck = self.wait_exit(alive, time.monotonic() + 5.0)
        reply = self._agent.request("clean", run=self._token)
        for process in self.states:
            self._agent.unsubscribe(process)
        left = [f"pid {pid}" for pid in reply.get("killed", [])]
        return [*alive, *left, *(f"{p} did not end after SIGKILL" for p in stuck)]


def start_service(
    processes: RunProcesses,
    agent: AgentClient,
    name: str,
    table: dict[str, Any],
    folder: Path,
    token: str,
    timeout_s: float,
) -> list[str]:
    """Start a service process, wait until it is ready, and return its endpoints.

    If another process binds the port first, try another port, at most SERVICE_TRIES times.
    """
    problem, timed_out = "", False
    for attempt in range(SERVICE_TRIES):
        process = process_of(name, attempt)
        port_count = int(table.get("ports", 0))
        ports = agent.request("ports", count=port_count)["ports"] if port_count else []
        out = folder / "out" / process
        out.mkdir(parents=True, exist_ok=True)
        words = {
            "out": str(out),
            "token": token,
            "address": HOST_ADDRESS,
            **{f"port{i}": str(p) for i, p in enumerate(ports)},
        }
        if ports:
            words["port"] = str(ports[0])
        for file, text in table.get("files", {}).items():
            (out / file).write_text(substitute([text], words, {})[0], encoding="utf-8")
        argv = _with_sbin(substitute(table["argv"], words, {}))
        env = {k: substitute([v], words, {})[0] for k, v in table.get("env", {}).items()}
        processes.spawn(process, argv, env, lines=False)
        try:
            _wait_service(processes, process, table.get("ready", {}), words, folder, timeout_s)
        except NodeEndedError as error:
            problem = f"{error}{_tail(folder, process)}"
            timed_out = error.timed_out
            if timed_out:
                break
            continue
        return substitute(table.get("endpoints", []), words, {})
    raise NodeEndedError(name, f"could not be started: {problem}", timed_out)


def _with_sbin(argv: list[str]) -> list[str]:
    """Return the command, with the program's full path if it is only in an sbin folder."""
    path = shutil.which(argv[0]) or shutil.which(argv[0], path="/usr/local/sbin:/usr/sbin")
    return [path or argv[0], *argv[1:]]


def _wait_service(
    processes: RunProcesses,
    process: str,
    ready: dict[str, Any],
    words: dict[str, str],
    folder: Path,
    timeout_s: float,
) -> None:
    deadline_s = time.monotonic() + timeout_s
    while True:
        processes.drain()
        if processes.states[process].exit is not None:
            raise NodeEndedError(process, processes.describe_exit(process) + " before it was ready")
        if _serves(process, ready, words, folder):
            return
        if time.monotonic() > deadline_s:
            raise NodeEndedError(process, f"was not ready within {timeout_s:g} s", timed_out=True)
        time.sleep(0.005)  # polling period, because a bound port causes no event


def _serves(process: str, ready: dict[str, Any], words: dict[str, str], folder: Path) -> bool:
    if "port" in ready:
        port = int(substitute([str(ready["port"])], words, {})[0])
        with socket.socket() as probe:
            probe.settimeout(0.5)
            return probe.connect_ex((words["address"], port)) == 0
    if "line" in ready:
        text = "".join(
            path.read_text(errors="replace") for path in (folder / "logs").glob(f"{process}.*")
        )
        return re.search(ready["line"], text) is not None
    if "exec" in ready:
        argv = substitute(ready["exec"], words, {})
        return host.succeeds(argv)
    return True


def _tail(folder: Path, process: str) -> str:
    """Return the last two lines of each log of a process, as text for an error message."""
    lines: list[str] = []
    for path in sorted((folder / "logs").glob(f"{process}.*")):
        lines += path.read_text(errors="replace").strip().splitlines()[-2:]
    return f" — end of its logs: {' / '.join(lines)}" if lines else ""
