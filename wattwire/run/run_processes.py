"""Start and end the processes of a run, and write to them, through the agents of its hosts."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wattwire.hosts.cores import RunCores
from wattwire.hosts.host import Host
from wattwire.model.deployment import Deployment
from wattwire.model.errors import WattwireError
from wattwire.rig.agent import AgentClient, AgentError, wait_event
from wattwire.run.lines import BadLineError, parse_line, printable
from wattwire.store.files import discard


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


IN_USE = re.compile(
    r"address (is )?already in use|EADDRINUSE|Address in use|port \d+ is (already )?in use",
    re.IGNORECASE,
)


def port_hint(text: str) -> str:
    """Return how to identify the other user of a port, if `text` states that a port is in use."""
    in_use = IN_USE.search(text)
    return "; on its host, ss -tulpn lists the processes that use ports" if in_use else ""


@dataclass
class ProcessState:
    """State of one process: the fields of its printed lines, and its exit."""

    spawned_ns: int = 0
    """CLOCK_MONOTONIC of its host before the start: the earliest time of the process's actions."""
    breach: str = ""
    """Text of the first breach of the contract by a line; later lines were not read."""
    lines: dict[str, dict[str, Any]] = field(default_factory=dict)
    exit: dict[str, Any] | None = None
    pid: int | None = None
    started_ns: int | None = None
    """CLOCK_MONOTONIC of its host just before the process executed its program."""
    guard_pid: int | None = None
    argv: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)

    def of_part(self, node: int) -> ProcessState:
        """Return the state of a part of a member, with its own entry of each line (C-42)."""
        lines = {}
        for keyword, fields in self.lines.items():
            entries = fields.get("parts")
            own = [entry for entry in entries or () if entry.get("node") == node]
            if entries is None or own:
                whole = {key: value for key, value in fields.items() if key != "parts"}
                lines[keyword] = {**whole, **(own[0] if own else {})}
        return replace(self, lines=lines)


