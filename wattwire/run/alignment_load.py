"""Make a pseudo-random load with known times, by which traces and outside meters are aligned."""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wattwire.model.deployment import Deployment
from wattwire.model.errors import AgentLostError, WattwireError
from wattwire.model.outside_meters import CHIP_S, LEAD_S, REST_S, OutsideMeter
from wattwire.rig import AgentClient
from wattwire.run.node_specs import SECOND_NS
from wattwire.run.results.convert import quantities_frame
from wattwire.run.results.power import sources
from wattwire.run.results.resources import Readings
from wattwire.stats.series.alignment import chips

PHASE = "load for the alignment of a meter's clock"
"""The phase of a campaign in which it makes the load."""
PATIENCE_S = 10.0
"""Time (s) after the last chip, until which the processes must have ended."""

LOAD = """
import sys, time
begin_ns, chip_ns, chips = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
times_ns = []
for position in range(len(chips) + 1):
    due_ns = begin_ns + position * chip_ns
    if position and chips[position - 1] == "1":
        while time.monotonic_ns() < due_ns: pass
    else:
        time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
    times_ns.append(time.monotonic_ns())
print(*times_ns)
"""
"""Keeps a core busy in the chips of 1, and prints the times at which its chips began and ended."""


class AlignmentLoad:
    """The load of `chips`, on all cores or on none, on the machine of an agent.

    `reader` is the agent that reads the `meters` outside this machine during the load.
    """

    def __init__(
        self,
        agent: AgentClient,
        folder: Path,
        chip_s: float | None = None,
        reader: AgentClient | None = None,
        meters: Mapping[str, OutsideMeter] | None = None,
    ) -> None:
        self._agent, self._folder = agent, folder.resolve()
        self._reader, self._meters = reader or agent, meters or {}
        self._chip_ns = round((CHIP_S if chip_s is None else chip_s) * SECOND_NS)
        self._token = "ww" + secrets.token_hex(5)

    def make(self) -> dict[str, Any]:
        """Make the load once, and return its times (CLOCK_MONOTONIC of the machine) as a document.

        `boundaries_ns` are the medians over the cores of the times that their processes observed,
        and `late_ns` is the largest deviation of a core from the schedule. `meters` has the
        readings of the first source of energy of each meter: times (ns) and values.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        cpus = self._agent.cpus["allowed"]
        with self._reading() as meters:
            begin_ns = time.monotonic_ns() + round(LEAD_S * SECOND_NS)
            end_ns = begin_ns + len(chips()) * self._chip_ns
            try:
                logs = [self._start(cpu, begin_ns) for cpu in cpus]
                times_ns = np.array([self._times(log, end_ns) for log in logs], np.int64)
            finally:
                self._agent.request("clean", run=self._token)
            time.sleep(REST_S)
        schedule_ns = begin_ns + self._chip_ns * np.arange(len(chips()) + 1, dtype=np.int64)
        return {
            "boot_id": self._agent.hello["boot_id"],
            "cpus": cpus,
            "levels": list(chips()),
            "boundaries_ns": np.median(times_ns, axis=0).astype(np.int64).tolist(),
            "late_ns": int(np.abs(times_ns - schedule_ns).max()),
            "meters": meters,
        }

    @contextlib.contextmanager
    def _reading(self) -> Iterator[dict[str, Any]]:
        """Read the meters during the block, and put their readings into the yielded document."""
        readings: dict[str, Any] = {}
        if not self._meters:
            yield readings
            return
        path = self._folder / "readings.bin"
        addresses = {name: meter.at for name, meter in self._meters.items()}
        self._reader.request(
            "sample_start", path=str(path), tick_hz=1.0, meters=list(addresses), subjects={},
            marks_only=True, addresses=addresses,
        )  # fmt: skip
        series: list[dict[str, Any]] = []
        try:
            yield readings
        finally:
            series = self._reader.request("sample_stop")["series"]
        sampled = Readings(quantities_frame("", Deployment(()), path, series))
        for source in sources(series):
            times_ns, values = sampled.of_meter(source.meter, source.quantity, source.subjects[0])
            readings.setdefault(
                source.meter,
                {
                    "quantity": source.quantity, "counter": source.counter,
                    "t_ns": times_ns.tolist(), "values": values.tolist(),
                },
            )  # fmt: skip

    def _start(self, cpu: int, begin_ns: int) -> Path:
        """Start the process of a core, and return the file to which it writes its times."""
        name = f"alignment-{cpu}"
        log, errors = self._folder / f"{name}.times", self._folder / f"{name}.log"
        levels = "".join(map(str, chips()))
        self._agent.request(
            "spawn",
            process=f"{name}-{self._token}",
            run=self._token,
            argv=[sys.executable, "-S", "-c", LOAD, str(begin_ns), str(self._chip_ns), levels],
            env={},
            cwd=str(self._folder),
            stdout=str(log),
            stderr=str(errors),
            clear_env=False,
            cpus=[cpu],
        )
        return log

    def _times(self, log: Path, end_ns: int) -> list[int]:
        """Return the times (ns) that the process of a core wrote at its end.

        Raise WattwireError if it has not written them in time.
        """
        while time.monotonic_ns() < end_ns + PATIENCE_S * SECOND_NS:
            words = log.read_text("utf-8").split() if log.exists() else []
            if len(words) == len(chips()) + 1:
                return [int(word) for word in words]
            if self._agent.lost.is_set():
                raise AgentLostError("the agent ended during the load for the alignment")
            time.sleep(0.05)
        raise WattwireError(
            f"the load for the alignment of a trace did not end within {PATIENCE_S:g} s after its "
            f"last chip; see {log.with_suffix('.log')}. Continue with --resume."
        )
