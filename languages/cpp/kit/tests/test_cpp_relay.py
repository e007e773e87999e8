"""Test what a relay of the C++ kit sends, counts and records (C-37), without a middleware."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from contract.conformance.payload import payload, record
from contract.conformance.samples import CORRUPT, FAILED, PROBE, RELAY, UNKNOWN_NS, WARM_UP, Record

KIT = Path(__file__).resolve().parents[1]
VECTORS = KIT.parents[2] / "contract" / "vectors"
SOURCE, SEED, SIZE = 2, 7, 128
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed"),
]


@dataclass(frozen=True)
class Outcome:
    actions: list[str]
    """`send` or `keep`, per arrival."""
    done: dict[str, int]
    role_code: int
    records: list[Record]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("relay") / "relay"
    source = str(KIT / "tests" / "relay.cpp")
    command = ["g++", "-std=c++17", "-O0", *WARNINGS, "-pthread", f"-I{KIT}", source, "-o"]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return path


def spec_of(**changes: Any) -> dict[str, Any]:
    valid = json.loads((VECTORS / "spec.json").read_text())["valid"][0]["spec"]
    relay = {
        "pattern": "pipeline", "role": "relay", "hop": 1, "peers.nodes": [SOURCE],
        "peers.count": 2, "payload.bytes": SIZE, "payload.seed": SEED, "reply": "literal",
        "declared.roles": ["relay"],
        "declared.capabilities": [
            "encoding.bytes", "encoding.text", "encoding.record", "loop.open",
        ],
    }  # fmt: skip
    return {**valid, **relay, **changes}


def run(program: Path, out: Path, arrivals: list[tuple[str, bytes]], **changes: Any) -> Outcome:
    """Return the outcome of `arrivals`, each of which is (`sends` or `fails`, payload)."""
    (out / "spec.json").write_text(json.dumps(spec_of(**changes)))
    words = [word for action, data in arrivals for word in (action, data.hex())]
    command = [str(program), str(out / "spec.json"), str(out), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *actions, last = done.stdout.splitlines()
    data = (out / "samples.bin").read_bytes()
    records = [Record._make(fields) for fields in struct.iter_unpack("<QqqqIHBB", data[64:])]
    return Outcome(actions, json.loads(last.removeprefix("DONE ")), data[14], records)


def message(counter: int, encoding: str = "bytes", node: int = SOURCE, seed: int = SEED) -> bytes:
    seq = node << 48 | counter
    if encoding == "record":
        return json.dumps(record(seq, 5, SIZE, seed)).encode()
    return payload(seq, 5, SIZE, seed, encoding == "text")


def corrupted(data: bytes, encoding: str) -> bytes:
    if encoding == "record":
        fields = json.loads(data)
        fields["trailer"]["seq"] = "9"
        return json.dumps(fields).encode()
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize("encoding", ["bytes", "text", "record"])
def test_a_relay_sends_and_records_every_message_of_its_run(
    program: Path, tmp_path: Path, encoding: str
) -> None:
    arrivals = [
        ("sends", message(0, encoding)),
        ("sends", corrupted(message(1, encoding), encoding)),
        ("sends", message(2, encoding, node=SOURCE + 1)),
        ("sends", message(3, encoding, seed=SEED + 1)),
        ("fails", message(4, encoding)),
        ("fails", corrupted(message(5, encoding), encoding)),
        ("sends", message(6, encoding)),
    ]
    outcome = run(program, tmp_path, arrivals, **{"payload.encoding": encoding})
    assert outcome.actions == ["send", "send", "keep", "keep", "send", "send", "send"]
    counts = {"sent": 3, "received": 5, "recorded": 5, "overflow": 0, "foreign": 2, "corrupt": 2}
    assert outcome.done == {**counts, "probes": 0}
    assert outcome.role_code == 9
    expected = [(0, 0), (1, CORRUPT), (4, FAILED), (5, FAILED | CORRUPT), (6, 0)]
    assert [(record.counter, record.flags) for record in outcome.records] == expected
    for entry in outcome.records:
        failed = bool(entry.flags & FAILED)
        assert (entry.kind, entry.peer, entry.bytes) == (RELAY, SOURCE, SIZE)
        assert entry.intended_ns <= entry.begin_ns
        assert entry.end_ns == UNKNOWN_NS if failed else entry.begin_ns <= entry.end_ns
    times = [(entry.intended_ns, entry.begin_ns) for entry in outcome.records]
    assert times == sorted(times)


@pytest.mark.parametrize(("encoding", "data"), [("bytes", b"1234567"), ("record", b"{}")])
def test_a_relay_sends_a_message_without_a_readable_sequence_but_does_not_record_it(
    program: Path, tmp_path: Path, encoding: str, data: bytes
) -> None:
    arrivals = [("sends", data), ("sends", message(1, encoding))]
    outcome = run(program, tmp_path, arrivals, **{"payload.encoding": encoding})
    assert outcome.actions == ["send", "send"]
    assert [entry.counter for entry in outcome.records] == [1]
    assert (outcome.done["sent"], outcome.done["received"], outcome.done["corrupt"]) == (2, 1, 1)


def test_a_relay_sends_a_probe_without_counting_it(program: Path, tmp_path: Path) -> None:
    outcome = run(program, tmp_path, [("sends", message(PROBE)), ("sends", message(0))])
    assert outcome.actions == ["send", "send"]
    assert [entry.counter for entry in outcome.records] == [0]
    assert (outcome.done["sent"], outcome.done["received"], outcome.done["probes"]) == (1, 1, 1)


def test_the_arrival_at_a_relay_decides_on_the_warm_up(program: Path, tmp_path: Path) -> None:
    outcome = run(program, tmp_path, [("sends", message(0))], warmup_ns=3_600_000_000_000)
    assert [entry.flags for entry in outcome.records] == [WARM_UP]
    assert run(program, tmp_path, [("sends", message(0))]).records[0].flags == 0


def test_only_specs_of_a_pipeline_have_a_hop(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    for changes, key in (
        ({"pattern": "topic"}, "hop"), ({"hop": "1"}, "hop"), ({"pattern": 5}, "pattern"),
    ):  # fmt: skip
        path.write_text(json.dumps(spec_of(**changes)))
        done = subprocess.run(
            [program, path, tmp_path], capture_output=True, text=True, check=False
        )
        assert done.returncode != 0 and f"spec: {key}: found" in done.stderr


def test_records_beyond_the_capacity_are_counted(program: Path, tmp_path: Path) -> None:
    arrivals = [("sends", message(counter)) for counter in range(3)]
    outcome = run(program, tmp_path, arrivals, **{"record.capacity": 2})
    assert [entry.counter for entry in outcome.records] == [0, 1]
    assert (outcome.done["sent"], outcome.done["overflow"]) == (3, 1)
