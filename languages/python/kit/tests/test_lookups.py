"""Neither the kit nor a cell reads the spec or uses JSON for each message (C-31)."""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from chains import chain_specs
from pairs import LISTENERS, ROOT, settings, spec
from wattwire_kit import Kit

CALLS = 40
CELLS = [("loopback", pattern) for pattern in LISTENERS]
CELLS += [
    (cell, pattern) for cell in ("udp", "tcp") for pattern in LISTENERS if pattern != "action"
]
LOOPS: dict[str, dict[str, Any]] = {
    "one at a time": {"outstanding_max": 1},
    "overlapping": {"outstanding_max": 4},
    "own timer": {"pacing": "native"},
}


class CountedSpec(Mapping[str, Any]):
    """A spec that counts look-ups of its keys."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values, self.lookups = values, 0

    def __getitem__(self, key: str) -> Any:
        self.lookups += 1
        return self._values[key]

    def restart(self) -> None:
        self.lookups = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Lines:
    """A fake dialogue that stores the lines; tests call `go` and `end`."""

    def __init__(self) -> None:
        self.start_ns: int | None = None
        self.stop_ns: int | None = None
        self.go_or_stop, self.stop = threading.Event(), threading.Event()
        self.fields: dict[str, dict[str, Any]] = {}
        self.printed = {word: threading.Event() for word in ("LISTENING", "READY", "SENT", "DONE")}
        self.at_ready: Callable[[], None] = lambda: None

    def line(self, keyword: str, fields: dict[str, Any]) -> None:
        self.fields[keyword] = fields
        if keyword == "READY":
            self.at_ready()
        self.printed[keyword].set()

    def expect(self, keyword: str) -> dict[str, Any]:
        assert self.printed[keyword].wait(60), f"no {keyword}"
        return self.fields[keyword]

    def go(self, start_ns: int) -> None:
        self.start_ns = start_ns
        self.go_or_stop.set()

    def end(self) -> None:
        self.stop_ns = time.monotonic_ns()
        self.stop.set()
        self.go_or_stop.set()


class Node:
    """A role of a cell in a thread of this process."""

    def __init__(self, role: Any, values: dict[str, Any], out: Path) -> None:
        out.mkdir(parents=True)
        self.lines, self.spec = Lines(), CountedSpec(values)
        # In the thread of the node, because it goes on at once after READY.
        self.lines.at_ready = self.spec.restart
        kit = Kit(self.spec, self.lines, time.monotonic_ns(), str(out))  # type: ignore[arg-type]

        def run() -> None:
            role(kit)
            kit.finish()

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()


@pytest.fixture
def roles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a function that finds a cell's role; remove the cell's modules after the test."""
    cell = ROOT / "middleware" / request.param / "python"
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(cell))
    names = {path.stem for path in cell.glob("*.py")}
    for name in names & before:
        monkeypatch.delitem(sys.modules, name)

    def function_of(pattern: str, role: str) -> Any:
        if role == "relay":
            return importlib.import_module("pipeline").relay
        if pattern == "pipeline":
            pattern, role = "topic", {"source": "publisher", "sink": "subscriber"}[role]
        module = {"topic": "topic", "action": "action"}.get(pattern, "service")
        sends = role == LISTENERS[pattern][1]
        verbs = ("publish", "subscribe") if pattern == "topic" else ("client", "server")
        return getattr(importlib.import_module(module), verbs[0 if sends else 1])

    yield function_of
    for name in names:
        sys.modules.pop(name, None)


def lookups(
    roles: Any, middleware: str, pattern: str, out: Path, count: int, changes: dict[str, Any]
) -> tuple[int, int]:
    """Return the numbers of spec look-ups of both sides after READY, with `count` messages."""
    listening, sending = LISTENERS[pattern]
    window = {"period_ns": 1_000_000, "duration_ns": count * 1_000_000, "action__feedback": 2}
    common = {**window, "run": f"look{time.monotonic_ns()}", "timeout_ns": 10**10, **changes}
    values = spec(pattern, listening, 1, [2], **common) | settings(middleware)
    receiver = Node(roles(pattern, listening), values, out / "receiver")
    endpoints = receiver.lines.expect("LISTENING")["endpoints"]
    values = spec(pattern, sending, 2, [1], **common) | settings(middleware)
    sender = Node(roles(pattern, sending), values | {"peers.endpoints": endpoints}, out / "sender")
    nodes = (receiver, sender)
    for node in nodes:
        node.lines.expect("READY")
    start_ns = time.monotonic_ns() + 100_000_000
    for node in nodes:
        node.lines.go(start_ns)
    sent = sender.lines.expect("SENT")
    for node in nodes:
        node.lines.end()
        received = node.lines.expect("DONE")["received"]
        node.thread.join(60)
    assert sent["sent"] + sent["skipped"] == count and (
        received == sent["sent"] or pattern == "topic"
    )
    return receiver.spec.lookups, sender.spec.lookups


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which every use of JSON in this process adds its function's name."""
    names: list[str] = []

    def counted(name: str, function: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            names.append(name)
            return function(*args, **options)

        return call

    for name in ("dumps", "loads"):
        monkeypatch.setattr(json, name, counted(name, getattr(json, name)))
    return names


def relay_lookups(roles: Any, middleware: str, out: Path, count: int) -> int:
    """Return the number of spec look-ups of a relay after READY, with `count` messages."""
    window = {"period_ns": 1_000_000, "duration_ns": count * 1_000_000, "timeout_ns": 10**10}
    nodes: list[Node] = []
    endpoints: list[str] = []
    for values in reversed(chain_specs(middleware, 1, **window)):
        role = values["role"]
        node = Node(roles("pipeline", role), values | {"peers.endpoints": endpoints}, out / role)
        nodes.append(node)
        if role != "source":
            endpoints = node.lines.expect("LISTENING")["endpoints"]
    sink, relay, source = nodes
    for node in nodes:
        node.lines.expect("READY")
    start_ns = time.monotonic_ns() + 100_000_000
    for node in nodes:
        node.lines.go(start_ns)
    assert source.lines.expect("SENT")["sent"] == count
    for node in (source, relay, sink):
        node.lines.end()
    for node in nodes:
        node.lines.expect("DONE")
        node.thread.join(60)
    assert relay.lines.fields["DONE"]["recorded"] == count
    return relay.spec.lookups


@pytest.mark.parametrize("roles", ["loopback", "udp", "tcp"], indirect=True)
def test_the_lookups_of_a_relay_do_not_depend_on_the_number_of_messages(
    roles: Any, tmp_path: Path, texts: list[str], request: pytest.FixtureRequest
) -> None:
    middleware = request.node.callspec.params["roles"]
    once = relay_lookups(roles, middleware, tmp_path / "1", CALLS)
    assert once == relay_lookups(roles, middleware, tmp_path / "2", 2 * CALLS)
    assert texts == []


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("roles", "pattern"), CELLS, indirect=["roles"], ids=[f"{m}-{p}" for m, p in CELLS]
)
def test_the_number_of_lookups_does_not_depend_on_the_number_of_messages(
    roles: Any, pattern: str, loop: str, tmp_path: Path, texts: list[str],
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    middleware = request.node.callspec.params["roles"]
    changes = LOOPS[loop]
    if middleware != "loopback" and "pacing" in changes:
        pytest.skip("the cell has no timer of its own")
    once = lookups(roles, middleware, pattern, tmp_path / "1", CALLS, changes)
    twice = lookups(roles, middleware, pattern, tmp_path / "2", 2 * CALLS, changes)
    assert once == twice
    assert texts == []
