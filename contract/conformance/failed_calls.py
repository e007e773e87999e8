"""Scenario for calls that a server of another run answers with errors (C-36)."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

from .cell import Problem, Skipped
from .process import NodeProcess
from .samples import FAILED, UNKNOWN_NS, WARM_UP, Record
from .scenario import Bench, Scenario
from .spec import SENDER_NODE
from .wire import await_line, go, stop

CALLS = 10
ADDRESS = re.compile(r"(127\.0\.0\.1|localhost):(\d+)")
READ_BYTES = 65_536


class Proxy:
    """A TCP proxy to a local port; `redirect` closes all connections and changes the port."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def redirect(self, port: int) -> None:
        with self._lock:
            self._target = port
            self._disconnect()

    def close(self) -> None:
        self._listener.close()
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._open = []

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                near = self._listener.accept()[0]
                with self._lock:
                    try:
                        far = socket.create_connection(("127.0.0.1", self._target))
                    except OSError:
                        near.close()
                        continue
                    self._open += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Copy bytes from `source` to `sink` until the end, then shut down writes to `sink`."""
    with contextlib.suppress(OSError):
        while data := source.recv(READ_BYTES):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def answered_with_errors(bench: Bench) -> list[Problem]:
    """Return the breaches of a client whose calls reach a server of another run.

    The client first matches the server of its run. The other server must reject its calls.
    """
    cell = bench.cell
    if not cell.error_replies:
        raise Skipped("the middleware has no error replies; servers do not answer foreign calls")
    bench.need("loop.closed")
    bench.need_own_host("the proxy that redirects the calls")
    changes: dict[str, Any] = {"loop": "closed", "count": CALLS, "period_ns": 0, "duration_ns": 0}
    if "keep_alive" in cell.settings and cell.excluded.get("keep_alive") != "off":
        changes["settings__keep_alive"] = "off"  # the proxy closes kept connections
    own_server = bench.single(bench.lone_spec("service", "server"))
    foreign_peer = {"peers__nodes": [SENDER_NODE + 1]}
    foreign_server = bench.single(bench.lone_spec("service", "server", **foreign_peer))
    nodes, proxy = [own_server, foreign_server], None
    try:
        proxy = Proxy(_port(own_server)[1])
        address, port = _port(own_server)
        client = bench.single(
            bench.lone_spec("service", "client", **changes)
            | {"peers.endpoints": [address.replace(f":{port}", f":{proxy.port}", 1)]}
        )
        nodes.append(client)
        await_line(client, "READY", "C-07")
        proxy.redirect(_port(foreign_server)[1])
        for node in (foreign_server, client):
            go(node)
        sent = await_line(client, "SENT", "C-14")
        done, records, problems = stop(client)
        foreign_count = stop(foreign_server)[0].get("foreign")
    finally:
        for node in nodes:
            node.kill()
        if proxy is not None:
            proxy.close()
    breaches = _breaches(sent, done, records, foreign_count)
    return problems + [Problem("C-36", f"{client.label}: {text}") for text in breaches]


def _port(server: NodeProcess) -> tuple[str, int]:
    """Return the endpoint of a listening server, and the port in it."""
    endpoint = await_line(server, "LISTENING", "C-06")["endpoints"][0]
    address = ADDRESS.search(endpoint)
    if address is None:
        raise Skipped(f"the endpoint {endpoint} has no port of this host")
    return endpoint, int(address[2])


def _breaches(
    sent: dict[str, Any], done: dict[str, Any], records: list[Record], foreign_count: int | None
) -> Iterator[str]:
    """Yield a text for each breach; the server rejected `foreign_count` calls (None: unknown)."""
    if foreign_count is not None and foreign_count != CALLS:
        yield f"the number of calls that the server rejected is {foreign_count}; expected {CALLS}"
    flags = sorted({record.flags & ~WARM_UP for record in records})
    if flags != [FAILED] or len(records) != CALLS:
        yield (
            f"{CALLS} calls ended with errors; the file has {len(records)} records with the flags "
            f"{flags}; expected {CALLS} with the flag {FAILED} (failed)"
        )
    if any(record.end_ns != UNKNOWN_NS for record in records):
        yield "end_ns of a failed call must be unknown"
    counts = {"sent": CALLS, "received": 0, "corrupt": 0, "recorded": CALLS}
    done_counts = {name: done.get(name) for name in counts}
    if done_counts != counts or sent.get("sent") != CALLS:
        yield f"DONE reports {done_counts}, SENT reports sent {sent.get('sent')}; expected {counts}"


def scenarios(patterns: list[str]) -> list[Scenario]:
    if "service" not in patterns:
        return []
    return [Scenario("failed-calls", ("C-36",), answered_with_errors)]
