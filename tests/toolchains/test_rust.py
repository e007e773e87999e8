"""The agent's own tests, as a part of the one pytest run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HANG_PROTECTION_S = 1800


@pytest.mark.slow
@pytest.mark.timeout(HANG_PROTECTION_S)
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_the_agent_passes_its_own_tests() -> None:
    command = ["cargo", "test", "--locked", "--manifest-path", str(ROOT / "agent/Cargo.toml")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    output = (result.stdout + result.stderr)[-8000:]
    assert result.returncode == 0, output
    assert "test result: ok" in output, output
