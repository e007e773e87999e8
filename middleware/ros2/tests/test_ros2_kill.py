"""ROS nodes leave no shared memory behind, and use none with UDP only."""

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
# Fast DDS derives ports from the domain; all domains of the host share the ports below.
FIRST_PORT_OF_A_DOMAIN = 7400


def spec(role: str, run: str, domain: int, **changed: Any) -> dict[str, Any]:
    cell = Catalog([ROOT]).cell(changed.get("cell", "ros2/cpp-rcl"))
    vectors = json.loads((ROOT / "contract" / "vectors" / "spec.json").read_text())["valid"]
    shape = next(v["spec"] for v in vectors if v["name"] == f"topic {role}")
    settings = {f"settings.{name}": value for name, value in cell.first_settings.items()}
    ends = {"publisher": (2, 1), "subscriber": (1, 2)}[role]
    return {
        **shape, **cell.declared, **settings, "settings.domain": domain, "run": run,
        "cell": cell.name,
        "node": ends[0], "peers.nodes": [ends[1]], "ready_timeout_ms": 60_000, **changed,
    }  # fmt: skip


def used_by(pid: int) -> set[str]:
    """Return the files in /dev/shm that a process uses, and the files named after them."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    names = {line.partition("/dev/shm/")[2] for line in maps.splitlines() if "/dev/shm/" in line}
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(entry)
        if target.startswith("/dev/shm/"):
            names.add(target.removeprefix("/dev/shm/"))
    names = {name for name in names if own(name)}
    return names | {f"sem.{name}_mutex" for name in names if "_port" in name and "_el" not in name}


def own(name: str) -> bool:
    """Return whether only processes of this run can have created the file."""
    if not name.startswith("fastdds_"):
        return False
    digits = name.removeprefix("fastdds_port").partition("_")[0]
    return not name.startswith("fastdds_port") or int(digits) >= FIRST_PORT_OF_A_DOMAIN


def free_domain() -> int:
    """Return a domain without ports of earlier processes."""
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
    agent: AgentClient,
    build: CellBuild,
    role: str,
    run: str,
    folder: Path,
    domain: int,
    **changed: Any,
) -> int:
    """Spawn a node and return its pid before it is matched."""
    out = folder / role
    out.mkdir()
    path = out / "spec.json"
    path.write_text(json.dumps(spec(role, run, domain, **changed)))
    reply = agent.request(
        "spawn", process=role, run=run, env=build.env, cwd=str(out), stdout="lines-on-3",
        argv=[*build.argv, "--spec", str(path), "--out", str(out)], stderr=str(out / "err"),
    )  # fmt: skip
    return int(reply["pid"])


def built(agent: AgentClient, cell: str) -> CellBuild:
    try:
        return Builder(agent).cell(Catalog([ROOT]).cell(cell))
    except MissingError as reason:
        pytest.skip(str(reason))


def start_pair(
    agent: AgentClient, build: CellBuild, run: str, folder: Path, **changed: Any
) -> tuple[dict[str, int], dict[str, dict[str, Any]], queue.Queue[dict[str, Any]]]:
    """Start a matched subscriber and publisher; return pids and READY of each, and the events."""
    events: queue.Queue[dict[str, Any]] = queue.Queue()
    domain = free_domain()
    pids = {}
    for role in ("subscriber", "publisher"):
        agent.subscribe(role, events)
        pids[role] = started(agent, build, role, run, folder, domain, **changed)
    ready: dict[str, dict[str, Any]] = {}
    while len(ready) < len(pids):
        event = wait_event(events, time.monotonic() + HANG_S)
        assert event is not None, "the nodes did not get ready"
        assert event["event"] == "line", event
        assert event["text"].startswith("READY "), event
        ready[event["process"]] = json.loads(event["text"].removeprefix("READY "))
    return pids, ready, events


def kill_all(pids: dict[str, int], events: queue.Queue[dict[str, Any]]) -> None:
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    left = set(pids)
    while left:
        event = wait_event(events, time.monotonic() + HANG_S)
        assert event is not None, "the nodes did not end"
        if event["event"] == "exit":
            left.discard(event["process"])


@pytest.mark.parametrize("cell", ["ros2/cpp-rcl", "ros2/python"])
@pytest.mark.parametrize("transports", ["udp", "default"])
def test_reported_transports_match_the_memory_map(
    agent: AgentClient, tmp_path: Path, cell: str, transports: str
) -> None:
    build = built(agent, cell)
    run = "ww" + secrets.token_hex(5)
    changed = {"settings.transports": transports, "cell": cell}
    pids, ready, events = start_pair(agent, build, run, tmp_path, **changed)
    try:
        mapped = {role: any(map(own, used_by(pid))) for role, pid in pids.items()}
    finally:
        kill_all(pids, events)
        agent.request("clean", run=run)
    assert mapped == dict.fromkeys(pids, transports == "default")
    assert {r["effective"]["transports"] for r in ready.values()} == {transports}


def test_a_killed_node_leaves_nothing(agent: AgentClient, tmp_path: Path) -> None:
    build = built(agent, "ros2/cpp-rcl")
    run = "ww" + secrets.token_hex(5)
    pids, _, events = start_pair(agent, build, run, tmp_path)
    names = set().union(*(used_by(pid) for pid in pids.values()))
    left = {name for name in names if (SHARED_MEMORY / name).exists()}
    assert any("_port" in name for name in left)
    assert any(name.startswith("sem.") for name in left)
    kill_all(pids, events)
    agent.request("clean", run=run)
    assert {name for name in left if (SHARED_MEMORY / name).exists()} == set()
