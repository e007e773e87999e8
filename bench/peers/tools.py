"""Compare cells with clients and servers that others wrote, on one core and on a core each.

A bare client shares the habits of those who wrote the cell. An independent tool shows what both
have in common. The message is the text TEXT, and its reply is the same text, so a tool needs no
payload of the contract.
"""

from __future__ import annotations

import functools
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from bench.calls import COMPILED_LATE, TEXT, WARM_CALLS, cores, sleep_until, started
from bench.nodes import Bench
from bench.packages import is_absent
from bench.pairs import Comparison, abba, compared, table
from bench.peers.step_costs import thread_times
from bench.turns import on_cores
from contract.conformance.cell import CellUnderTest
from contract.conformance.leftovers.watchdog import WATCHDOG
from contract.conformance.process import NodeProcess

PAIRS = 8
PROMISE = 1.25
"""A cell that takes longer than this ratio needs an explanation or a repair."""
AGREEMENT = 1.15
CALLS = 1500
SLOW_SIDE_S = 5.0
"""Time after which a tool stops on a slow server, so that it makes fewer calls than CALLS."""
SOCKET_BYTES = 64
SOCKET_CALLS = 100_000
"""Calls of udp/cpp and tcp/cpp, which take about as long as sockperf's TOOL_S. The first thousands
of such short calls take a fifth longer than later ones.
"""
TOOL_S = 2
HANG_S = 120.0
CONTENT_TYPE = "text/plain; charset=utf-8"
UNITS_US = {"us": 1.0, "ms": 1e3, "s": 1e6}
PROTO = Path(__file__).parents[2] / "middleware" / "grpc" / "idl" / "wattwire.proto"


@dataclass(frozen=True)
class Tool:
    """A load generator. `argv` gets its endpoint, its number of calls and a folder for files.

    `median_us` reads the median latency (µs) from its output, and raises ValueError if a call
    failed.
    """

    program: str
    middleware: str
    argv: Callable[[str, int, Path], list[str]]
    median_us: Callable[[str], float]
    counts_calls: bool = True
    """Whether it ends after the number of calls, not after a time."""


def _oha(endpoint: str, calls: int, _: Path) -> list[str]:
    request = ["-m", "POST", "-d", TEXT, "-T", CONTENT_TYPE]
    return ["oha", "--no-tui", "--json", "-c", "1", "-n", str(calls), *request, endpoint]


def _oha_median_us(output: str) -> float:
    result = json.loads(output)
    if set(result["statusCodeDistribution"]) != {"200"}:
        raise ValueError(f"oha: {result['statusCodeDistribution']} {result['errorDistribution']}")
    return 1e6 * float(result["latencyPercentiles"]["p50"])


def _wrk(endpoint: str, _: int, folder: Path) -> list[str]:
    script = folder / "post.lua"
    script.write_text(
        f'wrk.method = "POST"\nwrk.body = "{TEXT}"\n'
        f'wrk.headers["Content-Type"] = "{CONTENT_TYPE}"\n'
    )
    limits = ["-t", "1", "-c", "1", "-d", f"{TOOL_S}s"]
    return ["wrk", *limits, "--latency", "-s", str(script), endpoint]


def _wrk_median_us(output: str) -> float:
    found = re.search(r"50%\s+([0-9.]+)(us|ms|s)\b", output)
    if found is None or "Non-2xx" in output:
        raise ValueError(f"wrk: {output[-300:]}")
    return float(found[1]) * UNITS_US[found[2]]


def _ghz(endpoint: str, calls: int, _: Path) -> list[str]:
    call = ["--insecure", "--proto", str(PROTO), "--call", "wattwire.Calls.Text"]
    message = ["-d", json.dumps({"data": TEXT})]
    return ["ghz", *call, *message, "-c", "1", "-n", str(calls), "-O", "json", endpoint]


def _ghz_median_us(output: str) -> float:
    result = json.loads(output)
    if set(result["statusCodeDistribution"]) != {"OK"}:
        raise ValueError(f"ghz: {result['statusCodeDistribution']} {result['errorDistribution']}")
    (median_ns,) = [
        row["latency"] for row in result["latencyDistribution"] if row["percentage"] == 50
    ]
    return float(median_ns) / 1e3


@dataclass(frozen=True)
class ClientCost:
    """CPU time (µs) and voluntary context switches of a client, per call."""

    cpu_us: float
    switches: float


TOOLS = (
    Tool("oha", "rest", _oha, _oha_median_us),
    Tool("wrk", "rest", _wrk, _wrk_median_us, counts_calls=False),
    Tool("ghz", "grpc", _ghz, _ghz_median_us),
)
SOCKETS = ("udp/cpp", "tcp/cpp")
"""Cells beside sockperf. Its server and its client are a pair."""
SOCKET_PORTS = (11112, 11113)
SAME_SERVER = (("grpc/rust", "grpc/go"), ("rest/rust", "rest/go"))
"""Pairs of cells whose clients are compared on the server of the first."""


