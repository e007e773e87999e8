"""Test that the program installed from the wheel works without a checkout."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
HANG_S = 1800
STUDY = """
title = "One short run"
[factors]
pattern = ["pingpong"]
[fixed]
middleware = "loopback"
language = "python"
rate_hz = 50
[plan]
blocks = 1
duration_s = 0.3
baseline_s = 0.1
quiet_wait_s = 0.0
[validity]
other_load_max = 1.0
steal_max = 1.0
missed_ticks_max = 1.0
stall_max_ms = 60000.0
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built from a copy of all committable files and the existing agent."""
    from wattwire.model.errors import MissingError
    from wattwire.rig import find_agent
    from wattwire.rig.emulator import find_emulator

    try:
        agent, emulator = find_agent(), find_emulator()
    except MissingError as error:
        pytest.skip(f"no agent to carry: {error}")
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index",
         "--no-build-isolation", "--wheel-dir", str(out), str(copy)],
        env={**os.environ, "WATTWIRE_WHEEL_AGENT": str(agent),
             "WATTWIRE_WHEEL_LINK": str(emulator)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def setup_script() -> ModuleType:
    """Return the functions of setup.py without running setup()."""
    source = (ROOT / "setup.py").read_text().rsplit("\ncommands:", 1)[0]
    module = ModuleType("setup_script")
    module.__file__ = str(ROOT / "setup.py")
    exec(compile(source, "setup.py", "exec"), module.__dict__)
    return module


def elf(machine: int, kinds: list[int]) -> bytes:
    """Return the beginning of a 64-bit ELF program with these program headers."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<H", head, 18, machine)
    struct.pack_into("<Q", head, 32, 64)
    struct.pack_into("<HH", head, 54, 56, len(kinds))
    return bytes(head) + b"".join(struct.pack("<I", kind) + bytes(52) for kind in kinds)


def test_the_platform_of_a_wheel_is_its_agents(setup_script: ModuleType) -> None:
    tag = setup_script.platform_tag
    assert tag(elf(62, [1, 3])) == "linux_x86_64"
    assert tag(elf(62, [1])).startswith("manylinux_2_17_x86_64.")
    assert tag(elf(183, [1])).endswith("musllinux_1_1_aarch64")
    with pytest.raises(SystemExit, match="machine 243"):
        tag(elf(243, [1]))
    with pytest.raises(SystemExit, match="no 64-bit"):
        tag(b"#!/bin/sh\n")


@pytest.mark.slow
@pytest.mark.timeout(HANG_S)
def test_the_wheel_carries_the_agent_and_every_open_folder(wheel: Path) -> None:
    assert re.fullmatch(r"wattwire-[\d.]+-py3-none-\w*linux\w*", wheel.stem.split(".many")[0])
    names = zipfile.ZipFile(wheel).namelist()
    data = [name.split("/_data/")[1] for name in names if "/_data/" in name]
    assert {"bin/wattwire-agent", "bin/wattwire-link"} <= set(data)
    manifests = {
        str(path.relative_to(ROOT))
        for pattern in ("languages/*/language.toml", "middleware/**/*.toml", "meters/*/meter.toml",
                        "studies/*/study.toml", "links/*/link.toml")
        for path in ROOT.glob(pattern)
        if path.name in {"language.toml", "middleware.toml", "node.toml", "meter.toml",
                         "study.toml", "link.toml"} and not {"target", "tests"} & set(path.parts)
    }  # fmt: skip
    assert len(manifests) > 20
    assert manifests <= set(data)
    assert not [name for name in data if "/tests/" in name or "/target/" in name]


@pytest.mark.slow
@pytest.mark.timeout(HANG_S)
def test_an_installed_wheel_lists_and_measures_away_from_the_checkout(
    wheel: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
         "--target", str(site), str(wheel)], check=True,
    )  # fmt: skip
    home = tmp_path / "home"
    home.mkdir()
    (home / "one.toml").write_text(STUDY)
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home),
        "PYTHONPATH": f"{site}:{sysconfig.get_path('purelib')}",
    }  # fmt: skip

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "wattwire", *arguments] if sys.version_info >= (3, 11)
            else [sys.executable, "-m", "wattwire", *arguments],
            cwd=home, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    listed = run("list")
    assert "loopback/python" in listed and "first-look" in listed
    assert str(ROOT) not in run("list", "studies")
    said = run("run", "one.toml", "--campaign", "camp", "--plain", "--no-report")
    assert "pattern=pingpong: valid" in said and "are valid: camp" in said
    machine = (home / "camp" / "machine.json").read_text()
    assert str(ROOT) not in machine
    assert (home / ".cache" / "wattwire").is_dir()
