"""Measure the probe of `wattwire topics` against a reader written in rclpy.

Three comparisons: the CPU time per message, the error of a latency, and the latency that the reader
itself has, as a node of the graph, with the probe and without it.

The error of a latency is how much longer it is than the message's way through the middleware, which
ends when the message is in the history of the subscription. The RMW has both ends: its source
timestamp and its received timestamp. To this way, `ros2 topic delay` adds the time from the stamp
to the publication, the decoding of the message and the wait for the executor; the probe adds its
wake-up and the take. A reader that polled or rounded would also show in this error, but not in the
digits of its times, which are nanoseconds for both.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.pairs import Comparison, compared, interleaved, table
from contract.conformance.leftovers.watchdog import WATCHDOG
from wattwire.analysis.streams.numbers import watched
from wattwire.catalog import Catalog
from wattwire.rig import AgentClient, Builder, CellBuild
from wattwire.rig.builds import merge_env
from wattwire.run.probing.watching import Watch, WatchRequest

BARE = Path(__file__).parents[1] / "bare"
PROBE, CELL = "ros2/probe", "ros2/python"
SECONDS = 3.0
CPU, ERROR, OWN_LATENCY = 1 / 3, 1 / 10, 1.05
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


class Figures(NamedTuple):
    """What is measured with the probe, or without it (µs)."""

    cpu: float
    """CPU time per message of the probe, or of the reader in rclpy."""
    error: float
    """Median error of a latency of the probe, or of the reader in rclpy."""
    own_latency: float
    """Median delay of the reader in rclpy, as a node of the graph."""


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

    def with_probe(self, load: Load) -> Figures:
        """Return the figures of the probe alone, and the delay of the reader beside it."""
        folder = self._folder / f"probe{next(self._numbers)}"
        folder.mkdir()
        watch = Watch(self._agent, self._probe, WatchRequest(["/load/*"], domain=DOMAIN), folder)
        try:
            begin_ns = watch.wait_settled()
            watch.sleep(SECONDS + 1)
            end_ns = begin_ns + round((SECONDS + 1) * 1e9)
            records = watch.records()
            result = watched(watch.graph, records, begin_ns, end_ns)
            own_latency_us = self.reader(load).own_latency
        finally:
            watch.close()
        if len(result.streams) != load.topics or result.cost is None:
            raise RuntimeError(f"the probe read {len(result.streams)} of {load.topics} topics")
        assert result.cost.cpu_us_per_message is not None
        times_ns = records["monotonic_ns"]
        errors_ns = (records["taken_ns"] - records["received_ns"])[
            (times_ns >= begin_ns) & (times_ns < end_ns)
        ]
        error_us = float(np.median(errors_ns)) / 1e3
        return Figures(result.cost.cpu_us_per_message, error_us, own_latency_us)

    def reader(self, load: Load) -> Figures:
        """Return the figures of the reader in rclpy."""
        done = subprocess.run(
            [self._python, str(BARE / "graph_reader.py"), str(load.topics), str(SECONDS)],
            env=self._env, capture_output=True, text=True, check=False, timeout=PEER_S,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip()[-300:])
        cpu_ns, count, delay_ns, error_ns = map(float, done.stdout.split())
        return Figures(cpu_ns / 1e3 / count, error_ns / 1e3, delay_ns / 1e3)


def comparisons(pairs: int) -> Iterator[Comparison]:
    """Yield the comparisons of both loads."""
    # The probe inherits the variables that the agent has when it starts.
    with _variables(THIS_HOST_ONLY), tempfile.TemporaryDirectory() as state:
        agent = AgentClient(Path(state))
        try:
            sides = Sides(agent, Path(state))
            for load in LOADS:
                with sides.talking(load):
                    columns = interleaved(
                        load.name,
                        (
                            lambda load=load: sides.with_probe(load),  # type: ignore[misc]
                            lambda load=load: sides.reader(load),  # type: ignore[misc]
                        ),
                        pairs,
                    )
                yield from of_load(load.name, *columns)
        finally:
            agent.close()


def of_load(name: str, probed: Sequence[Figures], plain: Sequence[Figures]) -> Iterator[Comparison]:
    """Yield the three comparisons of a load, from its pairs with and without the probe."""
    for field, label, unit, promise in (
        ("cpu", "CPU time", "µs a message", CPU),
        ("error", "error of a latency", "µs", ERROR),
        ("own_latency", "delay of a node, with the probe against without", "µs", OWN_LATENCY),
    ):
        columns = [tuple(getattr(side, field) for side in sides) for sides in (probed, plain)]
        yield from compared(f"{name}: {label}", unit, (columns[0], columns[1]), promise)


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
    print("\n## The probe of `wattwire topics` and a reader in rclpy\n")
    print(table(list(comparisons(pairs))), flush=True)
