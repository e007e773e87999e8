"""Test that faults of a bridge are detected: by clause, or by an error of the client."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.process import NodeProcess
from contract.conformance.spec import base_spec, new_token
from contract.conformance.suite import run_suite
from tests.built_cells import built_cells
from wattwire.rig import CellBuild

HANG_S = 120.0
pytestmark = pytest.mark.slow
TO_CLIENT = '"""Queue a message of a topic for the client; any thread may call this method."""\n'
FROM_CLIENT = 'message = filled(publication.kind, fields.get("msg", {}), "msg")\n'
COUNTED = "self._number = getattr(self, '_number', -1) + 1"
FAULTS = {
    "drops every fourth message to a client": (
        TO_CLIENT, f"        {COUNTED}\n        if self._number % 4 == 3:\n            return\n",
        "C-29",
    ),
    "drops every fourth message from a client": (
        FROM_CLIENT, f"        {COUNTED}\n        if self._number % 4 == 3:\n            return\n",
        "C-29",
    ),
    "sends every message twice": (
        FROM_CLIENT, "        publication.publisher.publish(message)\n", "C-29",
    ),
    "alters the last byte": (
        FROM_CLIENT,
        "        message.data = message.data[:-1] + bytes([message.data[-1] ^ 1])\n", "C-21",
    ),
    "swaps the halves of payloads": (
        FROM_CLIENT, "        half = len(message.data) // 2\n"
        "        message.data = message.data[half:] + message.data[:half]\n", "C-29",
    ),
    "cuts the last byte": (
        FROM_CLIENT, "        message.data = message.data[:-1]\n", "C-21",
    ),
    "repeats the first payload": (
        FROM_CLIENT, "        message = self.__dict__.setdefault('_first', message)\n", "C-29",
    ),
}  # fmt: skip
"""Name → the statement before the fault, the fault, and the clause that it breaks."""
QUICK = ("alters the last byte",)
"""The fault that `make test-full` plants; `make test-all` plants all."""


class Change(NamedTuple):
    """A text in a file of the bridge, its replacement, and the cell that is the client."""

    file: str
    find: str
    new: str
    client: str = "rosbridge/python"


@pytest.fixture
def cell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CellUnderTest]:
    """Yield a client with a changed bridge."""
    file, find, new, client = request.param

    def faulty(build: CellBuild) -> CellBuild:
        environment = Path(build.words["environment"])
        folder = tmp_path / "faulty"
        shutil.copytree(environment / "source", folder / "source")
        (folder / "venv").symlink_to(environment / "venv")
        path = folder / "source" / "environment" / file
        text = path.read_text()
        assert text.count(find) == 1, f"{find!r} occurs {text.count(find)} times in {file}"
        path.write_text(text.replace(find, new))
        return replace(build, words={**build.words, "environment": str(folder)})

    with built_cells([client], tmp_path, faulty) as cells:
        yield cells[client]


def planted(name: str) -> Any:
    statement, fault, clause = FAULTS[name]
    marks = () if name in QUICK else (pytest.mark.matrix,)
    change = Change("bridge/protocol.py", statement, statement + fault)
    return pytest.param(change, clause, id=name, marks=marks)


@pytest.mark.parametrize(("cell", "clause"), [*map(planted, FAULTS)], indirect=["cell"])
def test_a_faulty_bridge_breaks_its_clause(cell: CellUnderTest, clause: str) -> None:
    results = run_suite(cell, only=["open[topic]"])
    failed = {result.clause: result.detail for result in results if result.status == "failed"}
    assert clause in failed, failed


@pytest.mark.matrix
@pytest.mark.parametrize(
    "cell", [Change("bridge/protocol.py", FROM_CLIENT, FROM_CLIENT)], indirect=True
)
def test_an_unchanged_bridge_breaks_no_clause(cell: CellUnderTest) -> None:
    results = run_suite(cell, only=["open[topic]"])
    assert [result for result in results if result.status == "failed"] == []


def repeating(client: str) -> Any:
    statement, fault, _ = FAULTS["sends every message twice"]
    path = "bridge/protocol.py"
    change = Change(path, statement, statement + fault, f"rosbridge/{client}")
    return pytest.param(change, id=client)


@pytest.mark.matrix
@pytest.mark.parametrize(
    "cell", [*map(repeating, ("python", "roslibpy", "javascript", "rust"))], indirect=True
)
def test_a_ping_ignores_repeated_replies_to_earlier_calls(cell: CellUnderTest) -> None:
    """Only the payload of a reply identifies its call, and the bridge sends each message twice."""
    results = run_suite(cell, only=["closed[pingpong]"])
    failed = {result.clause: result.detail for result in results if result.status == "failed"}
    assert "requests recorded more than once" in failed["C-25"]
    assert "C-21" not in failed, failed


def reason_of_client(cell: CellUnderTest, folder: Path, **settings: str) -> str:
    """Run a subscriber and a publisher; return the reason with which the subscriber ends."""
    changes: dict[str, Any] = {f"settings.{name}": value for name, value in settings.items()}
    with cell.service() as endpoints:
        changes |= {"run": new_token(), "peers.endpoints": endpoints}
        specs = {role: base_spec(cell, "topic", role) for role in ("subscriber", "publisher")}
        nodes = [NodeProcess(cell, {**spec, **changes}, folder / role, role)
                 for role, spec in specs.items()]  # fmt: skip
        try:
            line = nodes[0].wait_line("READY", HANG_S)
            if line is not None:
                for node in nodes:
                    assert node.wait_line("READY", HANG_S), node.last_output()
                    node.go(time.monotonic_ns() + 200_000_000)
            assert nodes[0].wait_exit(HANG_S) == 4, nodes[0].last_output()
            return str(nodes[0].fields("ERROR")["reason"])
        finally:
            for node in nodes:
                node.kill()


NO_CBOR = Change("bridge/messages.py", "    import cbor2\n", "    raise ImportError\n")
IGNORED = Change("bridge/protocol.py", 'fields.get("compression", "none")', '"none"')
SENT = "self._outbox.put(message)\n"
HALF = Change("bridge/protocol.py", SENT, "self._outbox.put(message[: len(message) // 2])\n")


def javascript(change: Change, settings: dict[str, str], parts: list[str]) -> Any:
    cell = change._replace(client="rosbridge/javascript")
    return pytest.param(cell, settings, parts, marks=pytest.mark.matrix)


@pytest.mark.parametrize(
    ("cell", "settings", "parts"),
    [
        (NO_CBOR, {"encoding": "cbor"},
         ["the bridge reports: subscribe: compression: found 'cbor'; allowed: none"]),
        (IGNORED, {"encoding": "cbor-raw"},
         ["the bridge speaks no CBOR", "'cbor-raw'", "Use settings.encoding = 'json'"]),
        (HALF, {"encoding": "json"}, ["the bridge sent '{", "no message of the protocol"]),
        (HALF, {"encoding": "cbor"}, ["the bridge sent b'", "no message of the protocol"]),
        javascript(NO_CBOR, {"encoding": "cbor"},
                   ["the bridge reports: subscribe: compression: found 'cbor'; allowed: none"]),
        javascript(IGNORED, {"encoding": "cbor"}, ["the bridge speaks no CBOR", "'cbor'"]),
        javascript(IGNORED, {"encoding": "cbor-raw"}, ["the bridge speaks no CBOR", "'cbor-raw'"]),
        javascript(HALF, {"encoding": "json"}, ["roslib reports: ", "JSON"]),
        javascript(HALF, {"encoding": "cbor-raw"}, ["roslib reports: "]),
    ],
    indirect=["cell"],
)  # fmt: skip
def test_a_client_names_what_is_wrong_with_its_bridge(
    cell: CellUnderTest, tmp_path: Path, settings: dict[str, str], parts: list[str]
) -> None:
    reason = reason_of_client(cell, tmp_path / "nodes", **settings)
    for part in parts:
        assert part in reason
