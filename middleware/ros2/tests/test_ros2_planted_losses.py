"""Messages that an emulated link drops are counted exactly by `topics` and by `exec --layers`.

The log of the link's frames is the truth. A message of best effort fits into one frame, and no
other frame has its size.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from middleware.ros2.tests.graph_kills import ros_build
from middleware.ros2.tests.installations import numbers_messages
from wattwire.hosts import namespaces
from wattwire.model.errors import MissingError
from wattwire.model.links.profile import read_link
from wattwire.rig import CellBuild
from wattwire.rig.builds import merge_env
from wattwire.rig.emulator import Emulator, Port, Tap, find_emulator
from wattwire.rig.emulator_log import LOST, Fate, read_log

pytestmark = [pytest.mark.slow, pytest.mark.quiet]

ROOT = Path(__file__).resolve().parents[3]
PLAIN = Path(__file__).with_name("plain_graph")
PROFILE = {"title": "Lossy", "summary": "For a test", "both": {"delay_ms": 1, "loss": 0.1}}
SEED = 34
HZ, MESSAGE_BYTES, FRAME_BYTES_MIN = 25, 1000, 1000
WARM_UP_S, WINDOW_S = 10, 10
LOST_MIN = 8
"""Of 250 messages, of which 10 % are lost: fewer are as rare as 1 in 10⁵."""
HANG_S = 120.0


@dataclass
class Rig:
    """Two network namespaces, each held by a process, with the link between them.

    `variables` are those of the graph, and `environment` that of its nodes.
    """

    talker_pid: int
    listener_pid: int
    emulator: Emulator
    build: CellBuild
    variables: dict[str, str]

    @property
    def environment(self) -> dict[str, str]:
        return {**merge_env(dict(os.environ), self.build.env), **self.variables}

    def within(self, pid: int, *words: str) -> list[str]:
        """Return the command that runs `words` in a namespace."""
        return ["nsenter", "--target", str(pid), "--net", *words]

    def dropped(self, begin_ns: int, end_ns: int) -> NDArray[np.bool_]:
        """Return whether the link dropped each message that entered it in a span, and end it."""
        self.emulator.close()
        log = read_log(self.emulator.log)
        frames = log[log["size_bytes"] >= FRAME_BYTES_MIN]
        sizes, counts = np.unique(frames["size_bytes"], return_counts=True)
        frames = frames[frames["size_bytes"] == sizes[np.argmax(counts)]]
        assert set(frames["fate"]) <= {Fate.DELIVERED, *LOST}
        frames = frames[(frames["in_ns"] >= begin_ns) & (frames["in_ns"] < end_ns)]
        return np.isin(np.sort(frames, order="in_ns")["fate"], LOST)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with contextlib.ExitStack() as running:
        try:
            (tmp_path / "agent").mkdir()
            build = ros_build(tmp_path / "agent")
            find_emulator()
            namespaces.require_tap_devices()
        except MissingError as reason:
            pytest.skip(str(reason))
        if os.geteuid() != 0:
            pytest.skip("a network namespace without a user namespace needs root")
        pids = [running.enter_context(_namespace()) for _ in range(2)]
        link = read_link("lossy", PROFILE, "lossy", lambda name: "")
        ports = [
            Port(name, number == 0, Tap(pid, "wwtap", f"10.77.0.{number + 1}"))
            for number, (name, pid) in enumerate(zip(("talker", "listener"), pids, strict=True))
        ]
        emulator = Emulator(link, SEED, ports, tmp_path)
        running.callback(emulator.kill)
        emulator.start(time.monotonic_ns())
        variables = {
            "ROS_DOMAIN_ID": str(1 + secrets.randbelow(100)),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET", "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4",
        }  # fmt: skip
        yield Rig(*pids, emulator, build, variables)


@contextlib.contextmanager
def _namespace() -> Iterator[int]:
    """Yield a process in a network namespace of its own, with its loopback interface."""
    script = "ip link set lo up && echo ready && exec sleep 1000"
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process.pid
        finally:
            process.kill()


def talker(rig: Rig, folder: Path, topic: str) -> list[str]:
    words = [rig.build.words["python"], str(PLAIN / "talker.py"), str(folder / "talker.json")]
    options = [str(HZ), str(MESSAGE_BYTES), "best_effort", topic]
    return rig.within(rig.talker_pid, *words, *options)


def measured(rig: Rig, words: Sequence[str], folder: Path) -> tuple[str, dict[str, Any]]:
    """Return what a command prints, and the document of its only run."""
    environment = {**os.environ, **rig.variables}
    done = subprocess.run(
        [*words], env=environment, cwd=ROOT,
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("runs/*/run.json")
    return done.stdout, json.loads(path.read_text())


def test_the_probe_counts_the_messages_that_the_link_dropped(rig: Rig, tmp_path: Path) -> None:
    campaign = tmp_path / "campaign"
    options = ["--for", f"{WINDOW_S}s", "--json", "--campaign", str(campaign)]
    words = [sys.executable, "-m", "wattwire", "topics", "chatter", *options]
    with subprocess.Popen(
        talker(rig, tmp_path, "chatter"), stdin=subprocess.PIPE, env=rig.environment
    ) as process:
        try:
            printed, run = measured(rig, rig.within(rig.listener_pid, *words), campaign)
        finally:
            assert process.stdin is not None
            process.stdin.close()
    (stream,) = (x for x in map(json.loads, printed.splitlines()) if x["kind"] == "stream")
    window = run["window"]
    is_dropped = rig.dropped(window["start_ns"], window["end_ns"])
    delivered = np.flatnonzero(~is_dropped)
    # The probe cannot see the losses before its first message and after its last one.
    between = is_dropped[delivered[0] : delivered[-1]]
    assert between.sum() > LOST_MIN
    assert stream["topic"] == "/chatter"
    # A message can be under way at each end of the window.
    assert abs(stream["messages"] - delivered.size) <= 1
    if not numbers_messages(rig.build):
        assert stream["faults"] is None
        return
    assert stream["faults"]["lost"] == between.sum()
    assert (stream["faults"]["reordered"], stream["faults"]["repeated"]) == (0, 0)


def test_exec_counts_the_messages_that_the_link_dropped(rig: Rig, tmp_path: Path) -> None:
    campaign = tmp_path / "campaign"
    listener = [rig.build.words["python"], str(PLAIN / "listener.py"), str(tmp_path / "heard")]
    nodes = (
        rig.within(rig.listener_pid, *listener, "best_effort"), talker(rig, tmp_path, "relayed")
    )  # fmt: skip
    # Each node ends with its input. They outlive the window.
    build = rig.build.env
    env = shlex.join(["env", *(f"{k}={v}" for k, v in rig.environment.items() if k in build)])
    script = " & ".join(f"sleep 60 | {env} {shlex.join(words)}" for words in nodes) + " & wait"
    options = ["--layers", "--json", "--no-report", "--baseline", "0.1s", "-o", str(campaign)]
    times = ["--warmup", f"{WARM_UP_S}s", "--for", f"{WINDOW_S}s"]
    words = [sys.executable, "-m", "wattwire", "exec", *options, *times, "--", "sh", "-c", script]
    _, run = measured(rig, words, campaign)
    window = run["window"]
    is_dropped = rig.dropped(window["start_ns"], window["end_ns"])
    entered, dropped = is_dropped.size, is_dropped.sum()
    (row,) = (row for row in run["layers"]["topics"] if row["topic"] == "/relayed")
    assert dropped > LOST_MIN
    assert (row["published"], row["deliveries"]) == (entered, entered - dropped)
    assert row["not_taken"] == dropped