class RunProcesses:
    """The processes of one run. Every wait has a deadline and ends early if a process dies."""

    def __init__(
        self,
        hosts: Mapping[str, Host],
        deployment: Deployment,
        token: str,
        folder: Path,
        cores: RunCores | None = None,
    ) -> None:
        self._hosts = hosts
        self._cores = cores
        self._deployment = deployment
        self.token = token
        self._folder = folder
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.states: dict[str, ProcessState] = {}
        self.ending = False
        """Whether the run is ending. The loss of a guard is then not an error."""

    def host_of(self, process: str) -> Host:
        """Return the host of a process."""
        return self._hosts[self._deployment.host_of_process(process)]

    def agent_of(self, process: str) -> AgentClient:
        """Return the agent of a process's host."""
        return self.host_of(process).agent

    def folder_of(self, process: str) -> Path:
        """Return the folder of the attempt on the host of a process."""
        return self.host_of(process).folder_of(self._folder, self.token)

    def out_of(self, process: str) -> Path:
        """Return the process's own folder on its host."""
        return self.folder_of(process) / "out" / process

    def spawn(self, process: str, argv: list[str], env: dict[str, str], lines: bool = True) -> None:
        """Start a process through its guard in its own folder, which exists.

        If `lines` is true, read its output as a node's lines.
        """
        self.submit(process, argv, env, str(self.out_of(process)), lines)()

    def submit(
        self,
        process: str,
        argv: list[str],
        env: dict[str, str],
        cwd: str,
        lines: bool = False,
        members_period_ms: int | None = None,
    ) -> Callable[[], None]:
        """Request the start of a process; return a function that waits until it has started.

        With `members_period_ms`, the agent lists the processes of its tree from its start.
        """
        host = self.host_of(process)
        spawned_ns = time.monotonic_ns() + host.offset_ns
        state = ProcessState(argv=argv, env=env, spawned_ns=spawned_ns)
        self.states[process] = state
        host.agent.subscribe(process, self._events)
        logs = self.folder_of(process) / "logs"
        for log in (logs / f"{process}.out", logs / f"{process}.err"):
            discard_on(host, log)  # an earlier node may have created this file
        future = host.agent.submit(
            "spawn",
            process=process,
            run=self.token,
            argv=argv,
            env=env,
            cwd=cwd,
            stdout="lines-on-3" if lines else str(logs / f"{process}.out"),
            stderr=str(logs / f"{process}.err"),
            clear_env=False,
            members_period_ms=members_period_ms,
            cpus=self._cores.cpus_of(process) if self._cores else [],
        )

        def wait_started() -> None:
            reply = host.agent.reply("spawn", future)
            state.pid, state.guard_pid = reply.get("pid"), reply.get("guard_pid")
            state.started_ns = reply.get("started_ns")

        return wait_started

    def write(self, process: str, text: str) -> None:
        """Write a line to a process; do nothing if it has ended.

        The caller that waits for the response reports the end of the process.
        """
        self.write_all({process: text})

    def write_all(self, texts: Mapping[str, str]) -> None:
        """Write a line to each process, in this order on each host, without waiting in between."""
        futures = [
            (agent, agent.submit("write", process=process, text=text + "\n"))
            for process, text in texts.items()
            for agent in (self.agent_of(process),)
        ]
        for agent, future in futures:
            try:
                agent.reply("write", future)
            except AgentError as error:
                if error.kind != "failed":
                    raise

    def wait_for(
        self, keyword: str, processes: Sequence[str], deadline_s: float, strict: bool = True
    ) -> list[str]:
        """Wait until each process has printed `keyword`; return the processes that have not.

        If `strict` is true, raise NodeEndedError when a process ends first or the deadline passes.
        It also applies to a process that has printed `keyword`: others may wait for it in vain.
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
            watched = processes if strict else waiting
            ended = [p for p in watched if self.states[p].exit is not None]
            if ended and strict:
                before = expected if ended[0] in waiting else f"the other nodes printed {expected}"
                raise NodeEndedError(ended[0], f"{self.describe_exit(ended[0])} before {before}")
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

    def logs_of(self, process: str) -> list[str]:
        """Return the text of each log of a process."""
        host, logs = self.host_of(process), self.folder_of(process) / "logs"
        texts = []
        for end in ("err", "out"):
            with contextlib.suppress(AgentError):  # the process has no such log
                texts.append(host.read(logs / f"{process}.{end}").decode(errors="replace"))
        return texts

    def describe_exit(self, process: str) -> str:
        """Return a text that describes how a process ended, with its reported reason, if any."""
        state = self.states[process]
        exit_status = state.exit or {}
        if exit_status.get("guard_lost"):
            how = "ended with its guard"
        elif exit_status.get("signal"):
            how = f"was killed by signal {exit_status['signal']}"
        else:
            how = f"ended with code {exit_status.get('code')}"
        reason = printable(state.lines.get("ERROR", {}).get("reason") or "")
        return f"{how} ({reason}{port_hint(reason)})" if reason else how

    def kill_alive(self) -> tuple[list[str], list[str]]:
        """Kill the processes of this object; return those that were alive, and those that are."""
        alive = [p for p, s in self.states.items() if s.exit is None and s.pid is not None]
        for process in alive:
            with contextlib.suppress(AgentError):  # the process has already ended
                self.agent_of(process).request("signal", process=process, signal="KILL", tree=True)
        return alive, self.wait_exit(alive, time.monotonic() + 5.0)

    def unsubscribe(self) -> None:
        """Take no more events of the processes of this object."""
        for process in self.states:
            self.agent_of(process).unsubscribe(process)

    def end_all(self) -> list[str]:
        """Kill all processes with the token of this run, of any object; return their names."""
        alive, stuck = self.kill_alive()
        agents = [host.agent for host in self._hosts.values()]
        cleaned = [(agent, agent.submit("clean", run=self.token)) for agent in agents]
        killed = {  # agents of one machine may find the same process
            (agent.hello["boot_id"], pid): f"pid {pid}"
            for agent, future in cleaned
            for pid in agent.reply("clean", future).get("killed", [])
        }
        left = list(killed.values())
        self.unsubscribe()
        return [*alive, *left, *(f"{p} did not end after SIGKILL" for p in stuck)]


def discard_on(host: Host, path: Path) -> None:
    """Delete what an earlier node left at this path. A far host's folder is new in each attempt."""
    if host.here and os.path.lexists(path):
        discard(path)
