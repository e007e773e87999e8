"""Measure the CPU time of the probe of `wattwire topics`, against a reader written in rclpy."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.pairs import Comparison, abba, compared, table
from contract.conformance.leftovers.watchdog import WATCHDOG
from wattwire.analysis.streams.numbers import watched
from wattwire.catalog import Catalog
from wattwire.rig import AgentClient, Builder, CellBuild
from wattwire.rig.builds import merge_env
from wattwire.run.probing.watching import Watch, WatchRequest

BARE = Path(__file__).parents[1] / "bare"
PROBE, CELL = "ros2/probe", "ros2/python"
SECONDS = 4.0
PROMISE = 1 / 3
DOMAIN = "97"
THIS_HOST_ONLY = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
"""Variables that keep the discovery of the talker, the probe and the peer on this host."""
PEER_S = 60.0


@dataclass(frozen=True)
class Load:
    """Topics of one publishing node."""

    name: str
    topics: int
    payload_bytes: int
    rate_hz: int


LOADS = (
    Load("1 topic of 1 MB at 30 Hz", 1, 1_000_000, 30),
    Load("50 topics of 100 B at 100 Hz", 50, 100, 100),
)


class Sides:
    """The probe and its peer, each of which reads the same running talker."""

    def __init__(self, agent: AgentClient, folder: Path) -> None:
        builder, catalog = Builder(agent), Catalog()
        self._agent, self._folder, self._numbers = agent, folder, itertools.count()
        self._probe: CellBuild = builder.cell(catalog.probe(PROBE))
        cell = builder.cell(catalog.cell(CELL))
        self._python = cell.words["python"]
        own = {"ROS_DOMAIN_ID": DOMAIN, **THIS_HOST_ONLY}
        self._env = {**merge_env(dict(os.environ), cell.env), **own}

    @contextlib.contextmanager
    def talking(self, load: Load) -> Iterator[None]:
        """Run the talker of a load."""
        words = [str(n) for n in (load.topics, load.payload_bytes, load.rate_hz)]
        talker = subprocess.Popen(
            [self._python, str(BARE / "graph_talker.py"), *words],
            env=self._env, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        WATCHDOG.node_started(talker.pid)
        try:
            assert talker.stdout is not None
            if not talker.stdout.readline():
                raise RuntimeError("the talker did not start; its error is printed above")
            yield
        finally:
            talker.kill()
            talker.communicate()

    def probe_us(self, load: Load) -> float:
        """Return the CPU time (µs) of the probe per message."""
        folder = self._folder / f"probe{next(self._numbers)}"
        folder.mkdir()
        watch = Watch(self._agent, self._probe, WatchRequest(["/load/*"], domain=DOMAIN), folder)
        try:
            begin_ns = watch.wait_settled()
            watch.sleep(SECONDS + 1)
            end_ns = begin_ns + round((SECONDS + 1) * 1e9)
            result = watched(watch.graph, watch.records(), begin_ns, end_ns)
        finally:
            watch.close()
        if len(result.streams) != load.topics or result.cost is None:
            raise RuntimeError(f"the probe read {len(result.streams)} of {load.topics} topics")
        assert result.cost.cpu_us_per_message is not None
        return result.cost.cpu_us_per_message

    def peer_us(self, load: Load) -> float:
        """Return the CPU time (µs) of the reader in rclpy per message."""
        done = subprocess.run(
            [self._python, str(BARE / "graph_reader.py"), str(load.topics), str(SECONDS)],
            env=self._env, capture_output=True, text=True, check=False, timeout=PEER_S,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip()[-300:])
        cpu_ns, count = map(int, done.stdout.split())
        return cpu_ns / 1000 / count


def comparisons(pairs: int) -> Iterator[Comparison]:
    """Yield the CPU time per message of the probe, compared with that of the reader in rclpy."""
    # The probe inherits the variables that the agent has when it starts.
    with _variables(THIS_HOST_ONLY), tempfile.TemporaryDirectory() as state:
        agent = AgentClient(Path(state))
        try:
            sides = Sides(agent, Path(state))
            for load in LOADS:
                with sides.talking(load):
                    columns = abba(
                        load.name,
                        lambda load=load: sides.probe_us(load),  # type: ignore[misc]
                        lambda load=load: sides.peer_us(load),  # type: ignore[misc]
                        pairs,
                    )
                yield from compared(load.name, "µs a message", columns, PROMISE)
        finally:
            agent.close()


@contextlib.contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process, and restore them at the end."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def report(pairs: int) -> None:
    """Print the comparisons."""
    print("\n## CPU time of the probe of `wattwire topics` per message\n")
    print(table(list(comparisons(pairs))), flush=True)
