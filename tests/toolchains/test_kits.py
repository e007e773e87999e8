"""Test kits against the golden vectors of the contract, with a small program in each language.

A language's `vectors.toml` specifies how the program is built and run. The program prints one line
for each input line. Numbers are decimal, byte strings are hexadecimal, and "-" is none:

    clock                                            ns of the kit's clock
    payload SEED SEQ SEND_NS ENCODING BYTES          the payload
    check SEED ENCODING BYTES NODE VERIFY PAYLOAD    ok|corrupt|foreign SEQ|-
    record SEED SEQ SEND_NS BYTES                    the record as JSON
    check-record SEED BYTES NODE VERIFY JSON-TEXT    ok|corrupt|foreign SEQ|-
    samples PATH ROLE NODE SEED CAPACITY NUMBER...   RECORDED OVERFLOW (eight numbers a record)
    spec PATH                                        ok, or the key that is refused
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.conformance.repository import ROOT, read_toml
from wattwire.rig.versions import TooOldError, require_versions

LANGUAGES = sorted(path.parent for path in (ROOT / "languages").glob("*/vectors.toml"))
VERIFY = ("header", "full")
NO_RECORDS = ("", "{", "[]", "5", '{"header": 1}', "[" * 100_000, '{"header": {"seq": 1e400}}')

FORMER_ENTRIES = {
    "python": (
        ["python3"],
        "import sys\nsys.path.insert(0, '{kit}')\n"
        "from wattwire_kit import run\nrun(roles={}, settings={})\n",
    ),
    "javascript": (["node"], "require('{kit}/wattwire').run({ roles: {}, settings: {} });\n"),
    "ruby": (["ruby", "-I{kit}"], "require 'wattwire'\nWattwire.run(roles: {}, settings: {})\n"),
}
"""Entry files of contract version 2 by interpreted language: the interpreter and the text."""

pytestmark = pytest.mark.slow


def vectors(name: str) -> Any:
    return json.loads((ROOT / "contract" / "vectors" / f"{name}.json").read_text())


def carries_header(case: dict[str, Any]) -> bool:
    """Return whether the payload has a header.

    Small kits do not support shorter payloads (C-03).
    """
    return bool(case["bytes"] >= (32 if case["encoding"] == "text" else 16))


def why_not(folder: Path) -> str:
    """Return the reason why a language's toolchain cannot build its program, or "".

    A tool may be missing, or older than `[versions]` requires.
    """
    language = read_toml(folder / "language.toml")
    wanted = [*read_toml(folder / "vectors.toml")["requires"], *language.get("requires", [])]
    for name in wanted:
        if shutil.which(name) is None:
            return f"{name} is not installed"
    try:
        require_versions(wanted, language.get("versions", {}), folder.name)
    except TooOldError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module", params=LANGUAGES, ids=lambda folder: folder.name)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder: Path = request.param
    table = read_toml(folder / "vectors.toml")
    unfit = why_not(folder)
    if unfit:
        pytest.skip(unfit)
    build = tmp_path_factory.mktemp(folder.name)
    words = {"kit": str(folder / "kit"), "build": str(build)}

    def laid_out(command: list[str]) -> list[str]:
        for word, value in words.items():
            command = [part.replace(f"{{{word}}}", value) for part in command]
        return command

    for command in table.get("build", []):
        done = subprocess.run(
            laid_out(command), cwd=build, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-4000:]
    return laid_out(table["argv"])


def ask(program: list[str], questions: list[str]) -> list[str]:
    text = "".join(f"{question}\n" for question in questions)
    run = subprocess.run(program, input=text, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    return run.stdout.splitlines()


def payload_questions() -> Iterator[tuple[str, str]]:
    """Yield questions with their expected answers."""
    for case in vectors("check"):
        for verify in VERIFY if carries_header(case) else ():
            shape = f"{case['seed']} {case['encoding']} {case['bytes']} {case['nodes'][0]} {verify}"
            seq = "-" if case["seq"] is None else case["seq"]
            yield f"check {shape} {case['hex'] or '-'}", f"{case[verify]} {seq}"


def record_questions() -> Iterator[tuple[str, str]]:
    for case in vectors("record")["check"]:
        text = json.dumps(case["record"]).encode().hex()
        for verify in VERIFY:
            shape = f"{case['seed']} {case['bytes']} {case['nodes'][0]} {verify}"
            yield f"check-record {shape} {text}", f"{case[verify]} {case['seq']}"
    whole = json.dumps(vectors("record")["check"][0]["record"])
    broken = (
        whole.replace(', "y"', ', "Y"', 1),
        whole.replace("}, {", "}, , {"),
        whole + "}",
        whole.replace('"name": "', '"name": 5, "x": "'),
        whole.replace('"seq": "', '"seq": "x', 1),
    )
    for text in (*NO_RECORDS, *broken):
        yield f"check-record 7 128 2 full {text.encode().hex() or '-'}", "corrupt -"


def test_arrivals_get_the_golden_verdict(program: list[str]) -> None:
    cases = [*payload_questions(), *record_questions()]
    found = ask(program, [question for question, _ in cases])
    wrong = [(q[:120], f, w) for (q, w), f in zip(cases, found, strict=True) if f != w]
    assert len(cases) > 50 and wrong == []


def test_what_is_sent_has_the_golden_bytes(program: list[str]) -> None:
    payloads = [case for case in vectors("payload") if carries_header(case)]
    records = vectors("record")["made"]
    keys = ("seed", "seq", "begin_ns")
    questions = [
        f"payload {' '.join(str(case[key]) for key in (*keys, 'encoding', 'bytes'))}"
        for case in payloads
    ]
    questions += [
        f"record {' '.join(str(case[key]) for key in (*keys, 'bytes'))}" for case in records
    ]
    found = ask(program, questions)
    for case, text in zip(payloads, found, strict=False):
        assert hashlib.sha256(bytes.fromhex(text)).hexdigest() == case["sha256"], case
    for case, text in zip(records, found[len(payloads) :], strict=True):
        assert json.loads(text) == case["record"]


def test_sample_files_have_the_golden_bytes(program: list[str], tmp_path: Path) -> None:
    for case in vectors("samples"):
        rows = [list(record.values()) for record in case["records"]]
        extra = [(rows[0] if rows else [0] * 8)] * case["overflow"]
        numbers = " ".join(str(number) for row in rows + extra for number in row)
        path = tmp_path / "samples.bin"
        given = f"{path} {case['role']} {case['node']} {case['seed']} {len(rows)}"
        assert ask(program, [f"samples {given} {numbers}"]) == [f"{len(rows)} {case['overflow']}"]
        assert path.read_bytes().hex() == case["hex"]


def test_specs_are_read_or_refused_by_their_key(program: list[str], tmp_path: Path) -> None:
    specs = vectors("spec")
    cases = [(json.dumps(case["spec"]), "ok", case["name"]) for case in specs["valid"]]
    cases += [(json.dumps(case["spec"]), case["key"], case["name"]) for case in specs["invalid"]]
    cases += [(case["text"], case["key"], case["name"]) for case in specs["texts"]]
    for index, (text, _, _) in enumerate(cases):
        (tmp_path / f"{index}.json").write_text(text)
    found = ask(program, [f"spec {tmp_path}/{index}.json" for index in range(len(cases))])
    wrong = [
        (name, key, wanted)
        for (_, wanted, name), key in zip(cases, found, strict=True)
        if key != wanted
    ]
    assert wrong == []


@pytest.mark.parametrize("language", FORMER_ENTRIES)
def test_an_entry_file_of_version_2_is_refused_with_the_names_of_roles(
    language: str, tmp_path: Path
) -> None:
    argv, text = FORMER_ENTRIES[language]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    kit = str(ROOT / "languages" / language / "kit")
    path = tmp_path / "node"
    path.write_text(text.replace("{kit}", kit))
    argv = [word.replace("{kit}", kit) for word in [*argv, str(path)]]
    # The lines go to descriptor 3.
    command = ["sh", "-c", 'exec 3>&1 "$@"', "sh", *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    word, _, fields = done.stdout.partition(" ")
    error = json.loads(fields)
    assert (word, done.returncode, error["code"], error["key"]) == ("ERROR", 2, 2, "run()")
    assert "publisher" in error["reason"] and "roles" in error["reason"]


def test_the_clock_is_the_hosts_monotonic_one(program: list[str]) -> None:
    """The reading must be between two readings of CLOCK_MONOTONIC; other clocks differ (C-27)."""
    before_ns = time.monotonic_ns()
    times_ns = [int(line) for line in ask(program, ["clock"] * 3)]
    after_ns = time.monotonic_ns()
    assert before_ns < times_ns[0] <= times_ns[1] <= times_ns[2] < after_ns


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("1.9.7", "needs xlang 1.10 or newer; found 1.9.7"),
        ("unknown", "needs xlang 1.10 or newer; `xlang --version` printed no version"),
        ("1.10.0", ""),
    ],
)
def test_a_toolchain_that_is_too_old_is_a_reason_to_skip_its_kit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, message: str
) -> None:
    (tmp_path / "vectors.toml").write_text('requires = ["xlang"]\n')
    (tmp_path / "language.toml").write_text(
        'requires = ["xlang"]\n[versions.xlang]\nminimum = "1.10"\n'
    )
    assert why_not(tmp_path) == "xlang is not installed"
    (tmp_path / "xlang").write_text(f"#!/bin/sh\necho xlang {version}\n")
    (tmp_path / "xlang").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = why_not(tmp_path)
    assert (message in found) if message else found == ""
