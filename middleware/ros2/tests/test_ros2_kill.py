"""A ROS node that is killed leaves nothing in shared memory once the agent has cleaned its run."""

from __future__ import annotations

import json
import os
import queue
import secrets
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder, CellBuild
from wattwire.rig.agent import wait_event

ROOT = Path(__file__).resolve().parents[3]
SHARED_MEMORY = Path("/dev/shm")
HANG_S = 120.0
# Fast DDS derives them from the domain; those below are shared by all domains of the host.
FIRST_PORT_OF_A_DOMAIN = 7400


def spec(role: str, run: str, domain: int) -> dict[str, Any]:
    catalog = Catalog([ROOT])
    declared = catalog.middleware["ros2"].document["settings"]
    vectors = json.loads((ROOT / "contract" / "vectors" / "spec.json").read_text())["valid"]
    shape = next(v["spec"] for v in vectors if v["name"] == f"topic {role}")
    settings = {f"settings.{name}": table["default"] for name, table in declared.items()}
    ends = {"publisher": (2, 1), "subscriber": (1, 2)}[role]
    return {
        **{key: value for key, value in shape.items() if not key.startswith("settings.")},
        **settings, "settings.domain": domain, "run": run, "cell": "ros2/cpp-rcl",
        "node": ends[0], "peers.nodes": [ends[1]], "ready_timeout_ms": 60_000,
    }  # fmt: skip


def used_by(pid: int) -> set[str]:
    """Names in /dev/shm that a process maps or holds open, with what is named after them."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    names = {line.partition("/dev/shm/")[2] for line in maps.splitlines() if "/dev/shm/" in line}
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(entry)
        if target.startswith("/dev/shm/"):
            names.add(target.removeprefix("/dev/shm/"))
    names = {name for name in names if own(name)}
    return names | {f"sem.{name}_mutex" for name in names if "_port" in name and "_el" not in name}


def own(name: str) -> bool:
    """Whether only this run's processes can have made it."""
    if not name.startswith("fastdds_"):
        return False
    digits = name.removeprefix("fastdds_port").partition("_")[0]
    return not name.startswith("fastdds_port") or int(digits) >= FIRST_PORT_OF_A_DOMAIN


def free_domain() -> int:
    """A domain of which no earlier process has left a port."""
    taken = {path.name for path in SHARED_MEMORY.glob("fastdds_port*")}

    def ports(domain: int) -> set[str]:
        first = FIRST_PORT_OF_A_DOMAIN + 250 * domain
        return {f"fastdds_port{port}" for port in range(first, first + 250)}

    return next(domain for domain in range(101, 0, -1) if not taken & ports(domain))


@pytest.fixture
def agent(tmp_path: Path) -> Any:
    client = AgentClient(tmp_path / "agent")
    yield client
    client.close()


def started(
    agent: AgentClient, build: CellBuild, role: str, run: str, folder: Path, domain: int
) -> int:
    """The pid of a node that has been spawned and is not matched yet."""
    out = folder / role
    out.mkdir()
    path = out / "spec.json"
    path.write_text(json.dumps(spec(role, run, domain)))
    reply = agent.request(
        "spawn", process=role, run=run, env=build.env, cwd=str(out), stdout="lines-on-3",
        argv=[*build.argv, "--spec", str(path), "--out", str(out)], stderr=str(out / "err"),
    )  # fmt: skip
    return int(reply["pid"])


def test_a_killed_node_leaves_nothing(agent: AgentClient, tmp_path: Path) -> None:
    try:
        build = Builder(agent).cell(Catalog([ROOT]).cell("ros2/cpp-rcl"))
    except MissingError as reason:
        pytest.skip(str(reason))
    run = "ww" + secrets.token_hex(5)
    events: queue.Queue[dict[str, Any]] = queue.Queue()
    domain = free_domain()
    pids = {}
    for role in ("subscriber", "publisher"):
        agent.subscribe(role, events)
        pids[role] = started(agent, build, role, run, tmp_path, domain)
    ready: set[str] = set()
    while len(ready) < len(pids):
        event = wait_event(events, time.monotonic() + HANG_S)
        assert event is not None, "the nodes did not get ready"
        assert event["event"] == "line", event
        assert event["text"].startswith("READY "), event
        ready.add(event["process"])
    names = set().union(*(used_by(pid) for pid in pids.values()))
    left = {name for name in names if (SHARED_MEMORY / name).exists()}
    assert any("_port" in name for name in left)
    assert any(name.startswith("sem.") for name in left)
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    while ready:
        event = wait_event(events, time.monotonic() + HANG_S)
        assert event is not None, "the nodes did not end"
        if event["event"] == "exit":
            ready.discard(event["process"])
    agent.request("clean", run=run)
    assert {name for name in left if (SHARED_MEMORY / name).exists()} == set()
