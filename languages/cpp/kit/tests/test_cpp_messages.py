"""Test that the C++ kit allocates no memory, looks up no key and reads no JSON for a message.

`messages.cpp` drives the kit without a middleware and counts. Windows of N and of 2 N messages must
have equal counts.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

KIT = Path(__file__).resolve().parents[1]
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")
PATHS = (
    "send_all", "publish", "received", "relay", "call_all", "calls", "drive", "serve",
    "goals", "goal-server",
)  # fmt: skip
PAYLOADS = (("bytes", "echo"), ("text", "ack"), ("record", "literal"))
COUNT = 200
BANNED = re.compile(r"\b(nlohmann::|wattwire::(Spec|Object|FlatReader|RecordReader)::|.*quoted\()")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed"),
]


def build(kit: Path, folder: Path) -> Path:
    program = folder / "messages"
    command = [
        "g++", "-std=c++17", "-O0", *WARNINGS, "-pthread", "-rdynamic", "-finstrument-functions",
        f"-I{kit}", str(kit / "tests" / "messages.cpp"), "-o", str(program), "-ldl",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(KIT, tmp_path_factory.mktemp("messages"))


def window(program: Path, path: str, payload: Sequence[str], count: int) -> tuple[int, set[str]]:
    """Return the number of allocations in a window, and the calls of banned functions as lines."""
    done = subprocess.run(
        [program, path, *payload, str(count)], capture_output=True, text=True, check=True
    )
    first, *functions = done.stdout.splitlines()
    assert functions
    return int(first), {line for line in functions if BANNED.match(line)}


@pytest.mark.parametrize("payload", PAYLOADS, ids="-".join)
@pytest.mark.parametrize("path", PATHS)
def test_a_message_needs_no_allocation_and_no_key(
    program: Path, path: str, payload: Sequence[str]
) -> None:
    once, twice = (window(program, path, payload, count) for count in (COUNT, 2 * COUNT))
    assert once == twice


def test_the_program_counts_a_planted_allocation_and_a_planted_look_up(tmp_path: Path) -> None:
    kit = Path(shutil.copytree(KIT, tmp_path / "kit"))
    core = kit / "wattwire" / "core.hpp"
    text, place = core.read_text(encoding="utf-8"), "    Checked arrival = payload_.check(data);\n"
    assert text.count(place) == 1
    planted = '    const std::string planted(64, "x"[integer("node") > 99]);\n'
    core.write_text(text.replace(place, place + planted), encoding="utf-8")
    program = build(kit, tmp_path)
    once, twice = (window(program, "received", PAYLOADS[0], c) for c in (COUNT, 2 * COUNT))
    assert twice[0] - once[0] == COUNT
    assert once[1] != twice[1] and any("Spec::integer" in line for line in twice[1])


@pytest.mark.skipif(shutil.which("clang-tidy") is None, reason="clang-tidy is not installed")
def test_clang_tidy_reports_nothing_for_the_kit() -> None:
    source = str(KIT / "tests" / "vectors.cpp")
    config = f"--config-file={KIT / 'clang-tidy.yml'}"
    command = ["clang-tidy", "--quiet", config, source, "--", "-std=c++17", f"-I{KIT}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
