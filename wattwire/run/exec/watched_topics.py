"""Run a probe next to a command or attached systems, and derive what it watched in the window."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from wattwire.analysis.streams.figures import CPU_FIGURE, identifier
from wattwire.analysis.streams.numbers import Stream, Watched, watched
from wattwire.analysis.streams.recorded import Graph, ProbeFiles
from wattwire.analysis.streams.remarks import unusual
from wattwire.catalog import Catalog
from wattwire.model.deployment import PROBE, Request
from wattwire.model.errors import MissingError
from wattwire.model.words import duration
from wattwire.rig.agent import AgentError
from wattwire.run.exec.naming import node_names
from wattwire.run.probing.discovery import Discovery
from wattwire.run.run_processes import RunProcesses

Member = Mapping[str, Any]
"""A row of the agent's process table."""


class ProbeOfRun:
    """The probe of a run: its process, its search for publishers, and what it watched."""

    def __init__(self, request: Request, processes: RunProcesses) -> None:
        self._request, self._processes = request, processes
        self._folder = processes.out_of(PROBE)
        self._search = Discovery(time.monotonic())

    def start(self, members_period_ms: int) -> None:
        """Start the probe. Raises MissingError if its program cannot be executed."""
        self._folder.mkdir(parents=True)
        argv = [*self._request.probe_command, "--out", str(self._folder)]
        env = dict(variable.split("=", 1) for variable in self._request.probe_env)
        submitted = self._processes.submit
        try:
            submitted(PROBE, argv, env, str(self._folder), members_period_ms=members_period_ms)()
        except AgentError as error:
            raise MissingError(f"{argv[0]}: the probe cannot be started ({error})") from error
        self._search = Discovery(time.monotonic())

    def is_settled(self) -> bool:
        """Return whether the probe found no new publisher for a while, or searched long enough."""
        return self._search.is_over(ProbeFiles(self._folder).read_facts(), time.monotonic())

    def problem(self, is_stopped: bool) -> str:
        """Return how the probe ended, with its last words; "" while it runs.

        With `is_stopped`, it may have ended as requested, which is no problem.
        """
        state = self._processes.states.get(PROBE)
        if state is None or state.exit is None or (is_stopped and state.exit.get("code") == 0):
            return ""
        last_words = " ".join(" ".join(self._processes.logs_of(PROBE)).split())[-500:]
        how = self._processes.describe_exit(PROBE)
        return f"the probe {how}" + (f": {last_words}" if last_words else "")

    def watched(self, span: tuple[int, int]) -> Watched:
        """Return the numbers of the window (begin and end, ns)."""
        files = ProbeFiles(self._folder)
        result = watched(files.read_facts(), files.read_records(), *span)
        remedies = Catalog().probe(self._request.probe).remedies
        return replace(result, printed=self._request.printed_names, remedies=remedies)


def late_subscriptions(result: Watched) -> Iterator[str]:
    """Yield the notes on figures that are not of the whole window."""
    for topic, after_s in result.subscribed_s.items():
        if not result.graph.topics[topic].get("resubscribed"):
            yield (
                f"{topic}: the probe subscribed {duration(after_s)} after the begin of the window, "
                "so its figures are those of the rest"
            )


def document_of(result: Watched, members: Iterable[Member]) -> dict[str, Any]:
    """Return the run document's part: the streams, their readers, remarks, and what was not read.

    A stream has the `pid` of the process that published it, and a reader that of its process; None
    if it is none of the measured `members`, or if the middleware does not tell. `published` is the
    number of messages: of a stream, or of all streams that match a reader.
    """
    graph, members = result.graph, list(members)
    facts = {fact["gid"]: fact for fact in graph.streams.values()}
    return {
        "window_s": result.window_s,
        "streams": [
            {**stream.as_json(), "published": _published(stream),
             "pid": pid_of(facts.get(stream.gid, {}), members)}
            for stream in result.streams
        ],
        "readers": list(_readers(graph, result.streams, members)),
        "unread": [
            {name: topic[name] for name in ("topic", "type", "problem")}
            for topic in graph.topics.values()
            if topic["problem"]
        ],
        "excluded": sorted(graph.scan.get("excluded", [])),
        "mismatches": graph.mismatches,
        "remarks": list(unusual(result, result.remedies)),
        "cost": None if result.cost is None else asdict(result.cost),
    }  # fmt: skip


def _published(stream: Stream) -> int:
    """Return the number of messages, which are those that the probe took if it sees no numbers."""
    if stream.faults is None:
        return stream.messages
    return stream.messages + stream.faults.lost - stream.faults.repeated


def pid_of(endpoint: Mapping[str, Any], members: Iterable[Member]) -> int | None:
    """Return the process of a publisher or reader: by its number, or by the name of its node.

    The middleware may give the lower bits of the process's number, and a command line the names of
    its nodes. Neither decides if it fits several processes.
    """
    number, node = endpoint.get("process"), str(endpoint.get("node", "")).strip("/")
    if number is not None:
        pids = {m["pid"] for m in members if m["pid"] % number["modulus"] == number["pid"]}
    else:
        pids = {m["pid"] for m in members if node and node in node_names(m["argv"])}
    return pids.pop() if len(pids) == 1 else None


def _readers(
    graph: Graph, streams: Iterable[Stream], members: list[Member]
) -> Iterator[dict[str, Any]]:
    """Yield each reader with the number of messages that were published for it.

    `subscriptions` is their number of a node in a process on a topic. They are one reader, because
    the facts do not tell whether they followed one another.
    """
    apart = {(fact["sending_gid"], fact["receiving_gid"]) for fact in graph.mismatches}
    readers: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for fact in graph.readers.values():
        number = fact["process"] and tuple(fact["process"].values())
        readers.setdefault((fact["topic"], fact["node"], number), []).append(fact)
    for (topic, *_), facts in readers.items():
        own = [
            stream for stream in streams
            if stream.topic == topic and any((stream.gid, f["gid"]) not in apart for f in facts)
        ]  # fmt: skip
        yield {
            **{name: facts[-1][name] for name in ("topic", "node", "qos")},
            "pid": pid_of(facts[-1], members),
            "subscriptions": len(facts),
            "published": sum(map(_published, own)),
        }


def cpu_per_message(
    document: Mapping[str, Any], processes: Iterable[Mapping[str, Any]]
) -> dict[str, float]:
    """Return the figure of each process: CPU time (µs) per message, over all its topics.

    The messages of a process are those that it published and those that were published for its
    subscriptions. Processes of one name have no figure, because the next run could exchange them.
    """
    handled: dict[int, int] = {}
    for end in (*document["streams"], *document["readers"]):
        if end["pid"] is not None:
            handled[end["pid"]] = handled.get(end["pid"], 0) + end["published"]
    rows = [row for row in processes if handled.get(row.get("pid", 0)) and row["cpu_s"]]
    names = [identifier(row["process"]) for row in rows]
    return {
        f"{name}_{CPU_FIGURE}": 1e6 * row["cpu_s"] / handled[row["pid"]]
        for name, row in zip(names, rows, strict=True)
        if names.count(name) == 1
    }
