"""Test attributed CPU time against rusage, for single loads and for simultaneous loads."""

from __future__ import annotations

import queue
import sys
import time
from dataclasses import dataclass

import pytest

from wattwire.model.deployment import Deployment
from wattwire.rig import AgentClient
from wattwire.run.results.convert import quantities_frame
from wattwire.run.results.resources import Readings

pytestmark = pytest.mark.quiet

THREADS = """
import threading
def work():
    total = 0
    for i in range({steps}):
        total += i
for _ in range(6):
    threads = [threading.Thread(target=work) for _ in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
"""
CHILDREN = """
import subprocess, sys
for _ in range(8):
    subprocess.run([sys.executable, "-S", "-c", "sum(range({steps}))"], check=True)
"""
STEADY = """
import sys, time
share, until = float(sys.argv[1]), time.monotonic() + float(sys.argv[2])
period, next_ = 0.02, time.monotonic()
while next_ < until:
    used = time.process_time() + share * period  # CPU time, so that waiting for a core is not work
    while time.process_time() < used:
        pass
    next_ += period
    time.sleep(max(0.0, next_ - time.monotonic()))
"""
AGREEMENT = 0.01


@dataclass
class Load:
    name: str
    argv: list[str]


@pytest.fixture(params=["v2", "v1", "none"])
def rung(request, monkeypatch):
    monkeypatch.setenv("WATTWIRE_CGROUP", request.param)
    return request.param


def measured(tmp_path, loads: list[Load], window_s: float | None):
    """Return the CPU time (ns) of each load, from the meter and from the guard's rusage.

    If `window_s` is None, the loads run until they end.
    """
    agent = AgentClient(tmp_path / "agent")
    events: queue.Queue = queue.Queue()
    (tmp_path / "logs").mkdir(exist_ok=True)
    try:
        path = tmp_path / "readings.bin"
        agent.request(
            "sample_start", path=str(path), tick_hz=10.0, meters=["proc_cpu"], subjects={}
        )
        for load in loads:
            agent.subscribe(load.name, events)
            agent.request(
                "spawn", process=load.name, run="wwtest", argv=load.argv, env={},
                cwd=str(tmp_path), stdout=str(tmp_path / "logs" / f"{load.name}.out"),
                stderr=str(tmp_path / "logs" / f"{load.name}.err"), clear_env=False,
            )  # fmt: skip
        span = None
        if window_s is not None:
            time.sleep(0.5)  # exclude the cost of starting the load
            first = agent.request("mark", name="first")["t_ns"]
            time.sleep(window_s)
            span = first, agent.request("mark", name="last")["t_ns"]
        usage = {}
        while len(usage) < len(loads):
            event = events.get(timeout=60)
            if event["event"] == "exit":
                assert event["code"] == 0, event
                usage[event["process"]] = event["rusage"]["user_ns"] + event["rusage"]["system_ns"]
        end_ns = agent.request("mark", name="end")["t_ns"]
        stopped = agent.request("sample_stop")
        readings = Readings(quantities_frame("r", Deployment(()), path, stopped["series"]))
        used = {}
        for load in loads:
            subject = ("cpu_time", "process", load.name)
            # The counter of a process starts at 0, so its last value is the total over its
            # lifetime.
            used[load.name] = (
                readings.increase(*subject, *span)
                if span
                else readings.mean(*subject, end_ns, end_ns)
            )
        return used, usage, agent.hello["cgroup"]["rung"]
    finally:
        agent.close()


@pytest.mark.parametrize(
    ("kind", "code"),
    [("threads that end", THREADS.format(steps=1_500_000)),
     ("children that exit between samples", CHILDREN.format(steps=3_000_000))],
)  # fmt: skip
def test_ended_threads_and_children_are_counted(tmp_path, rung, kind, code):
    load = Load("load-0", [sys.executable, "-S", "-c", code])
    used, usage, found = measured(tmp_path, [load], None)
    if found != rung:
        pytest.skip(f"the rung {rung} is not to be had here: {found}")
    error = used["load-0"] / usage["load-0"] - 1.0
    print(f"{kind}, {rung}: {used['load-0'] / 1e6:.1f} ms against rusage's "
          f"{usage['load-0'] / 1e6:.1f} ms: {error:+.2%}")  # fmt: skip
    assert usage["load-0"] > 2e8
    assert abs(error) <= AGREEMENT


def test_two_known_loads_cost_together_what_they_cost_alone(tmp_path):
    def load(name, share):
        return Load(name, [sys.executable, "-S", "-c", STEADY, str(share), "4.0"])

    pair = [load("load-a", 0.15), load("load-b", 0.30)]
    alone = {}
    for one in pair:
        folder = tmp_path / one.name
        folder.mkdir()
        alone |= measured(folder, [one], 2.5)[0]
    folder = tmp_path / "both"
    folder.mkdir()
    together = measured(folder, pair, 2.5)[0]
    for name, planted in (("load-a", 0.15), ("load-b", 0.30)):
        error = together[name] / alone[name] - 1.0
        print(f"{name}: alone {alone[name] / 1e6:.1f} ms, together {together[name] / 1e6:.1f} ms, "
              f"error {error:+.2%}; planted {planted * 2500:.0f} ms")  # fmt: skip
        assert abs(error) <= 0.10
        assert alone[name] / 2.5e9 == pytest.approx(planted, rel=0.15)
