"""Fixtures of the end-to-end tests: the command line, a small study, and checks for leftovers."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import wattwire
from tests.end_to_end import cold_cell

HANG_S = 800


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict]:
        """Return the progress events of a run with --json."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


class Cli:
    """The command `python -m wattwire`, run in a separate folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, *arguments: str, python: str = sys.executable) -> list[str]:
        return [python, "-m", "wattwire", *map(str, arguments)]

    def environment(self, **extra: str) -> dict[str, str]:
        return {"WATTWIRE_HEAVY": "skip", **os.environ, **extra}

    def __call__(
        self, *arguments: str, user: int | None = None, python: str = sys.executable,
        **environment: str,
    ) -> Result:  # fmt: skip
        done = subprocess.run(
            self.command(*arguments, python=python), cwd=self.folder,
            env=self.environment(**environment), capture_output=True, text=True,
            timeout=HANG_S, check=False, user=user, group=user,
            extra_groups=[] if user is not None else None,
        )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments), cwd=self.folder, env=self.environment(**environment),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip


MINI = """
title = "Three short runs"
[factors]
pattern = ["topic", "service", "pingpong"]
[fixed]
middleware = "loopback"
language = "python"
rate_hz = 50
[plan]
blocks = 1
controls = false
duration_s = 0.4
baseline_s = 0.1
linger_ms = 100
quiet_ms = 30
retries = 2
quiet_wait_s = 0.0
[validity]
other_load_max = 1.0
steal_max = 1.0
missed_ticks_max = 1.0
stall_max_ms = 60000.0
"""


@pytest.fixture(scope="session", autouse=True)
def agent_is_built():
    """Build the agent, which every test here needs. Without cargo, the tests are skipped."""
    from wattwire.model.errors import MissingError
    from wattwire.rig import find_agent

    try:
        find_agent()
    except MissingError as error:
        if shutil.which("cargo") is None:
            pytest.skip(f"no toolchain: {error}")
        raise


@pytest.fixture
def cli(tmp_path):
    return Cli(tmp_path)


@pytest.fixture
def mini(tmp_path):
    path = tmp_path / "mini.toml"
    path.write_text(MINI)
    return path


@pytest.fixture
def cold(tmp_path):
    """Return the environment of the cell cold/python, whose first calls are slow."""
    return cold_cell.plant(tmp_path)


def interpreter_of(user: int) -> str:
    """Return an interpreter of this version that `user` can start. Skip if there is none."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/python{version}"):
        try:
            subprocess.run([python, "-c", ""], user=user, group=user, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    pytest.skip(f"no Python {version} that other users may start")


def environment_at(home: Path) -> dict[str, str]:
    """Return the environment of a user whose home is `home`.

    It includes the path of the packages, for interpreters outside the virtual environment.
    """
    repository, packages = Path(wattwire.__file__).parents[1], sysconfig.get_path("purelib")
    return {
        "HOME": str(home), "WATTWIRE_CACHE": str(home / "cache"),
        "PYTHONPATH": f"{repository}:{packages}",
    }  # fmt: skip


NOBODY = 65534
"""An ordinary user that exists on every Debian."""


@pytest.fixture
def nobodys_folder() -> Iterator[Path]:
    """Return a folder that belongs to an ordinary user.

    It is not below `tmp_path`, because every pytest process that starts, including those that tests
    start, takes away the access of other users to the parent of all `tmp_path`.
    """
    with tempfile.TemporaryDirectory(prefix="wattwire-test-") as name:
        os.chown(name, NOBODY, NOBODY)
        yield Path(name)


def tokens_below(folder: Path) -> list[str]:
    """Return the run tokens of all campaigns in `folder`, to ignore other runs on this machine."""
    tokens: list[str] = []
    for journal in folder.glob("**/journal.sqlite"):
        with contextlib.closing(sqlite3.connect(journal)) as db:
            tokens += [row[0] for row in db.execute("SELECT token FROM attempt")]
    return tokens


def marked_processes(tokens: list[str]) -> list[str]:
    """Return the processes of these runs, which have WATTWIRE_RUN in their environment."""
    marks = [f"WATTWIRE_RUN={token}".encode() for token in tokens]
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            variables = environ.read_bytes().split(b"\0")
            if any(mark in variables for mark in marks):
                found.append((environ.parent / "cmdline").read_text().replace("\0", " "))
    return found


def processes_of(campaign: Path, node: str) -> list[int]:
    """Return the processes of one node in the first run of a campaign, identified by its spec."""
    spec = f"{campaign}/runs/.b01-p001-1.partial/out/{node}/spec.json"
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if "--spec" in words and spec in words and "guard" not in words:
                found.append(int(path.parent.name))
    return found


def struck_in_the_window(
    cli: Cli, study: Path, campaign: Path, node: str,
    number: signal.Signals = signal.SIGKILL, after_s: float = 0.1,
) -> tuple[int, list[int]]:  # fmt: skip
    """Run a study and send a signal to a node some time after the first GO.

    Return the exit code and the processes that got the signal.
    """
    process = cli.start("run", study, "--campaign", campaign, "--json", "--no-report")
    struck: list[int] = []
    assert process.stdout is not None
    for line in process.stdout:
        is_window = line.startswith("{") and json.loads(line).get("phase") == "window"
        if is_window and not struck:
            time.sleep(after_s)  # wait for some messages
            struck = processes_of(campaign, node)
            for pid in struck:
                with contextlib.suppress(ProcessLookupError):  # the process has already ended
                    os.kill(pid, number)
    _, err = process.communicate()
    if process.returncode == 3:
        pytest.skip(err)  # missing toolchain or package
    return process.returncode, struck


def orphaned_cgroups() -> list[str]:
    """Return the cgroups `wattwire-PID` whose agent has ended."""
    root = "/sys/fs/cgroup"  # Path.glob fails if another agent removes its cgroup meanwhile
    ours = [p for depth in ("*", "*/*", "*/*/*") for p in glob.glob(f"{root}/{depth}/wattwire-*")]
    return [path for path in ours if not Path("/proc", path.rpartition("-")[2]).exists()]


def shared_memory_of(tokens: list[str]) -> list[str]:
    return [name for name in os.listdir("/dev/shm") if any(token in name for token in tokens)]


def sockets_of(tokens: list[str]) -> list[str]:
    """Return the Unix sockets whose names contain a run's token."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return [line for line in lines if any(token in line for token in tokens)]


ORPHANED_MAX_S = 20.0
"""Longest wait for the end of the cgroups of other tests' agents."""


@pytest.fixture
def nothing_left(tmp_path):
    """Assert after the test that its runs left no process, cgroup, socket or shared memory."""
    before = set(orphaned_cgroups())
    yield
    tokens = tokens_below(tmp_path)
    assert tokens
    assert marked_processes(tokens) == []
    # Tests that run at the same time may have killed an agent, whose cgroup exists for a moment.
    deadline_s = time.monotonic() + ORPHANED_MAX_S
    while not set(orphaned_cgroups()) <= before and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert set(orphaned_cgroups()) <= before
    assert shared_memory_of(tokens) == []
    assert sockets_of(tokens) == []
