"""Measure one repeat of `exec`: a baseline, the window, and a second baseline."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wattwire.model.deployment import ATTACHED, COMMAND, Deployment, Process
from wattwire.model.errors import MissingError, UsageError
from wattwire.rig.agent import AgentClient, AgentError, wait_event
from wattwire.rig.attach_targets import Target
from wattwire.run.exec.output import MessageCounter, Tail, Totals
from wattwire.run.node_specs import SECOND_NS

LOOK_MS = 100
POLL_S = 0.1
MARK_FIRST_S = 0.5
MARK_PERIOD_S = 10.0
"""Proportional memory is read at marks only, because a reading walks all pages of each process."""
ALIVE_PERIOD_S = 1.0
BASELINE_MIN_S, BASELINE_MAX_S, BASELINE_UNMETERED_S = 2.0, 60.0, 0.5
STOPS = (("INT", 12.0), ("TERM", 5.0), ("KILL", 5.0))
"""Signals that end a command, and the wait (s) after each.

As at a terminal, a launcher has time to stop its nodes before the next signal.
"""


@dataclass(frozen=True)
class Request:
    """Options of a measurement: the command or the attached targets, and how to measure them."""

    command: tuple[str, ...]
    targets: tuple[Target, ...] = ()
    for_s: float | None = None
    repeats: int = 1
    messages: float | None = None
    count_from: str | None = None
    baseline_s: float | None = None
    tick_hz: float = 10.0
    cwd: str = "."

    @property
    def deployment(self) -> Deployment:
        """Return the measured processes as a deployment without nodes or flows."""
        kinds = [COMMAND] if self.command else []
        kinds += [ATTACHED] * len(self.targets)
        return Deployment(tuple(map(Process, self.subjects, kinds)))

    @property
    def subjects(self) -> list[str]:
        """Return the names of the measured subjects in the agent's protocol."""
        names = [COMMAND] if self.command else []
        return names + [attached_name(i) for i in range(len(self.targets))]


def check_program(request: Request) -> None:
    """Check that the command's program exists, before anything is measured or written.

    Raise UsageError if it does not exist, MissingError if this user may not execute it.
    """
    if not request.command:
        return
    program = request.command[0]
    path = Path(request.cwd, program) if os.sep in program else None
    if shutil.which(path or program):
        return
    if path is not None and path.is_file():
        raise _refusal(program, {"kind": "permission", "message": "it is not executable"})
    where = f"in {Path(request.cwd).resolve()}" if path else f"on PATH ({os.environ.get('PATH')})"
    raise _refusal(program, {"message": f"the program does not exist {where}"})


def attached_name(index: int) -> str:
    return f"attached{index}"


@dataclass
class Repeat:
    """Record of one repeat. Its rows are computed from this record and the sampler's readings."""

    token: str
    window: tuple[int, int] = (0, 0)
    baselines: list[tuple[int, int]] = field(default_factory=list)
    before: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Subject → the agent's table of its processes at the start of the window."""
    after: dict[str, dict[str, Any]] = field(default_factory=dict)
    exit: dict[str, Any] | None = None
    ended_by: str = "itself"
    """The cause of the end: "itself", "--for", "Ctrl-C", or the signal that ended the command."""
    messages: float | None = None
    totals: Totals | None = None
    """Running totals of messages in the output, if the command prints any."""
    notes: list[str] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)

    @property
    def window_s(self) -> float:
        return (self.window[1] - self.window[0]) / SECOND_NS


