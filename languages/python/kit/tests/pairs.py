"""Runs pairs of nodes for the tests of the kits, as the harness does."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Any

from contract.conformance.process import LINES_ON_THREE

ROOT = Path(__file__).resolve().parents[4]
PYTHON_KIT = ROOT / "languages" / "python" / "kit"
RECORD = Struct("<QqqqIHBB")
UNKNOWN = -(2**63)
COUNTER = 2**48 - 1
WARM_UP, FAILED, TIMEOUT, CORRUPT = 1, 2, 4, 8
LISTENERS = {
    "topic": ("subscriber", "publisher"),
    "service": ("server", "client"),
    "action": ("action_server", "action_client"),
    "pingpong": ("pong", "ping"),
}
CAPABILITIES = [
    "encoding.bytes", "encoding.text", "encoding.record", "pacing.kit", "pacing.native",
    "loop.open", "loop.closed", "reply.echo", "reply.ack", "reply.literal", "literal",
    "async_client",
]  # fmt: skip
PAYLOAD_BYTES_MAX = 67_108_864
OVERRUN_NS = 60_000_000_000
"""A schedule ends by its count, also on a machine that stalls: its overrun would drop messages."""
_built: dict[Path, Path] = {}


def spec(pattern: str, role: str, node: int, peers: list[int], **changes: Any) -> dict[str, Any]:
    """Return a spec without settings; keys in `changes` have `__` in place of the dot."""
    values: dict[str, Any] = {
        "contract": 3, "run": "test0", "cell": "loopback/python", "pattern": pattern,
        "role": role, "node": node, "index": 0, "peers.nodes": peers,
        "peers.count": len(peers), "peers.endpoints": [], "loop": "open",
        "period_ns": 2_000_000, "phase_ns": 0, "duration_ns": 100_000_000, "count": 0,
        "count_beyond": 0, "warmup_ns": 0, "overrun_ns": OVERRUN_NS, "timeout_ns": 500_000_000,
        "outstanding_max": 1, "quiet_ms": 50, "linger_ms": 2000, "ready_timeout_ms": 10_000,
        "pacing": "kit", "spin_ns": 0, "payload.bytes": 64, "payload.encoding": "bytes",
        "payload.seed": 7, "payload.literal": "", "reply": "echo", "reply.literal": "",
        "verify": "full", "action.feedback": 0, "record.capacity": 10_000, "tls.authority": "",
        "host.address": "127.0.0.1", "host.interface": "lo", "peers.addresses": ["127.0.0.1"],
        "tls.certificate": "", "tls.key": "", "security.governance": "",
        "security.permissions": "", "declared.roles": [role],
        "declared.capabilities": CAPABILITIES, "declared.payload_bytes_min": 0,
        "declared.payload_bytes_max": PAYLOAD_BYTES_MAX,
        "declared.record_bytes_max": PAYLOAD_BYTES_MAX,
    }  # fmt: skip
    for key, value in changes.items():
        values[key.replace("__", ".")] = value
    if values["loop"] == "closed":
        values.update(period_ns=0, duration_ns=0)
    return values


def settings(middleware: str, **changes: Any) -> dict[str, Any]:
    """Return the settings of a middleware and their types: its defaults, with `changes`."""
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib
    text = (ROOT / "middleware" / middleware / "middleware.toml").read_text()
    tables = tomllib.loads(text)["settings"]
    values: dict[str, Any] = {
        f"declared.{kind}_settings": [n for n, table in tables.items() if table["type"] == kind]
        for kind in ("string", "integer", "boolean")
    }
    for name, table in tables.items():
        values[f"settings.{name}"] = changes.get(name, table["default"])
    return values


def command(cell: str) -> list[str]:
    """Return the command of a cell's node; compiled nodes are built once per process."""
    source = ROOT / "middleware" / cell
    if cell.endswith("/python"):
        return [sys.executable, str(source / "node.py")]
    if source not in _built:
        folder = tempfile.TemporaryDirectory(prefix="wattwire-test-")
        atexit.register(folder.cleanup)
        target = Path(folder.name) / "node"
        flags = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
        kit = ROOT / "languages" / "cpp" / "kit"
        node = str(source / "node.cpp")
        subprocess.run(["g++", *flags, f"-I{kit}", node, "-o", str(target)], check=True)
        _built[source] = target
    return [str(_built[source])]


