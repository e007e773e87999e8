"""Run the tests of the agent, the link emulator and the Rust kit within pytest."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HANG_PROTECTION_S = 1800

needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")


@needs_cargo
@pytest.mark.slow
@pytest.mark.timeout(HANG_PROTECTION_S)
@pytest.mark.parametrize(
    ("crate", "target"),
    [("agent", "target"), ("emulator", "target"), ("languages/rust/kit", "target/rust-kit")],
)
def test_a_crate_passes_its_own_tests(crate: str, target: str) -> None:
    command = ["cargo", "test", "--locked", "--manifest-path", str(ROOT / crate / "Cargo.toml")]
    command += ["--target-dir", str(ROOT / target)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    output = (result.stdout + result.stderr)[-8000:]
    assert result.returncode == 0, output
    assert "test result: ok" in output, output
