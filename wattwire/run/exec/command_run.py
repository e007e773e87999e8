"""Run a deployment without nodes: a command, attached processes, or both.

The loop is the one of `OneRun`. Without flows, the window begins when the command is executed. It
ends when the command or all attached processes end, or when the time is up.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wattwire.analysis.streams.figures import figures_of
from wattwire.model.deployment import COMMAND, PROBE, Request
from wattwire.model.errors import MissingError, UsageError
from wattwire.model.verdict import Outcome, Reason, Verdict
from wattwire.model.words import plural
from wattwire.rig.agent import AgentError
from wattwire.rig.layer_library import check_loadable
from wattwire.run.crash import crash_point
from wattwire.run.dependencies import DRAIN, require
from wattwire.run.exec.output import MessageCounter, Tail, Totals, ValueReader
from wattwire.run.exec.watched_topics import ProbeOfRun, document_of, late_subscriptions
from wattwire.run.layers.figures import figures_of_layers
from wattwire.run.layers.recorder import LayerRecorder
from wattwire.run.node_specs import SECOND_NS
from wattwire.run.probing.discovery import GRAPH_S
from wattwire.run.progress import Progress
from wattwire.run.record import OpenAttempt, RunRecord
from wattwire.run.runner import OneRun, RunSetup

LOOK_MS = 100
UNSEEN_MIN_NS = 1_000_000
"""CPU time without a process below which no row mentions it."""
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
LEFT_RUNNING = (
    "the command ended and left processes running, which wattwire killed 0.3 s later; their later "
    "output and CPU time are missing. Make the command wait for its processes, or measure a time "
    "with --for and a command that does not end"
)
WARM_UP = "warm_up"
AFTER = "after"
"""Name of the baseline after the window."""


def check_program(request: Request) -> None:
    """Check that the command's program exists, before anything is measured or written.

    Raise UsageError if it does not exist or cannot record layers, MissingError if this user may
    not execute it.
    """
    if not request.command:
        return
    program = request.command[0]
    path = Path(request.cwd, program) if os.sep in program else None
    if shutil.which(path or program):
        if request.layers:
            check_loadable(program, request.cwd)
        return
    if path is not None and path.is_file():
        raise _refusal(program, "permission", "it is not executable")
    where = f"in {Path(request.cwd).resolve()}" if path else f"on PATH ({os.environ.get('PATH')})"
    raise _refusal(program, "missing", f"the program does not exist {where}")


def _refusal(program: str, kind: str, message: str) -> UsageError | MissingError:
    if kind == "permission":
        return MissingError(
            f"{program}: permission denied ({message}). Make it executable with `chmod +x`, "
            "or run it with its interpreter."
        )
    return UsageError(f"{program}: cannot be started ({message}). Check its name and PATH.")


@dataclass(kw_only=True)
class CommandRecord(RunRecord):
    """Record of a run without nodes."""

    before: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Attached subject → the agent's table of its processes at the start of the window."""
    after: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Subject → the agent's table of its processes at the end of the window."""
    ended_by: str = "itself"
    """The cause of the end: "itself", "time" (the end of --for), or "Ctrl-C"."""
    messages: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    """Figures in the output by name, in the units of their names."""
    totals: Totals | None = None
    """Running totals of messages in the output, if the command prints any."""
    notes: list[str] = field(default_factory=list)
    layers: dict[str, Any] | None = None
    """Rows of the topics and the paths of --layers, their counts, and the reasons against them."""
    topics: dict[str, Any] | None = None
    """What a probe watched: the streams and their readers."""

    @property
    def exit(self) -> dict[str, Any] | None:
        """Return the exit of the command; None if it has not ended, or without a command."""
        state = self.processes.states.get(COMMAND)
        return state.exit if state else None

    read_ns: int = 0
    """Time of the last readings (ns), after the end of the window."""

    @property
    def span(self) -> tuple[int, int]:
        """Return the window's begin and end (ns)."""
        return self.window["start_ns"], self.window["end_ns"]

    @property
    def cost_span(self) -> tuple[int, int]:
        """Return the begin of the window and the time of its last readings (ns).

        The window of a command that ended by itself ends with its main process. Its final figures
        are read later, when nothing adds to them any more.
        """
        return self.window["start_ns"], max(self.read_ns, self.window["end_ns"])