def report(workbench: Bench, pairs: int, patterns: Sequence[str]) -> None:
    """Print the comparisons of each placement, and which tools are absent."""
    for together in (True, False):
        placement = "one core" if together else "a core each"
        print(f"\n### Client and server on {placement}\n")
        rows = list(_comparisons(workbench, pairs, patterns, cores(together)))
        print(f"\n{table(rows)}", flush=True)


def _comparisons(
    workbench: Bench, pairs: int, patterns: Sequence[str], places: tuple[int, int]
) -> Iterator[Comparison]:
    """Yield the comparisons with all tools. `places` are the cores of client and server."""
    chosen = [
        name
        for name in workbench.catalog.cells
        if not name.endswith("-bare") and any(fnmatch(name, pattern) for pattern in patterns)
    ]
    for tool in TOOLS:
        if is_absent(tool.program):
            continue
        for name in chosen:
            if name.partition("/")[0] == tool.middleware:
                yield from _beside_tool(workbench, pairs, name, tool, places)
    for first, second in SAME_SERVER:
        if first in chosen and second in chosen:
            yield from _clients_of_one_server(workbench, pairs, first, second, places)
    if is_absent("sockperf"):
        return
    for name in SOCKETS:
        if name in chosen:
            yield from _beside_sockperf(workbench, pairs, name, places)


def _beside_tool(
    workbench: Bench, pairs: int, name: str, tool: Tool, places: tuple[int, int]
) -> Iterator[Comparison]:
    """Yield the comparison of a cell's client with a tool, each with a server of the cell."""
    cell = workbench.cell(name)
    if cell is None:
        return
    label = f"{name} beside {tool.program}, server {name}"
    costs: dict[str, list[ClientCost]] = {name: [], tool.program: []}
    ours = functools.partial(client_median_us, workbench, cell, cell, places, costs[name])
    theirs = functools.partial(tool_median_us, workbench, cell, tool, places, costs[tool.program])
    yield from _compared(label, abba(label, ours, theirs, pairs), PROMISE)
    _tell_costs(costs)


def _clients_of_one_server(
    workbench: Bench, pairs: int, first: str, second: str, places: tuple[int, int]
) -> Iterator[Comparison]:
    cells = [workbench.cell(name) for name in (first, second)]
    if cells[0] is None or cells[1] is None:
        return
    label = f"client {first} beside client {second}, server {first}"
    costs: dict[str, list[ClientCost]] = {first: [], second: []}
    sides = [
        functools.partial(client_median_us, workbench, cell, cells[0], places, costs[cell.name])
        for cell in cells
        if cell is not None
    ]
    yield from _compared(label, abba(label, sides[0], sides[1], pairs), PROMISE)
    _tell_costs(costs)


def _beside_sockperf(
    workbench: Bench, pairs: int, name: str, places: tuple[int, int]
) -> Iterator[Comparison]:
    cell = workbench.cell(name)
    if cell is None:
        return
    label = f"{name} beside sockperf"
    ours = functools.partial(
        client_median_us, workbench, cell, cell, places, [], SOCKET_BYTES, SOCKET_CALLS
    )
    by_tcp = name.startswith("tcp/")
    theirs = functools.partial(_sockperf_median_us, by_tcp, places, workbench.folder)
    yield from _compared(label, abba(label, ours, theirs, pairs), AGREEMENT)


def _compared(
    label: str, sides: tuple[tuple[float, ...], tuple[float, ...]], promise: float
) -> Iterator[Comparison]:
    for comparison in compared(label, "µs", sides, promise):
        limits = f"{comparison.limit(-1):.3f} … {comparison.limit(1):.3f}"
        print(f"  {label}: {comparison.ratio:.3f} ({limits})", file=sys.stderr, flush=True)
        yield comparison


def _tell_costs(costs: Mapping[str, Sequence[ClientCost]]) -> None:
    """Print the medians of the clients' costs, which explain a ratio of latencies."""
    for name, found in costs.items():
        if found:
            cpu_us = statistics.median(cost.cpu_us for cost in found)
            switches = statistics.median(cost.switches for cost in found)
            line = f"{cpu_us:.1f} µs of CPU time and {switches:.2f} voluntary switches per call"
            print(f"  client {name}: {line}", flush=True)


def client_median_us(
    workbench: Bench,
    client: CellUnderTest,
    server: CellUnderTest,
    places: tuple[int, int],
    costs: list[ClientCost],
    payload_bytes: int = 0,
    calls: int = CALLS,
) -> float:
    """Return the median latency (µs) of a cell's consecutive calls to a server.

    Append the client's costs to `costs`. With `payload_bytes`, messages are payloads of the
    contract; otherwise the text TEXT.
    """
    warm = _warm_calls(client, server)
    payload = {}
    if payload_bytes:
        payload = {
            "payload.encoding": "bytes", "payload.bytes": payload_bytes, "payload.literal": "",
            "reply": "echo", "reply.literal": "", "verify": "header",
        }  # fmt: skip
    pinned_client, pinned_server = (
        _pinned(cell, core) for cell, core in zip((client, server), places, strict=True)
    )
    with started(
        workbench, pinned_server, warm + calls, "client", "server", client=pinned_client, **payload
    ) as group:
        before = _client_cost(group.node("client").pid)
        group.go()
        sleep_until(group.start_ns)
        group.wait_sent()
        after = _client_cost(group.node("client").pid)
        costs.append(_per_call(before, after, warm + calls))
        group.finish()
        records = group.samples(group.node("client")).records
    answered = sorted(
        (record for record in records if not record.flags), key=lambda record: record.begin_ns
    )[warm:]
    if len(answered) < 0.9 * calls:
        raise RuntimeError(f"{client.name}: only {len(answered)} of {calls} calls were answered")
    return statistics.median(record.end_ns - record.begin_ns for record in answered) / 1e3


