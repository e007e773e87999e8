"""The client in Octave: its MEX function, a bridge's invalid messages, and division of a stream."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.process import NodeProcess
from contract.conformance.spec import base_spec, new_token
from middleware.rosbridge.environment.streams import MessageStream
from tests.built_cells import built_cells
from tests.ros1_peers import HANG_S, error_reason
from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.rig.builds import require

OCTAVE = "rosbridge/octave"
MEX = "wattwire_kit.mex"
FOLDER = Path(__file__).resolve().parents[1] / "octave"
BUILT_WITH = b"wattwire_kit was built with Octave "


def test_without_octave_the_cell_is_absent_and_names_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="octave-cli"):
        require(Catalog().cell(OCTAVE).document["requires"], OCTAVE)


@pytest.fixture(scope="module")
def octave(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CellUnderTest]:
    with built_cells([OCTAVE], tmp_path_factory.mktemp("built")) as cells:
        yield cells[OCTAVE]


def node_with(cell: CellUnderTest, endpoints: list[str], folder: Path) -> NodeProcess:
    spec: dict[str, Any] = base_spec(cell, "topic", "subscriber")
    spec |= {"run": new_token(), "peers.endpoints": endpoints, "ready_timeout_ms": 600_000}
    return NodeProcess(cell, spec, folder, "subscriber")


# --- the MEX function ---------------------------------------------------------------------------


def of_another_octave(mex: bytes) -> bytes:
    """Return a MEX file that names another version; only its major digit differs."""
    digit = mex.index(BUILT_WITH) + len(BUILT_WITH)
    return mex.replace(BUILT_WITH + mex[digit : digit + 1], BUILT_WITH + b"6")


def without_its_library(mex: bytes) -> bytes:
    """Return a MEX file that needs a library of another version, which is not installed."""
    assert mex.count(b"libstdc++.so.") == 1
    return of_another_octave(mex).replace(b"libstdc++.so.", b"libstdcxx.so.")


def another_file(_mex: bytes) -> bytes:
    return b"no program"


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (of_another_octave, ["wattwire_kit was built with Octave 6."]),
        (without_its_library,
         ["wattwire_kit was built with Octave 6.", "cannot load it", "libstdcxx.so."]),
        (another_file, ["It is not a MEX file of wattwire_kit.", "cannot load it"]),
    ],
    ids=["another version", "another library", "another file"],
)  # fmt: skip
def test_a_mex_function_of_another_octave_is_refused(
    octave: CellUnderTest, tmp_path: Path, change: Any, parts: list[str]
) -> None:
    build = next(Path(word) for word in octave.argv if (Path(word) / MEX).is_file())
    (tmp_path / "build").mkdir()
    mex = tmp_path / "build" / MEX
    mex.write_bytes(change((build / MEX).read_bytes()))
    argv = [str(mex.parent) if word == str(build) else word for word in octave.argv]
    reason = error_reason(node_with(replace(octave, argv=argv), [], tmp_path / "node"))
    wanted = [*parts, f"{mex}: ", "This is Octave ", f"Delete the folder {mex.parent}, and run"]
    assert [part for part in wanted if part not in reason] == [], reason


# --- messages of the bridge ---------------------------------------------------------------------


@contextlib.contextmanager
def bridge_that_sends(data: bytes) -> Iterator[str]:
    """Yield the endpoint of a server that sends `data` to its client and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(HANG_S)
        host, port = server.getsockname()
        yield f"{host}:{port}"
        client, _ = server.accept()
        with client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65_536):  # closed unread data would reset the connection
                pass


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b'{"op"}', ['the bridge sent {"op"}, which is no message of the protocol']),
        (b"}", ["the bridge sent }, which is no message of the protocol"]),
        (b'{"msg": 1}', ["it has no op"]),
        (b'{"op": "publish"}', ["no message of the protocol"]),
        (b'{"op": "publish", "msg": {"data": 3}}', ["data has another type"]),
        (b'{"op": "publish", "msg": {"data": "?"}}', ["no message of the protocol"]),
        (b'{"op": "status", "level": "error", "msg": "no"}', ["the bridge reports: no"]),
        (b'{"op": "publish", "msg": {', ["the bridge was lost"]),
        (b'{"' + bytes(1 << 24) + b'"', ["it sent a message of more than 16777216 bytes"]),
    ],
    ids=["no JSON", "no beginning", "no op", "no msg", "a number", "no base64", "an error", "half",
         "no end"],
)  # fmt: skip
def test_the_client_names_what_is_wrong_with_its_bridge(
    octave: CellUnderTest, tmp_path: Path, data: bytes, parts: list[str]
) -> None:
    with bridge_that_sends(data) as endpoint:
        node = node_with(octave, [endpoint] * 4, tmp_path / "node")
    reason = error_reason(node)
    assert [part for part in parts if part not in reason] == [], reason


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("endpoints", [[], ["127.0.0.1:1"] * 2, ["127.0.0.1:99999"] * 4])
def test_endpoints_without_the_server_of_the_bridge_are_refused(
    octave: CellUnderTest, tmp_path: Path, endpoints: list[str]
) -> None:
    node = node_with(octave, endpoints, tmp_path / "node")
    try:
        assert node.wait_exit(HANG_S) == 2, node.last_output()
        assert node.fields("ERROR")["key"] == "peers.endpoints"
    finally:
        node.kill()


# --- the split of a stream ----------------------------------------------------------------------

SPLIT = """
cases = jsondecode (fileread ('cases.json'), 'makeValidName', false);
answers = cell (1, numel (cases));
for at = 1:numel (cases)
  stream = MessageStream ();
  answers{at} = {};
  for part = cases{at}'
    messages = stream.add (unicode2native (part{1}, 'UTF-8'));
    answers{at} = [answers{at} cellfun(@(m) native2unicode (m, 'UTF-8'), messages, ...
                                       'UniformOutput', false)];
  end
end
file = fopen ('answers.json', 'w');
fputs (file, jsonencode (answers));
"""


def parts_of(text: str, generator: random.Random) -> list[str]:
    cuts = sorted(generator.choices(range(len(text) + 1), k=4))
    bounds = zip([0, *cuts], [*cuts, len(text)], strict=True)
    return [text[a:b] for a, b in bounds if b > a]


@pytest.mark.slow
@pytest.mark.matrix
def test_octave_splits_a_stream_like_python(tmp_path: Path, octave: CellUnderTest) -> None:
    assert octave  # this machine has Octave
    generator = random.Random(18)
    cases = [['{"a": "}"}{"b": {}}', "{}"], ['{"a": "\\', '"}"', "}"], ['{"a": "\\\\', '"}{}']]
    for _ in range(300):
        text = "".join(generator.choices('{{}}"\\\\a,', k=40)) + '{"a": 1}'
        cases.append([*parts_of(text, generator), '"}', "{}"])
    cases += [list('{"a\\"": "}\\\\"}{"b": {}}'), ["{}", "{}"]]
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "split.m").write_text(SPLIT)
    command = ["octave-cli", "--norc", "--no-history", "--path", str(FOLDER), "split.m"]
    subprocess.run(command, cwd=tmp_path, check=True)
    answers = json.loads((tmp_path / "answers.json").read_text())
    for parts, answer in zip(cases, answers, strict=True):
        stream = MessageStream(1 << 24)
        messages = [m.decode() for part in parts for m in stream.messages(part.encode())]
        assert answer == messages, parts
