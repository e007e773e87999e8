"""Start the service processes of a run, wait until they are ready, and read their counters."""

from __future__ import annotations

import contextlib
import json
import queue
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from wattwire.model.deployment import process_of, service_of
from wattwire.rig.agent import AgentError, wait_event
from wattwire.rig.builds import substitute
from wattwire.run.lines import printable
from wattwire.run.run_processes import NodeEndedError, RunProcesses, discard_on, port_hint

SERVICE_TRIES = 3
READY_COMMAND_S = 5.0
"""Longest duration of a command that checks whether a service is ready."""
COUNTERS_S = 10.0
"""Longest duration of one reading of the counters of a service."""
END_S = 1.0
"""Time until a program that reads counters has ended after its input."""
COUNTER_NAME = re.compile(r"[A-Za-z][\w-]*", re.ASCII)
COUNTER_METRIC = "service_counter"
"""Metric of the growth of a counter: service_counter.SERVICE.NAME."""
BEFORE, AFTER = "before", "after"
"""Readings of counters: when the nodes are ready, and when they have ended."""


@dataclass
class Service:
    """A service process that is ready.

    - `process` is the name of its process, and `endpoints` are the entries for the nodes.
    - `facts` are the named groups of the line that it printed when it was ready.
    - `counters` is the command that prints its counters, with the environment `env`; () if none.
    - `readings` maps BEFORE and AFTER to the counters by name, or to {"absent": reason}.
    """

    process: str
    endpoints: list[str]
    facts: dict[str, str] = field(default_factory=dict)
    counters: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    readings: dict[str, dict[str, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the facts and readings for run.json, without empty entries."""
        entries = {"facts": self.facts, "counters": self.readings}
        return {name: value for name, value in entries.items() if value}

    @property
    def counted(self) -> dict[str, float]:
        """Return how much each counter grew between the readings; {} if a reading is absent.

        A counter that one reading lacks, or that fell, is not included.
        """
        before, after = self.readings.get(BEFORE, {}), self.readings.get(AFTER, {})
        if "absent" in before or "absent" in after:
            return {}
        return {
            name: value - before[name]
            for name, value in after.items()
            if name in before and value >= before[name]
        }


def endpoint_words(services: Iterable[Service]) -> dict[str, str]:
    """Return the placeholders of started services: `services.NAME` is the first endpoint."""
    return {
        f"services.{service_of(service.process)}": service.endpoints[0]
        for service in services
        if service.endpoints
    }


def start_service(
    processes: RunProcesses,
    name: str,
    table: dict[str, Any],
    address: str,
    token: str,
    timeout_s: float,
    common: Mapping[str, str] | None = None,
) -> Service:
    """Start a service that listens on `address`, and wait until it is ready.

    `common` are the placeholders of the middleware's build on the service's host, of the settings
    and of earlier services. If another process binds the port first, try another port, at most
    SERVICE_TRIES times.
    """
    problem, timed_out = "", False
    for attempt in range(SERVICE_TRIES):
        process = process_of(name, attempt)
        host, out = processes.host_of(process), processes.out_of(process)
        port_count = int(table.get("ports", 0))
        ports = host.agent.request("ports", count=port_count)["ports"] if port_count else []
        host.make_folder(out)
        words = {
            **(common or {}),
            "out": str(out),
            "token": token,
            "address": address,
            **{f"port{i}": str(p) for i, p in enumerate(ports)},
        }
        if ports:
            words["port"] = str(ports[0])
        for file, text in table.get("files", {}).items():
            host.write(out / file, substitute([text], words, {})[0].encode())
        argv = substitute(table["argv"], words, {})
        argv[0] = host.which(argv[0]) or argv[0]
        env = {k: substitute([v], words, {})[0] for k, v in table.get("env", {}).items()}
        processes.spawn(process, argv, env, lines=False)
        try:
            facts = _wait_ready(processes, process, table.get("ready", {}), words, timeout_s)
        except NodeEndedError as error:
            problem = f"{error}{_tail(processes, process)}"
            problem += f" (its ports: {', '.join(map(str, ports))})" if ports else ""
            timed_out = error.timed_out
            if timed_out:
                break
            continue
        endpoints = substitute(table.get("endpoints", []), words, {})
        counters = tuple(substitute(table.get("counters", []), words, {}))
        return Service(process, endpoints, facts, counters, env)
    raise NodeEndedError(name, f"could not be started: {problem}", timed_out)


def _wait_ready(
    processes: RunProcesses,
    process: str,
    ready: dict[str, Any],
    words: dict[str, str],
    timeout_s: float,
) -> dict[str, str]:
    """Wait until every condition of `ready` holds; return the named groups of `ready.line`."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        processes.drain()
        if processes.states[process].exit is not None:
            raise NodeEndedError(process, processes.describe_exit(process) + " before it was ready")
        facts = _serves(processes, process, ready, words)
        if facts is not None:
            return facts
        if time.monotonic() > deadline_s:
            raise NodeEndedError(process, f"was not ready within {timeout_s:g} s", timed_out=True)
        time.sleep(0.005)  # polling period, because a bound port causes no event


def _serves(
    processes: RunProcesses, process: str, ready: dict[str, Any], words: dict[str, str]
) -> dict[str, str] | None:
    """Return the named groups of `ready.line` if every condition holds, else None."""
    host, facts = processes.host_of(process), {}
    if "line" in ready:
        line = re.search(ready["line"], "".join(processes.logs_of(process)), re.MULTILINE)
        if line is None:
            return None
        facts = {name: text for name, text in line.groupdict().items() if text is not None}
    if "port" in ready:
        port = int(substitute([str(ready["port"])], words, {})[0])
        if not host.serves(words["address"], port):
            return None
    if "exec" in ready:
        try:
            code, _ = host.command(substitute(ready["exec"], words, {}), READY_COMMAND_S)
        except AgentError:  # the command did not start or did not end in time
            return None
        if code != 0:
            return None
    return facts


def _tail(processes: RunProcesses, process: str) -> str:
    """Return the last two lines of each log of a process, as text for an error message."""
    lines: list[str] = []
    for text in processes.logs_of(process):
        lines += text.strip().splitlines()[-2:]
    text = " / ".join(lines)
    return f" — end of its logs: {text}{port_hint(text)}" if lines else ""


def uses_counters(part: Any) -> bool:
    """Return whether any text of a study's document names a counter of a service.

    A reading can take a second, so only studies whose questions, limits, tables or figures use a
    counter read it.
    """
    if isinstance(part, str):
        return part.startswith(f"{COUNTER_METRIC}.")
    if isinstance(part, Mapping):
        return any(map(uses_counters, part.values()))
    return isinstance(part, list | tuple) and any(map(uses_counters, part))


class CounterReader:
    """The program that prints the counters of a service, through the agent of its host.

    A program that stays after a reading serves the later readings, too, over one connection. It
    waits for a line on its standard input, so that it sends nothing in the window.
    """

    def __init__(self, processes: RunProcesses, service: Service) -> None:
        self._host, self._service = processes.host_of(service.process), service
        self._process = f"{service.process}.counters"
        self._order: dict[str, Any] = {
            "run": processes.token,
            "argv": list(service.counters),
            "env": service.env,
            "cwd": str(processes.folder_of(service.process)),
            "stdout": "lines",
            "clear_env": False,
        }
        self._errors = processes.folder_of(service.process) / "logs" / f"{self._process}.err"
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._running = False

    def read(self, reading: str) -> None:
        """Store a reading in the service, or the reason why there is none.

        The counters describe a run but do not change its verdict.
        """
        try:
            self._service.readings[reading] = dict(parse_counters(self._output()))
        except (AgentError, ValueError) as error:
            self._service.readings[reading] = {"absent": printable(str(error))}

    def _output(self) -> str:
        """Return what the program prints until an empty line, or until its end with code 0."""
        has_stayed = self._running
        self._request()
        deadline_s, lines = time.monotonic() + COUNTERS_S, list[str]()
        while True:
            event = wait_event(self._events, deadline_s)
            if event is None:
                self.close()
                raise ValueError(f"the command printed no complete reading in {COUNTERS_S:g} s")
            if event["event"] == "line" and event["text"].strip():
                lines.append(event["text"])
            elif event["event"] == "line" and lines:
                return "\n".join(lines)
            elif event["event"] in ("exit", "guard_lost"):
                self._running = False
                if has_stayed and event.get("code") == 0 and not lines:
                    has_stayed = False  # it ended after the reading before
                    self._request()
                elif event.get("code") == 0:
                    return "\n".join(lines)
                else:
                    raise ValueError(f"the command ended with {self._end(event)}")

    def _request(self) -> None:
        """Request a reading from the program if it still runs, or start it."""
        agent = self._host.agent
        if self._running:
            with contextlib.suppress(AgentError):  # it has ended; its exit is the next event
                agent.request("write", process=self._process, text="\n")
            return
        agent.subscribe(self._process, self._events)
        discard_on(self._host, self._errors)
        agent.request("spawn", process=self._process, stderr=str(self._errors), **self._order)
        self._running = True

    def _end(self, event: Mapping[str, Any]) -> str:
        """Return the code or signal of the program and the end of its standard error."""
        text = ""
        with contextlib.suppress(AgentError):
            text = self._host.read(self._errors).decode(errors="replace").strip()[-200:]
        how = f"signal {event['signal']}" if event.get("signal") else f"code {event.get('code')}"
        return f"{how}: {text}" if text else how

    def close(self) -> None:
        """End the program: close its input, and kill it if it does not end soon."""
        agent = self._host.agent
        orders: dict[str, dict[str, Any]] = {
            "write": {"close": True},
            "signal": {"signal": "KILL", "tree": True},
        }
        for operation, fields in orders.items():
            if not self._running:
                break
            with contextlib.suppress(AgentError):  # it has ended
                agent.request(operation, process=self._process, **fields)
            self._await_end(time.monotonic() + END_S)
        self._running = False
        agent.unsubscribe(self._process)

    def _await_end(self, deadline_s: float) -> None:
        """Discard the events of the program until it ends."""
        while self._running and (event := wait_event(self._events, deadline_s)) is not None:
            self._running = event["event"] == "line"


def parse_counters(output: str) -> dict[str, float]:
    """Return the counters in the output of a command.

    The last line is a JSON object, or every line is a name and a number. Raises ValueError with
    the first entry that is no counter.
    """
    lines = output.strip().splitlines()
    if not lines:
        raise ValueError("the command printed no counter; allowed: a JSON object, or NAME NUMBER")
    if lines[-1].lstrip().startswith("{"):
        try:
            entries = list(json.loads(lines[-1]).items())
        except ValueError as error:
            raise ValueError(f"the last line is no JSON object: {error}") from error
    else:
        entries = [(name, _number(text)) for name, _, text in map(_split, lines)]
    for name, value in entries:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not COUNTER_NAME.fullmatch(name) or not is_number or not isfinite(value) or value < 0:
            raise ValueError(
                f"found the counter {name!r} = {value!r}; allowed: a name of letters, digits, - "
                "and _, and a number of at least 0"
            )
    return dict(entries)


def _split(line: str) -> tuple[str, str, str]:
    return line.strip().rpartition(" ")


def _number(text: str) -> Any:
    """Return the text as a number, or unchanged."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
