"""Test the C++ kit with a compiled program, beyond the golden vectors for all kits."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from wattwire.catalog.manifest import read_toml

LANGUAGE = Path(__file__).resolve().parents[2]
VECTORS = LANGUAGE.parents[1] / "contract" / "vectors"
SEQ = 2 << 48 | 5


def vectors(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    build = str(tmp_path_factory.mktemp("vectors"))
    manifest = read_toml(LANGUAGE / "vectors.toml")

    def filled(argv: list[str]) -> list[str]:
        kit = str(LANGUAGE / "kit")
        return [word.replace("{kit}", kit).replace("{build}", build) for word in argv]

    for argv in manifest["build"]:
        subprocess.run(filled(argv), check=True)
    return filled(manifest["argv"])


def answer_of(program: list[str], *words: object) -> str:
    line = " ".join(str(word) for word in words) + "\n"
    run = subprocess.run(program, input=line, capture_output=True, text=True, check=True)
    return run.stdout.strip()


@pytest.mark.parametrize("case", vectors("short"), ids=lambda c: f"{c['encoding']}-{c['bytes']}")
def test_short_payloads_are_completed(program: list[str], case: dict[str, Any]) -> None:
    shape = (case["seed"], case["encoding"], case["bytes"], case["node"], "full")
    arrivals = [data or "-" for data in case["arrivals_hex"]]
    expected = [f"ok {case['node'] << 48 | counter}" for counter in case["counters"]]
    answer = answer_of(program, "check", *shape, *arrivals)
    assert answer.split() == " ".join(expected).split()


def test_a_record_with_a_missing_or_duplicate_field_or_a_wrong_type_is_unreadable(
    program: list[str],
) -> None:
    def answer(text: str) -> str:
        return answer_of(program, "check-record", 7, 128, 2, "full", text.encode().hex() or "-")

    text = answer_of(program, "record", 7, SEQ, 3, 128)
    assert answer(text) == f"ok {SEQ}"
    for old, new in [
        (',"trailer":{"seq"', ',"header":{"seq"'),
        (',"y"', ',"x"'),
        ("},{", "},,{"),
        (f'"{SEQ}"', f"{SEQ}"),
        (f'"{SEQ}"', '""'),
        (f'"{SEQ}"', f'"{SEQ} "'),
        (f'"{SEQ}"', f'"{1 << 64}"'),
        ('"send_ns":"3"', '"send_ns":"-3"'),
    ]:
        assert old in text
        assert answer(text.replace(old, new, 1)) == "corrupt -", new
    assert answer(text + "}") == "corrupt -"