def end_before_window(request: Request, after_s: float, count: float, is_searching: bool) -> str:
    """Return why nothing was measured: the end after `after_s` came before the window.

    `count` messages had come, and the probe, if any, may have still searched for publishers.
    """
    subject = "the command" if request.command else "all attached processes"
    ended = f"{subject} ended after {after_s:.2g} s"
    if is_searching and after_s >= (request.warmup_s or 0.0):
        return (
            f"{ended}, before the probe had found all publishers, for which it searches for up to "
            f"{GRAPH_S:g} s, so nothing was measured; use a command whose nodes publish and run "
            "longer, or leave out --topics"
        )
    if request.warmup_messages is not None:
        warm_up = f"{plural(request.warmup_messages, 'message')}, of which {count:g} came"
    else:
        warm_up = f"{request.warmup_s:g} s"
    return (
        f"{ended}, within the warm-up ({warm_up}), so nothing was measured; use a shorter "
        "--warmup, or a command that runs longer"
    )


class CommandRun(OneRun):
    """Execution of a run of a request. Attached systems receive no signals."""

    record: CommandRecord

    def __init__(self, attempt: OpenAttempt, setup: RunSetup, progress: Progress) -> None:
        super().__init__(attempt, setup, progress)
        self.record = CommandRecord(**vars(self.record))
        request = self._study.request_of(self._treatment)
        assert request is not None
        self._request = request
        self._layers = LayerRecorder(self._folder) if request.layers else None
        self._counter = MessageCounter(request.count_from) if request.count_from else None
        self._values = ValueReader(request.values_from)
        self._probe = ProbeOfRun(request, self.record.processes) if request.probe else None
        self._readers = [r for r in (self._counter, self._values) if r is not None]
        self._tails = [
            Tail(self._folder / "logs" / f"{COMMAND}.{end}", self._show, self._readers)
            for end in ("out", "err")
        ]

    def execute(self) -> RunRecord:
        """Run all phases. Ctrl-C ends the window of a single run, whose values are kept.

        One of several repeats is discarded instead.
        """
        targets = dict(zip(self._attached, self._request.attached, strict=True))
        try:
            for name, target in targets.items():
                reply = self._agent.request("attach", process=name, **target.identity)
                if target.cgroup is not None and reply.get("usage") is None:
                    self.record.notes.append(
                        f"{target.label}: its cgroup does not count CPU time, so the CPU time of "
                        "a process that ends in the window is counted up to its last scan"
                    )
            super().execute()
        finally:
            for name in targets if not self._agent.lost.is_set() else ():
                with contextlib.suppress(AgentError):  # not attached
                    self._agent.request("detach", process=name)
        for tail in self._tails:
            tail.end()
        self._count()
        if self._probe is not None and self.record.window.get("end_ns"):
            self._take_topics(self._probe)
        if self._layers is not None:
            # A treatment that publishes more loses events first, so they exclude no run.
            layers, reasons = self._layers.collect(self.record.span)
            unused = [{"code": reason.code, "detail": reason.detail} for reason in reasons]
            self.record.layers = layers | {"reasons": unused}
            self._take_paths(self.record.layers)
        for text in self.record.notes:
            self._progress.event("note", text=text)
        return self.record

    @property
    def _attached(self) -> list[str]:
        return [name for name in self._request.labels if name not in (COMMAND, PROBE)]

    def _show(self, chunk: bytes) -> None:
        self._progress.event("output", text=chunk.decode(errors="surrogateescape"))

    def _require_dependencies(self) -> None:
        """Raise DependencyLostError also if the probe ended before its time, or was killed."""
        super()._require_dependencies()
        self._require_probe()

    def _require_probe(self) -> None:
        problem = self._probe.problem(self._point == DRAIN) if self._probe is not None else ""
        require(self._point, {"probe": problem} if problem else {})

    def _victims(self) -> dict[str, int | Callable[[], None] | None]:
        states = self.record.processes.states
        command, probe = states.get(COMMAND), states.get(PROBE)
        node = {"node": command.pid, "guard": command.guard_pid} if command else {}
        return {**super()._victims(), **node, "probe": probe.pid if probe else None}

    # -- phases ------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._request.command:
            self._baseline("machine", self._baseline_before_s())

    def _is_metered(self) -> bool:
        """Return whether the run reads an energy counter. Else, a long baseline has no use."""
        used = {name for host in self._hosts.values() for name in self._meters(host)}
        return any(self._addresses.values()) or any(
            meter["state"] == "present"
            and meter["name"] in used
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
        begin_ns, end_ns = self.record.span
        window_s = (end_ns - begin_ns) / SECOND_NS
        return min(BASELINE_MAX_S, max(BASELINE_MIN_S, window_s - before_s))

    def _window(self) -> None:
        self._enter(WARM_UP if self._request.warms_up else "window")
        record = self.record
        record.before = {name: self._members(name) for name in self._attached}
        begin_ns = self._mark("window_begin")[self.record.name]
        record.window = {"start_ns": begin_ns, "end_ns": 0}
        if self._probe is not None:  # first, so that it can see the first messages
            self._probe.start(LOOK_MS)
        if self._request.command:
            begin_ns = record.window["start_ns"] = self._spawn_command() or begin_ns
        crash_point("window", self._victims())
        try:
            if self._request.warms_up:
                begin_ns = self._warm_up(begin_ns)
            self._wait(begin_ns)
        except KeyboardInterrupt:
            if self._is_repeated():
                raise  # a part of a repeat is no repeat; --resume measures the whole
            record.ended_by, record.interrupted = "Ctrl-C", True
        self._mark("window_end")
        # A mark's readings are taken after its time, so the window ends after the last reading.
        record.read_ns = record.window["end_ns"] = time.monotonic_ns()
        if record.ended_by == "itself" and record.exit and record.exit.get("t_ns"):
            record.window["end_ns"] = max(begin_ns, record.exit["t_ns"])
        record.after = {name: self._members(name) for name in self._request.labels}
        if record.ended_by == "itself" and not self._request.command:
            ends = [m["ended_ns"] for t in record.after.values() for m in t["members"]]
            record.window["end_ns"] = max((begin_ns, *(end for end in ends if end)))
        self._note_missing_figures()

    def _is_repeated(self) -> bool:
        """Return whether the run is one of several, whose windows are compared or averaged."""
        several = self._study.plan.blocks > 1 or bool(self._study.variants)
        return several or self._request.warmup_runs > 0

    def _warm_up(self, started_ns: int) -> int:
        """Wait for the end of the warm-up, and return the begin of the window (ns).

        The attempt fails if the command or all attached processes end first.
        """
        request, record = self._request, self.record
        started_s = started_ns / SECOND_NS
        end_s = started_s + (request.warmup_s or float("inf"))
        next_look_s = time.monotonic() + ALIVE_PERIOD_S
        while not self._is_warm(end_s):
            has_ended = record.exit is not None
            self._require_probe()
            if self._attached and not request.command and time.monotonic() >= next_look_s:
                has_ended = not self._any_process_lives()
                next_look_s += ALIVE_PERIOD_S
            if has_ended:
                self._require_dependencies()
                after_s = (time.monotonic_ns() - started_ns) / SECOND_NS
                is_searching = self._probe is not None and not self._probe.is_settled()
                count = (self._counter.count if self._counter else None) or 0.0
                text = end_before_window(request, after_s, count, is_searching)
                record.reasons.append(Reason(Verdict.FAILED, "ended_in_warm_up", text))
                return started_ns
            now_s = time.monotonic()
            self._follow(min(now_s + POLL_S, end_s if now_s < end_s else float("inf")))
        for reader in self._readers:
            reader.restart()
        record.before = {name: self._members(name) for name in request.labels}
        begin_ns = record.window["start_ns"] = self._mark("window_begin")[record.name]
        self._enter("window")
        return begin_ns

    def _is_warm(self, end_s: float) -> bool:
        if self._probe is not None and not self._probe.is_settled():
            return False
        if self._request.warmup_messages is None:
            return time.monotonic() >= end_s
        count = self._counter.count if self._counter else None
        return (count or 0.0) >= self._request.warmup_messages

    def _spawn_command(self) -> int | None:
        """Start the command; return the time (ns) just before it was executed."""
        processes, argv = self.record.processes, list(self._request.command)
        cwd = str(Path(self._request.cwd).resolve())
        env = self._layers.environment() if self._layers else {}
        try:
            processes.submit(COMMAND, argv, env, cwd, members_period_ms=LOOK_MS)()
        except AgentError as error:
            raise MissingError(str(_refusal(argv[0], error.kind, str(error)))) from error
        with contextlib.suppress(AgentError):  # the command has already ended
            self._agent.request("write", process=COMMAND, close=True)
        return processes.states[COMMAND].started_ns

    def _note_missing_figures(self) -> None:
        """Note the reason why the figures of processes that have ended are not final."""
        for table in self.record.after.values():
            ended = [m for m in table["members"] if m["ended_ns"] and not m["is_final"]]
            reason = table.get("exit_records_missing")
            if reason and (ended or self._has_unlisted_children(table)):
                self.record.notes.append(
                    f"{reason}: of a process that ends between two scans, the peak memory and the "
                    "context switches are lower bounds (≥), or it has no row"
                )

    def _has_unlisted_children(self, table: dict[str, Any]) -> bool:
        """Return whether the tree used more CPU time than its listed processes together."""
        usage = (self.record.exit or {}).get("rusage")
        if not usage:
            return False
        listed_ns = sum(m["cpu_ns"] or m["user_ns"] + m["system_ns"] for m in table["members"])
        return bool(usage["user_ns"] + usage["system_ns"] - listed_ns > UNSEEN_MIN_NS)

    def _members(self, name: str) -> dict[str, Any]:
        """Return the agent's process table of a subject; empty if its processes have ended."""
        try:
            return self._agent.request("members", process=name, period_ms=LOOK_MS)
        except AgentError:
            return {"members": [], "unfollowed": 0}

    def _wait(self, begin_ns: int) -> None:
        """Wait until the command ends, the time is up, or all attached processes have ended."""
        request, begin_s = self._request, begin_ns / SECOND_NS
        end_s = begin_s + request.for_s if request.for_s else None
        next_mark_s, next_look_s = begin_s + MARK_FIRST_S, begin_s + ALIVE_PERIOD_S
        while not request.command or self.record.exit is None:
            now_s = time.monotonic()
            if end_s is not None and now_s >= end_s:
                self.record.ended_by = "time"
                return
            self._require_probe()
            if now_s >= next_mark_s:
                self._mark("memory")
                next_mark_s = now_s + MARK_PERIOD_S
            if self._attached and not request.command and now_s >= next_look_s:
                if not self._any_process_lives():
                    return
                next_look_s = now_s + ALIVE_PERIOD_S
            self._follow(min(now_s + POLL_S, end_s or now_s + POLL_S))

    def _any_process_lives(self) -> bool:
        return any(
            member["ended_ns"] is None
            for name in self._attached
            for member in self._members(name)["members"]
        )

    def _follow(self, until_s: float, process: str = "") -> None:
        """Wait until a time (s, monotonic) or the end of a process, and read the output.

        By default, the process is the command, or else the probe.
        """
        started = [name for name in (COMMAND, PROBE) if name in self.record.processes.states]
        if not started:
            time.sleep(max(0.0, until_s - time.monotonic()))
            return
        self.record.processes.wait_exit([process or started[0]], until_s)
        for tail in self._tails:
            tail.take()

    def _drain(self) -> None:
        """Stop the probe and the command, and take the baseline after the window."""
        record = self.record
        self._enter("drain")
        record.stop_ns = time.monotonic_ns()
        if self._probe is not None:  # first, as a publisher that ends later is still in the graph
            self._stop(PROBE)
        if not self._request.command:
            return
        self._stop(COMMAND)
        if not record.interrupted:
            try:
                self._baseline(AFTER, self._baseline_after_s())
            except KeyboardInterrupt:  # a shorter baseline is also valid
                record.interrupted = True

    def _stop(self, process: str) -> None:
        """Send INT, then TERM, then KILL to a whole process tree until its main process ends."""
        for signal, patience_s in STOPS:
            if self._has_ended(process):
                return
            try:
                with contextlib.suppress(AgentError):  # the process has already ended
                    self._agent.request("signal", process=process, signal=signal, tree=True)
                deadline_s = time.monotonic() + patience_s
                while not self._has_ended(process) and time.monotonic() < deadline_s:
                    self._follow(time.monotonic() + POLL_S, process)
            except KeyboardInterrupt:
                continue  # Ctrl-C again: send the next signal immediately
            if signal != "INT" and self._has_ended(process):
                text = f"the {process} did not end on SIGINT; SIG{signal} ended it"
                self.record.notes.append(text)

    def _has_ended(self, process: str) -> bool:
        return self.record.processes.states[process].exit is not None

    def _judge_exits(self) -> None:
        """Set the outcome if the command failed. A stop that wattwire requested is no failure."""
        exit_status = self.record.exit or {}
        failed = exit_status.get("code") != 0
        if self._request.command and self.record.ended_by == "itself" and failed:
            self.record.outcome = Outcome.DIED
            how = self.record.processes.describe_exit(COMMAND)
            self.record.outcome_detail = f"{self._request.labels[COMMAND]} {how}"

    def _end_processes(self) -> None:
        """Kill the processes that the command left. Attached systems continue to run."""
        if self.record.ended_by == "itself" and (self.record.exit or {}).get("killed_by_guard"):
            self.record.notes.append(LEFT_RUNNING)
        left = [i for i in self.record.processes.end_all() if i not in (COMMAND, PROBE)]
        if left:
            self.record.notes.append(
                f"wattwire ended {plural(len(left), 'remaining process', 'remaining processes')}"
            )

    def _take_topics(self, probe: ProbeOfRun) -> None:
        """Take what the probe watched. Alone, it counts the messages of the run."""
        record, request = self.record, self._request
        result = probe.watched(record.span)
        tables = [record.after[name] for name in request.summed]
        record.topics = document_of(result, [m for table in tables for m in table["members"]])
        values, missing = figures_of(result)
        record.values |= values
        record.notes += [*missing, *late_subscriptions(result)]
        if request.is_only_probe:
            record.messages = float(sum(stream.messages for stream in result.streams))

    def _take_paths(self, layers: dict[str, Any]) -> None:
        """Take the latencies of topics and paths as figures; those of the output have priority."""
        values, notes = figures_of_layers(layers, self.record.values)
        self.record.values |= values
        self.record.notes += notes

    def _count(self) -> None:
        record, request = self.record, self._request
        record.messages = request.messages
        is_cut = any(tail.truncated for tail in self._tails)
        cut = "the output exceeds the size limit of its log"
        after = " after the warm-up" if request.warms_up else ""
        record.values = {} if is_cut else dict(self._values.values)
        problems = {} if is_cut else self._values.problems
        record.notes += problems.values()
        missing = [n for n in self._values.names if n not in {*record.values, *problems}]
        if missing:
            cause = cut if is_cut else f"no output{after} contained"
            joint = ", so there is no" if is_cut else ""
            record.notes.append(f"--value-from: {cause}{joint} {', '.join(missing)}")
        if self._counter is None:
            return
        record.messages = self._counter.count
        if is_cut:
            record.messages = None
            record.notes.append(f"{cut}, so messages are not counted")
        elif record.messages is None:
            record.notes.append(
                self._counter.problem
                or f'--count-from: no output{after} matched "{request.count_from}"'
            )
        else:
            record.totals = self._counter.totals(POLL_S)