class Node:
    """A node process; `expect` reads its next line and checks the keyword."""

    def __init__(self, cell: str, values: dict[str, Any], folder: Path) -> None:
        self.spec, self.folder = values, folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "spec.json"
        path.write_text(json.dumps(values))
        environment = {**os.environ, "PYTHONPATH": str(PYTHON_KIT)}
        self.errors = (folder / "stderr").open("w+")
        self.process = subprocess.Popen(
            [*LINES_ON_THREE, *command(cell), "--spec", str(path), "--out", str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env=environment,
        )  # fmt: skip

    def expect(self, keyword: str) -> dict[str, Any]:
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        line_keyword, _, fields = line.partition(" ")
        if line_keyword != keyword:
            self.errors.seek(0)
            raise AssertionError(f"expected {keyword}, found {line!r}; {self.errors.read()}")
        return json.loads(fields)

    def write(self, text: str) -> None:
        self.process.stdin.write(text + "\n")  # type: ignore[union-attr]
        self.process.stdin.flush()  # type: ignore[union-attr]

    def code(self) -> int:
        return self.process.wait(timeout=30)

    def records(self) -> list[tuple[int, ...]]:
        data = (self.folder / "samples.bin").read_bytes()
        return [RECORD.unpack_from(data, at) for at in range(64, len(data), 40)]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            with contextlib.suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]


@dataclass
class Outcome:
    ready: list[dict[str, Any]] = field(default_factory=list)
    sent: dict[str, Any] = field(default_factory=dict)
    done: list[dict[str, Any]] = field(default_factory=list)
    records: list[list[tuple[int, ...]]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    start_ns: int = 0


def run_window(result: Outcome, nodes: list[Node], sender: Node) -> None:
    """Run the window of ready nodes: GO, SENT of the sender, STOP to it first, and all results."""
    result.start_ns = time.monotonic_ns() + 150_000_000
    for node in nodes:
        node.write(f"GO {result.start_ns}")
    result.sent = sender.expect("SENT")
    for node in [sender, *(node for node in nodes if node is not sender)]:
        node.write("STOP")
    for node in nodes:
        result.done.append(node.expect("DONE"))
        result.codes.append(node.code())
        result.records.append(node.records())


def run_pair(
    middleware: str, languages: tuple[str, str], pattern: str, folder: Path,
    planted: dict[str, Any] | None = None, **changes: Any,
) -> Outcome:  # fmt: skip
    """Run a listener (node 1) and a sender (node 2); all lists of the result have this order."""
    result = Outcome()
    token = f"t{os.getpid()}x{time.monotonic_ns() % 10**9}"
    common = {"run": token, **changes}
    listening, sending = LISTENERS[pattern]
    nodes: list[Node] = []
    try:
        values = settings(middleware) | spec(pattern, listening, 1, [2], **common)
        nodes.append(Node(f"{middleware}/{languages[0]}", values, folder / "listener"))
        endpoints = nodes[0].expect("LISTENING")["endpoints"]
        result.ready.append(nodes[0].expect("READY"))
        values = spec(pattern, sending, 2, [1], **common) | settings(middleware, **(planted or {}))
        values["peers.endpoints"] = endpoints
        nodes.append(Node(f"{middleware}/{languages[1]}", values, folder / "sender"))
        result.ready.append(nodes[1].expect("READY"))
        run_window(result, nodes, sender=nodes[1])
    finally:
        for node in nodes:
            node.close()
    return result


def counters(records: list[tuple[int, ...]], kind: int) -> list[int]:
    return sorted(record[0] & COUNTER for record in records if record[6] == kind)