class OneExecution:
    """Execution of one repeat in `folder`. Attached systems receive no signals."""

    def __init__(
        self,
        agent: AgentClient,
        request: Request,
        folder: Path,
        show: Callable[[bytes], None],
    ) -> None:
        self._agent, self._request, self._folder = agent, request, folder
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._counter = MessageCounter(request.count_from) if request.count_from else None
        self._tails = [
            Tail(folder / "logs" / f"{COMMAND}.{end}", show, self._counter)
            for end in ("out", "err")
        ]
        self.repeat = Repeat("ww" + secrets.token_hex(5))

    def execute(self) -> Repeat:
        """Run all phases. KeyboardInterrupt ends the window; earlier measurements are saved."""
        repeat, agent = self.repeat, self._agent
        self._start_sampling()
        try:
            if self._request.command:
                self._baseline(self._baseline_before_s())
            self._window()
            if self._request.command and repeat.ended_by != "Ctrl-C":
                with contextlib.suppress(KeyboardInterrupt):  # a shorter baseline is also valid
                    self._baseline(self._baseline_after_s())
        finally:
            if not agent.lost.is_set():
                self._clean_up()
                repeat.sampling = agent.request("sample_stop")
        for tail in self._tails:
            tail.end()
        self._count()
        return repeat

    # -- phases ------------------------------------------------------------------------------

    def _start_sampling(self) -> None:
        meters = [m["name"] for m in self._agent.hello["meters"] if m.get("default", True)]
        self._agent.request(
            "sample_start",
            path=str(self._folder / "readings.bin"),
            tick_hz=self._request.tick_hz,
            meters=meters,
            subjects={},
        )

    def _mark(self, name: str) -> int:
        return int(self._agent.request("mark", name=name)["t_ns"])

    def _baseline(self, seconds: float) -> None:
        begin_ns = self._mark("baseline_begin")
        end_ns = begin_ns
        try:
            time.sleep(seconds)
        finally:
            end_ns = self._mark("baseline_end")
            self.repeat.baselines.append((begin_ns, end_ns))

    def _is_metered(self) -> bool:
        """Return whether an energy counter is readable. Without one, a long baseline has no use."""
        return any(
            meter["state"] == "present"
            and any(
                quantity["unit"] == "uj"
                and quantity["kind"] == "measured"
                and quantity["scope"] == "package"
                for quantity in meter["quantities"]
            )
            for meter in self._agent.hello["meters"]
        )

    def _baseline_before_s(self) -> float:
        """Return the length (s) of the baseline before the window."""
        if self._request.baseline_s is not None:
            return self._request.baseline_s / 2
        if not self._is_metered():
            return BASELINE_UNMETERED_S
        half_s = (self._request.for_s or 2 * BASELINE_MIN_S) / 2
        return min(BASELINE_MAX_S, max(BASELINE_MIN_S, half_s))

    def _baseline_after_s(self) -> float:
        """Return the length (s) of the baseline after the window.

        If energy is measured, both baselines together are as long as the window, within limits.
        """
        before_s = self._baseline_before_s()
        if self._request.baseline_s is not None or not self._is_metered():
            return before_s
        return min(BASELINE_MAX_S, max(BASELINE_MIN_S, self.repeat.window_s - before_s))

    def _window(self) -> None:
        repeat, request = self.repeat, self._request
        for index in range(len(request.targets)):
            name = attached_name(index)
            repeat.before[name] = self._members(name)
        begin_ns = self._mark("window_begin")
        if request.command:
            self._spawn()
        try:
            self._wait(begin_ns)
        except KeyboardInterrupt:
            repeat.ended_by = "Ctrl-C"
        self._mark("window_end")
        # A mark's readings are taken after its time, so the window ends after the last reading.
        repeat.window = begin_ns, time.monotonic_ns()
        for name in request.subjects:
            repeat.after[name] = self._members(name)
        if request.command and repeat.exit is None:
            self._stop()

    def _spawn(self) -> None:
        logs = self._folder / "logs"
        self._agent.subscribe(COMMAND, self._events)
        spawned = self._agent.submit(
            "spawn",
            process=COMMAND,
            run=self.repeat.token,
            argv=list(self._request.command),
            env={},
            cwd=str(Path(self._request.cwd).resolve()),
            stdout=str(logs / f"{COMMAND}.out"),
            stderr=str(logs / f"{COMMAND}.err"),
            clear_env=False,
        )
        # Do not wait for this reply, so that the first reading includes every process of the tree.
        first_look = self._agent.submit("members", process=COMMAND, period_ms=LOOK_MS)
        reply = spawned.result()
        first_look.result()
        if not reply.get("ok"):
            raise _refusal(self._request.command[0], reply["error"])
        with contextlib.suppress(AgentError):  # the command has already ended
            self._agent.request("write", process=COMMAND, close=True)

    def _members(self, name: str) -> dict[str, Any]:
        """Return the agent's process table of a subject; empty if its processes have ended."""
        try:
            return self._agent.request("members", process=name, period_ms=LOOK_MS)
        except AgentError:
            return {"members": [], "unfollowed": 0}

    def _wait(self, begin_ns: int) -> None:
        """Wait until the command ends, the time is up, or all attached processes have ended."""
        request = self._request
        end_s = begin_ns / SECOND_NS + request.for_s if request.for_s else None
        next_mark_s = begin_ns / SECOND_NS + MARK_FIRST_S
        next_look_s = begin_ns / SECOND_NS + ALIVE_PERIOD_S
        while self.repeat.exit is None:
            now_s = time.monotonic()
            if end_s is not None and now_s >= end_s:
                self.repeat.ended_by = "--for"
                return
            if now_s >= next_mark_s:
                self._mark("memory")
                next_mark_s = now_s + MARK_PERIOD_S
            if not request.command and now_s >= next_look_s:
                if not self._any_process_lives():
                    self.repeat.notes.append("all attached processes ended")
                    return
                next_look_s = now_s + ALIVE_PERIOD_S
            self._take_events(min(now_s + POLL_S, end_s or now_s + POLL_S))
            for tail in self._tails:
                tail.take()

    def _any_process_lives(self) -> bool:
        return any(
            member["ended_ns"] is None
            for name in self._request.subjects
            for member in self._members(name)["members"]
        )

    def _take_events(self, until_s: float) -> None:
        event = wait_event(self._events, until_s)
        if event is None:
            return
        if event["event"] == "exit":
            self.repeat.exit = {k: v for k, v in event.items() if k not in {"event", "process"}}
        elif event["event"] == "guard_lost":
            self.repeat.exit = {"code": None, "signal": None, "guard_lost": True}
            self.repeat.notes.append(
                "the guard of the command was killed, so its totals are unknown"
            )

    def _stop(self) -> None:
        """Send INT, then TERM, then KILL to the whole process tree until it ends."""
        for signal, patience_s in STOPS:
            try:
                with contextlib.suppress(AgentError):  # the command has already ended
                    self._agent.request("signal", process=COMMAND, signal=signal, tree=True)
                deadline_s = time.monotonic() + patience_s
                while self.repeat.exit is None and time.monotonic() < deadline_s:
                    self._take_events(time.monotonic() + POLL_S)
                    for tail in self._tails:
                        tail.take()
            except KeyboardInterrupt:
                continue  # Ctrl-C again: send the next signal immediately
            if self.repeat.exit is not None:
                if signal != "INT":
                    text = f"the command did not end on SIGINT; SIG{signal} ended it"
                    self.repeat.notes.append(text)
                return

    def _clean_up(self) -> None:
        """Kill the remaining processes of the command. Attached systems continue to run."""
        if self._request.command and self.repeat.exit is None:
            with contextlib.suppress(AgentError):
                self._agent.request("signal", process=COMMAND, signal="KILL", tree=True)
                self._take_events(time.monotonic() + STOPS[-1][1])
        self._agent.request("clean", run=self.repeat.token)
        self._agent.unsubscribe(COMMAND)

    def _count(self) -> None:
        repeat, request = self.repeat, self._request
        repeat.messages = request.messages
        if self._counter is None:
            return
        repeat.messages = self._counter.count
        if any(tail.truncated for tail in self._tails):
            repeat.messages = None
            repeat.notes.append(
                "the output exceeds the size limit of its log, so messages are not counted"
            )
        elif repeat.messages is None:
            repeat.notes.append(f'--count-from: no output matched "{request.count_from}"')
        else:
            repeat.totals = self._counter.totals(POLL_S)

    def document(self) -> dict[str, Any]:
        """Return the content of this repeat's run.json."""
        repeat = self.repeat
        return {
            "token": repeat.token,
            "window": {"begin_ns": repeat.window[0], "end_ns": repeat.window[1]},
            "baselines": [{"begin_ns": b, "end_ns": e} for b, e in repeat.baselines],
            "ended_by": repeat.ended_by,
            "exit": repeat.exit,
            "messages": repeat.messages,
            "notes": repeat.notes,
            "members": {name: table["members"] for name, table in repeat.after.items()},
            "looking": {
                name: {k: v for k, v in table.items() if k not in {"id", "ok", "members"}}
                for name, table in repeat.after.items()
            },
            "sampling": {k: v for k, v in repeat.sampling.items() if k not in {"id", "ok"}},
        }

    def write_document(self) -> None:
        text = json.dumps(self.document(), indent=1)
        (self._folder / "run.json").write_text(text, encoding="utf-8")


def _refusal(program: str, error: Mapping[str, Any]) -> UsageError | MissingError:
    message = error.get("message", "?")
    if error.get("kind") == "permission":
        return MissingError(
            f"{program}: permission denied ({message}). Make it executable with `chmod +x`, "
            "or run it with its interpreter."
        )
    return UsageError(f"{program}: cannot be started ({message}). Check its name and PATH.")
