"""Test that all kits accept or refuse the same specs without a crash."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wattwire_kit.spec import KEYS, BadSpec, parse_spec

from tests.fuzz.conftest import Cases
from tests.fuzz.mutate import Mutator

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "declared.string_settings": ["die_at", "drop_counters"],
    "declared.integer_settings": ["drop_every"], "declared.boolean_settings": ["nodelay"],
    "declared.allowed.drop_every": [0, 7], "declared.allowed.nodelay": [False],
    "settings.drop_every": 0, "settings.die_at": "none", "settings.drop_counters": "",
    "settings.nodelay": False,
}  # fmt: skip


def golden() -> list[dict[str, Any]]:
    path = ROOT / "contract" / "vectors" / "spec.json"
    entries = json.loads(path.read_text(encoding="utf-8"))
    specs = [entry["spec"] for entry in entries["valid"]]
    return [spec if "settings.mode" in spec else {**spec, **SETTINGS} for spec in specs]


def mutated(seed: int, specs: list[dict[str, Any]]) -> bytes:
    mutator = Mutator(seed)
    spec = mutator.random.choice(specs)
    if mutator.random.random() < 0.6:
        found = json.dumps(mutator.value(spec), ensure_ascii=bool(seed % 2))
        return found.encode("utf-8", "surrogatepass")
    return mutator.bytes(json.dumps(spec).encode())


def python_says(text: bytes) -> str:
    """Return "ok" and some values, or "bad". Any exception other than BadSpec fails the test."""
    try:
        spec = parse_spec(text, "fuzz")
    except BadSpec as error:
        assert isinstance(error.key, str)
        assert "found" in str(error) and "allowed" in str(error)
        return "bad"
    assert set(KEYS) <= set(spec)
    literal = spec["payload.literal"].encode().hex()
    return f"ok {spec['period_ns']} {spec['payload.seed']} {len(spec['peers.nodes'])} {literal}"


def test_a_spec_is_taken_or_refused_by_the_python_kit(cases: Cases) -> None:
    specs = golden()
    assert python_says(json.dumps(specs[0]).encode()).startswith("ok ")
    for seed in cases(4_000):
        python_says(mutated(seed, specs))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[bytes]]:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not on PATH")
    target = tmp_path_factory.mktemp("fuzz") / "specs"
    kit = ROOT / "languages" / "cpp" / "kit"
    flags = ["-std=c++17", "-O1", "-pthread", f"-I{kit}", "-fsanitize=undefined,address"]
    source = str(Path(__file__).with_name("specs.cpp"))
    command = ["g++", *flags, "-fno-sanitize-recover=all", source, "-o", str(target)]
    subprocess.run(command, check=True)
    with subprocess.Popen([target], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process


def test_a_spec_means_the_same_to_both_kits(cases: Cases, program: subprocess.Popen[bytes]) -> None:
    specs = golden()
    assert program.stdin is not None and program.stdout is not None
    for seed in cases(3_000):
        text = mutated(seed, specs)
        program.stdin.write(b"%d\n%s\n" % (len(text), text))
        program.stdin.flush()
        said = program.stdout.readline().decode()
        assert said, f"seed {seed}: the C++ kit ended with {program.poll()} at {text!r}"
        there = "bad" if said.startswith("bad ") else said.rstrip("\n")
        assert there.rstrip() == python_says(text).rstrip(), f"seed {seed}: {text!r}"
