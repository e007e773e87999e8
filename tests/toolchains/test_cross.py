"""Test the agent for 64-bit Arm, which is built here and run under an emulator."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TARGET = "aarch64-unknown-linux-musl"
EMULATORS = ("qemu-aarch64", "qemu-aarch64-static")
HANG_S = 1800


@pytest.fixture(scope="module")
def emulator() -> str:
    found = next((path for name in EMULATORS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no emulator on PATH ({', '.join(EMULATORS)}): Debian's qemu-user has it")
    return found


@pytest.fixture(scope="module")
def agent() -> Path:
    """Return the agent as a static program for the target."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    libraries = subprocess.run(
        ["rustc", "--print", "target-libdir", "--target", TARGET],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if libraries.returncode != 0 or not list(Path(libraries.stdout.strip()).glob("libstd-*")):
        pytest.skip(f"Rust has no {TARGET} here: `rustup target add {TARGET}`")
    output = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    subprocess.run(
        ["cargo", "build", "--quiet", "--release", "--locked", "--target", TARGET,
         "--manifest-path", "agent/Cargo.toml", "--target-dir", str(output)],
        cwd=ROOT, check=True,
    )  # fmt: skip
    return output / TARGET / "release" / "wattwire-agent"


class Emulated:
    """Client of the agent's protocol, with an agent under the emulator."""

    def __init__(self, emulator: str, agent: Path, folder: Path) -> None:
        self.folder = folder
        # Without kernel support for the emulator (binfmt), the agent needs its path to start the
        # guard.
        self._process = subprocess.Popen(
            [emulator, str(agent), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**os.environ, "WATTWIRE_CACHE": str(folder / "cache"),
                            "WATTWIRE_CGROUP": "none", "WATTWIRE_RUNNER": emulator},
        )  # fmt: skip
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        self._number += 1
        request = {"id": self._number, "op": operation, **arguments}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self.wait(lambda message: message.get("id") == self._number)

    def wait(self, fits: Any) -> dict[str, Any]:
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            assert line, "the agent ended"
            message: dict[str, Any] = json.loads(line)
            if fits(message):
                return message
            self.events.append(message)

    def close(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait()


@pytest.fixture
def emulated(emulator: str, agent: Path, tmp_path: Path) -> Iterator[Emulated]:
    emulated = Emulated(emulator, agent, tmp_path)
    yield emulated
    assert emulated.close() == 0


@pytest.mark.slow
@pytest.mark.timeout(HANG_S)
def test_the_agent_for_arm_says_what_it_is_and_starts_things(emulated: Emulated) -> None:
    hello = emulated.ask("hello", protocol=2, state=str(emulated.folder / "state"))
    assert hello["ok"], hello
    assert {"host_state", "proc_cpu"} <= {meter["name"] for meter in hello["meters"]}
    facts = {f["key"]: f["value"] for f in emulated.ask("fingerprint")["facts"]}
    assert facts["architecture"] == "aarch64"
    assert facts["kernel"] == os.uname().release
    reply = emulated.ask(
        "spawn", process="node-0", run="wwarm", argv=["sh", "-c", "echo from a guard; exit 3"],
        env={}, cwd=str(emulated.folder), stdout="lines",
        stderr=str(emulated.folder / "err"), clear_env=False,
    )  # fmt: skip
    assert reply["ok"], reply
    end = emulated.wait(lambda message: message.get("event") == "exit")
    assert end["code"] == 3 and end["killed_by_guard"] is False
    lines = [event["text"] for event in emulated.events if event.get("event") == "line"]
    assert lines == ["from a guard"]
