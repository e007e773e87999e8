"""The C++ kit against the golden vectors of the contract, through a compiled program."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
KIT = ROOT / "languages" / "cpp" / "kit"


def vectors(name: str) -> Any:
    return json.loads((ROOT / "contract" / "vectors" / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("vectors") / "vectors"
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{KIT}"]
    flags += ["-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
    source = str(KIT / "tests" / "vectors.cpp")
    subprocess.run(["g++", *flags, source, "-o", str(target)], check=True)
    return target


def ask(program: Path, *words: object) -> str:
    line = " ".join(str(word) for word in words) + "\n"
    run = subprocess.run([program], input=line, capture_output=True, text=True, check=True)
    return run.stdout.strip()


@pytest.mark.parametrize("case", vectors("payload"), ids=lambda c: f"{c['encoding']}-{c['bytes']}")
def test_a_stamped_payload_has_the_golden_bytes(program: Path, case: dict[str, Any]) -> None:
    keys = ("seed", "seq", "begin_ns", "encoding", "bytes")
    found = ask(program, "payload", *(case[key] for key in keys))
    assert hashlib.sha256(bytes.fromhex(found)).hexdigest() == case["sha256"]


@pytest.mark.parametrize("verify", ["header", "full"])
@pytest.mark.parametrize("case", vectors("check"), ids=lambda c: f"{c['encoding']}-{c['name']}")
def test_an_arrival_gets_the_golden_verdict(
    program: Path, case: dict[str, Any], verify: str
) -> None:
    shape = (case["seed"], case["encoding"], case["bytes"], case["nodes"][0], verify)
    seq = "-" if case["seq"] is None else case["seq"]
    assert ask(program, "check", *shape, case["hex"]) == f"{case[verify]} {seq}"


@pytest.mark.parametrize("case", vectors("short"), ids=lambda c: f"{c['encoding']}-{c['bytes']}")
def test_short_payloads_are_completed(program: Path, case: dict[str, Any]) -> None:
    shape = (case["seed"], case["encoding"], case["bytes"], case["node"], "full")
    found = ask(program, "check", *shape, *(data or "-" for data in case["arrivals_hex"]))
    wanted = [f"ok {case['node'] << 48 | counter}" for counter in case["counters"]]
    assert found.split() == " ".join(wanted).split()


@pytest.mark.parametrize("case", vectors("record")["made"], ids=lambda c: str(c["bytes"]))
def test_a_stamped_record_has_the_golden_fields(program: Path, case: dict[str, Any]) -> None:
    keys = ("seed", "seq", "begin_ns", "bytes")
    assert json.loads(ask(program, "record", *(case[key] for key in keys))) == case["record"]


@pytest.mark.parametrize("verify", ["header", "full"])
@pytest.mark.parametrize("case", vectors("record")["check"], ids=lambda c: c["name"])
def test_a_record_gets_the_golden_verdict(program: Path, case: dict[str, Any], verify: str) -> None:
    shape = (case["seed"], case["bytes"], case["nodes"][0], verify)
    found = ask(program, "check-record", *shape, json.dumps(case["record"]))
    assert found == f"{case[verify]} {case['seq']}"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", '{"header": 1}', "[" * 100_000, '{"header": {"seq": 1e400}}']
)
def test_what_is_no_record_is_unreadable(program: Path, text: str) -> None:
    assert ask(program, "check-record", 7, 128, 2, "full", text) == "corrupt -"


def test_a_field_that_is_missing_or_given_twice_is_unreadable(program: Path) -> None:
    text = json.dumps(vectors("record")["check"][0]["record"])
    for found in (
        text.replace(', "trailer": {"seq"', ', "header": {"seq"'),
        text.replace(', "y"', ', "x"', 1),
        text.replace("}, {", "}, , {"),
        text + "}",
    ):
        assert ask(program, "check-record", 7, 128, 2, "full", found) == "corrupt -"
    assert ask(program, "check-record", 7, 128, 2, "full", text) == "ok 562949953421317"


@pytest.mark.parametrize("case", vectors("samples"), ids=lambda c: f"{len(c['records'])}-records")
def test_a_sample_file_has_the_golden_bytes(
    program: Path, case: dict[str, Any], tmp_path: Path
) -> None:
    rows = [list(record.values()) for record in case["records"]]
    extra = [(rows[0] if rows else [0] * 8)] * case["overflow"]
    numbers = [number for row in rows + extra for number in row]
    path = tmp_path / "samples.bin"
    given = (path, case["role"], case["node"], case["seed"], len(rows))
    assert ask(program, "samples", *given, *numbers) == f"{len(rows)} {case['overflow']}"
    assert path.read_bytes().hex() == case["hex"]


def test_specs_are_read_or_refused_by_their_key(program: Path, tmp_path: Path) -> None:
    specs = vectors("spec")
    cases = [(json.dumps(case["spec"]), "ok", case["name"]) for case in specs["valid"]]
    cases += [(json.dumps(case["spec"]), case["key"], case["name"]) for case in specs["invalid"]]
    cases += [(case["text"], case["key"], case["name"]) for case in specs["texts"]]
    paths = []
    for index, (text, _, _) in enumerate(cases):
        paths.append(tmp_path / f"{index}.json")
        paths[-1].write_text(text)
    lines = "".join(f"spec {path}\n" for path in paths)
    run = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    found = dict(zip((name for _, _, name in cases), run.stdout.splitlines(), strict=True))
    assert found == {name: wanted for _, wanted, name in cases}
