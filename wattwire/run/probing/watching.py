"""Start a probe, wait until it reads the system's topics, and end it."""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattwire.analysis.streams.recorded import Graph, ProbeFiles, Records
from wattwire.catalog import Probe
from wattwire.model.errors import EXIT_NOTHING_USABLE, MissingError, UsageError, WattwireError
from wattwire.model.words import listed_first
from wattwire.rig import AgentClient, CellBuild
from wattwire.rig.agent import AgentError, wait_event
from wattwire.rig.builds import merge_env
from wattwire.run.probing.discovery import GRAPH_S, Discovery

PROCESS = "probe"
POLL_S = 0.1
ENDS = (("INT", 10.0), ("KILL", 5.0))
"""Signals that end a probe, and the wait (s) after each."""
NAMES_MAX = 8


class NothingWatchedError(WattwireError):
    """No topic can be read, so there is no result."""

    exit_code = EXIT_NOTHING_USABLE


@dataclass(frozen=True)
class WatchRequest:
    """The topics to watch: patterns, and the domain of the system or ""."""

    patterns: Sequence[str] = ()
    excluded: Sequence[str] = ()
    domain: str = ""

    def command(self, build: CellBuild) -> list[str]:
        """Return the command of a probe, without its folder."""
        assert isinstance(build.cell, Probe)
        words = list(build.argv)
        for option, patterns in (
            ("--include", self.patterns),
            ("--exclude", self.excluded),
            ("--exclude-default", build.cell.excludes),
        ):
            for pattern in patterns:
                words += [option, pattern]
        return [*words, *(["--domain", self.domain] if self.domain else [])]


def environment_of(build: CellBuild) -> dict[str, str]:
    """Return a probe's variables: those of its build, before the user's own search paths."""
    inherited = {name: os.environ[name] for name in build.env if name in os.environ}
    return merge_env(inherited, build.env)


class Watch:
    """A running probe. Close it to end the probe."""

    def __init__(
        self, agent: AgentClient, build: CellBuild, request: WatchRequest, folder: Path
    ) -> None:
        assert isinstance(build.cell, Probe)
        self._agent, self._probe, self._request = agent, build.cell, request
        self._errors = folder / "probe.err"
        self._files = ProbeFiles(folder)
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._exit: dict[str, Any] | None = None
        self._token = f"topics{secrets.token_hex(6)}"
        agent.subscribe(PROCESS, self._events)
        agent.request(
            "spawn",
            process=PROCESS,
            run=self._token,
            argv=[*request.command(build), "--out", str(folder)],
            env=environment_of(build),
            cwd=str(folder),
            stdout=str(folder / "probe.out"),
            stderr=str(self._errors),
            clear_env=False,
            cpus=[],
        )

    @property
    def graph(self) -> Graph:
        """Return what the probe knows about the graph now."""
        return self._files.read_facts()

    def records(self) -> Records:
        """Return the records of all messages so far."""
        return self._files.read_records()

    def wait_settled(self) -> int:
        """Wait until the probe reads topics and finds no new publisher; return the time (ns).

        Raises NothingWatchedError, UsageError or MissingError if it reads no topic in time.
        """
        ignored = self._probe.excludes if self._request.patterns else None
        search = Discovery(time.monotonic(), ignored)
        is_over = False
        while not is_over:
            self.sleep(POLL_S)
            graph = self.graph
            is_over = search.is_over(graph, time.monotonic())
        if not search.readable:
            raise self._nothing(graph)
        return time.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        """Wait. Raises WattwireError with the probe's last words if the probe ends meanwhile."""
        self._follow(time.monotonic() + seconds)
        if self._exit is not None:
            raise WattwireError(
                f"the probe {self._probe.name} ended with {self._described_exit()}: "
                f"{self._last_words() or 'it printed nothing'}"
            )

    def _follow(self, until_s: float) -> None:
        """Wait until a time (s, monotonic) or the end of the probe."""
        while self._exit is None:
            event = wait_event(self._events, until_s)
            if event is None:
                return
            if event["event"] in ("exit", "guard_lost"):
                self._exit = event

    def _described_exit(self) -> str:
        event = self._exit or {}
        if event.get("signal"):
            return f"signal {event['signal']}"
        return f"code {event.get('code')}"

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self._errors.read_text(encoding="utf-8", errors="replace").split("\n")
            return " ".join(line.strip() for line in lines[-20:] if line.strip())[-1000:]
        return ""

    def close(self) -> None:
        """End the probe. It writes its last facts."""
        for signal, patience_s in ENDS:
            if self._exit is None and not self._agent.lost.is_set():
                with contextlib.suppress(AgentError):  # it has just ended
                    self._agent.request("signal", process=PROCESS, signal=signal, tree=True)
                self._follow(time.monotonic() + patience_s)
        self._agent.unsubscribe(PROCESS)

    # -- why nothing is read --------------------------------------------------------------------

    def _nothing(self, graph: Graph) -> WattwireError:
        """Return the error of a graph without a topic that can be read."""
        remedies = self._probe.remedies
        excluded = graph.scan.get("excluded", [])
        unread = [topic for topic in graph.topics.values() if topic["problem"]]
        if unread:
            first = unread[0]
            return MissingError(
                f"topics: no topic can be read. {first['topic']} has the type {first['type']}: "
                f"{first['problem']}. {remedies['no_type']}"
            )
        if graph.topics:
            names = listed_first(sorted(graph.topics), NAMES_MAX)
            return NothingWatchedError(
                f"topics: no publisher within {GRAPH_S:g} s; the topics are {names}. Start the "
                "nodes that publish."
            )
        if excluded and self._request.patterns:
            return UsageError(
                f"topics: no topic matches {' or '.join(self._request.patterns)}; the graph has "
                f"{listed_first(sorted(excluded), NAMES_MAX)}. Patterns are those of a shell: "
                "'/camera/*'."
            )
        nodes = graph.nodes.get("count", 0)
        scope = graph.probe.get("scope", {})
        variables = ", ".join(f"{name}={value}" for name, value in scope.items())
        contents = f"{nodes} nodes and no topic" if nodes else "no node and no topic"
        if excluded:
            contents += f" except {listed_first(sorted(excluded), NAMES_MAX)}, which is not read"
        return NothingWatchedError(
            f"topics: no graph within {GRAPH_S:g} s: the probe found {contents}. It searched with "
            f"{variables}. {remedies['no_graph']}"
        )


def watch_for(
    watch: Watch, seconds: float | None, period_s: float, show: Callable[[int], None]
) -> bool:
    """Call `show` (with the begin of the window, ns) once per period; return whether it was whole.

    Ctrl-C ends the window. Without `seconds`, only Ctrl-C does.
    """
    begin_ns = time.monotonic_ns()
    end_s = begin_ns / 1e9 + seconds if seconds is not None else float("inf")
    try:
        while (now_s := time.monotonic()) < end_s:
            watch.sleep(min(period_s, end_s - now_s))
            show(begin_ns)
    except KeyboardInterrupt:
        return seconds is None
    return True
