"""Test that a tool that is too old is reported before anything is installed or built."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def requirements() -> ModuleType:
    place = ROOT / "tools" / "requirements.py"
    spec = importlib.util.spec_from_file_location("requirements", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_python_older_than_the_pins_installs_without_them(requirements: ModuleType) -> None:
    assert requirements.check_python((3, 10, 13)) == "unpinned"
    assert requirements.check_python((3, 11, 0)) == ""


def test_a_python_that_is_too_old_is_refused_with_what_to_do(
    requirements: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="3"):
        requirements.check_python((3, 9, 18))
    message = capsys.readouterr().err
    assert message.startswith("Python: found 3.9.18; allowed: 3.10 or newer; ")


def test_a_cargo_that_is_too_old_is_refused_with_what_to_do(
    requirements: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert requirements.check_cargo("cargo 1.82.0 (8f40fc59f 2024-08-21)") == ""
    with pytest.raises(SystemExit, match="3"):
        requirements.check_cargo("cargo 1.75.0")
    assert "cargo: found 1.75.0; allowed: 1.82 or newer; rustup" in capsys.readouterr().err


def test_make_agent_stops_at_an_old_cargo_before_it_builds(tmp_path: Path) -> None:
    cargo = tmp_path / "cargo"
    cargo.write_text("#!/bin/sh\necho cargo 1.75.0\n")
    cargo.chmod(0o755)
    done = subprocess.run(
        ["make", "agent", f"PYTHON={sys.executable}"], cwd=ROOT, capture_output=True, text=True,
        check=False, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.returncode != 0
    assert "cargo: found 1.75.0; allowed: 1.82 or newer" in done.stderr


def test_plugins_of_a_sourced_ros_do_not_reach_the_tests(tmp_path: Path) -> None:
    """ROS adds pytest plugins to PYTHONPATH that need packages missing in this environment."""
    metadata = tmp_path / "launch_testing-3.4.3.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: launch_testing\n")
    (metadata / "entry_points.txt").write_text("[pytest11]\nlaunch_testing = no_such_module\n")
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    arguments = ["-q", "tests/tidy", "--collect-only", "-p", "no:cacheprovider"]
    program = f"from tools.run_tests import pytest; raise SystemExit(pytest({arguments}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**own, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_locked_crates_of_the_agent_build_with_the_oldest_rust_that_it_names() -> None:
    """Cargo refuses a crate whose minimum version is newer than the compiler."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    command += ["--manifest-path", str(ROOT / "agent" / "Cargo.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cargo metadata: {done.stderr.strip().splitlines()[-1]}")
    packages = json.loads(done.stdout)["packages"]
    promised = next(p["rust_version"] for p in packages if p["name"] == "wattwire-agent")

    def numbers(version: str | None) -> tuple[int, ...]:
        return tuple(map(int, (version or "0").split(".")))

    newer = {p["name"]: p["rust_version"] for p in packages
             if numbers(p["rust_version"]) > numbers(promised)}  # fmt: skip
    assert newer == {}