def tool_median_us(
    workbench: Bench,
    server: CellUnderTest,
    tool: Tool,
    places: tuple[int, int],
    costs: list[ClientCost],
) -> float:
    """Return the median latency (µs) that a tool prints for a new server of the cell.

    Append the tool's costs to `costs`, unless the tool runs for a time instead of a number of
    calls. The difference between the two runs contains neither its start nor its end.
    """
    with started(workbench, _pinned(server, places[1]), CALLS, "server") as group:
        node = group.node("server")
        group.go()
        sleep_until(group.start_ns)
        endpoint = _endpoint(node)
        with on_cores(places[0]):
            warm = _warm_calls(server)
            begin, begin_s = _ended_cost(), time.monotonic()
            _output(tool.argv(endpoint, warm, workbench.folder), workbench.folder)
            middle, call_s = _ended_cost(), (time.monotonic() - begin_s) / warm
            calls = min(CALLS, max(warm, round(SLOW_SIDE_S / call_s)))
            output = _output(tool.argv(endpoint, calls, workbench.folder), workbench.folder)
            end = _ended_cost()
        group.finish()
    if tool.counts_calls and calls != warm:
        first, second = _per_call(begin, middle, 1), _per_call(middle, end, 1)
        costs.append(_per_call(first, second, calls - warm))
    return tool.median_us(output)


def _client_cost(pid: int) -> ClientCost:
    """Return the costs of a process since its start, over the threads that live."""
    times = thread_times({"client": pid}).values()
    return ClientCost(sum(cpu_ns for cpu_ns, _ in times) / 1e3, sum(waits for _, waits in times))


def _ended_cost() -> ClientCost:
    """Return the costs of all processes that this process started and that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ClientCost(1e6 * (used.ru_utime + used.ru_stime), used.ru_nvcsw)


def _per_call(before: ClientCost, after: ClientCost, calls: int) -> ClientCost:
    return ClientCost(
        (after.cpu_us - before.cpu_us) / calls, (after.switches - before.switches) / calls
    )


def _pinned(cell: CellUnderTest, core: int) -> CellUnderTest:
    """Return the cell with nodes that start on one core, as the tools do.

    A runtime sizes its pools by the cores at its start. If it is restricted later, its idle
    threads search for work on the only core.
    """
    return replace(cell, argv=("taskset", "--cpu-list", str(core), *cell.argv))


def _warm_calls(*cells: CellUnderTest) -> int:
    """Return the calls before the measured ones: more if one side compiles at run time."""
    languages = [cell.name.rpartition("/")[2] for cell in cells]
    return max(COMPILED_LATE.get(language, WARM_CALLS) for language in languages)


def _endpoint(node: NodeProcess) -> str:
    line = node.fields("LISTENING")
    return str(line["endpoints"][0])


def _output(argv: Sequence[str], folder: Path) -> str:
    result = subprocess.run(
        argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=HANG_S,
    )  # fmt: skip
    if result.returncode != 0:
        raise RuntimeError(f"{argv[0]}: exit {result.returncode}: {result.stderr[-300:].strip()}")
    return result.stdout


def _sockperf_median_us(by_tcp: bool, places: tuple[int, int], folder: Path) -> float:
    """Return the median round trip (µs) of sockperf's client with sockperf's server.

    Its TCP server waits with poll on two ports, because the server of tcp/cpp waits with poll for
    new connections. With one port, it would block in recvfrom, as the server of udp/cpp does.
    """
    address = ["-i", "127.0.0.1", "-p", str(SOCKET_PORTS[0])]
    argv = ["sockperf", "server", *address]
    if by_tcp:
        address.append("--tcp")
        ports = folder / "ports.txt"
        ports.write_text("".join(f"T:127.0.0.1:{port}\n" for port in SOCKET_PORTS))
        argv = ["sockperf", "server", "-f", str(ports), "-F", "poll"]
    size = ["-m", str(SOCKET_BYTES)]
    with on_cores(places[1]):
        server = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
    WATCHDOG.node_started(server.pid)
    try:
        with on_cores(places[0]):
            client = ["sockperf", "ping-pong", *address, *size, "-t", str(TOOL_S), "--full-rtt"]
            output = _output(client, Path(os.curdir))
    finally:
        server.kill()
        server.wait()
    found = re.search(r"percentile 50\.000 = +([0-9.]+)", output)
    if found is None:
        raise RuntimeError(f"sockperf printed no median: {output[-300:]}")
    return float(found[1])
