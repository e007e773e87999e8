"""Run cells without a campaign, and derive measurements from the records of their nodes."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from contract.conformance.cell import CellUnderTest
from contract.conformance.group import Group, Member
from contract.conformance.roles import PATTERNS, SENDING_ROLES
from contract.conformance.spec import RECEIVER_NODE, SENDER_NODE
from wattwire.catalog import Catalog, Cell
from wattwire.cli.check_hosts import CheckHosts
from wattwire.cli.conformance import suite, under_test
from wattwire.cli.round_trips import cell_round_trip_ns
from wattwire.hosts.hosts import here
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder, BuildStep

CELLS = Path(__file__).with_name("cells")
MEASURING = {"verify": "header", "payload.bytes": 64, "timeout_ns": 2_000_000_000}


def with_bench_cells(path: str) -> str:
    """Return a value of WATTWIRE_PATH with the folder of the bench's cells and links."""
    return os.pathsep.join(dict.fromkeys(filter(None, [*path.split(os.pathsep), str(CELLS)])))


def make_cells_known() -> None:
    """Add the bench's cells and links to WATTWIRE_PATH of this process and its children."""
    os.environ["WATTWIRE_PATH"] = with_bench_cells(os.environ.get("WATTWIRE_PATH", ""))


def tell_build(step: BuildStep) -> None:
    """Print a line for one step of a build."""
    print(f"  building {step.name}, step {step.step} of {step.steps}", flush=True)


def own_cost_roles(cell: CellUnderTest) -> tuple[str, str]:
    """Return the sending and the receiving role of a null cell, which has one pattern."""
    pattern = PATTERNS[cell.patterns[0]]
    return pattern.sender, pattern.receiver


class Bench:
    """A builder of cells, which also runs their nodes. All files are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.catalog = Catalog()
        self._agent = AgentClient(folder / "agent")
        self._hosts = CheckHosts(here(self._agent))
        self._builder = Builder(self._agent, tell_build)
        self._suite = suite()

    def cell(self, name: str) -> CellUnderTest | None:
        """Return a built cell, or print the reason and return None if it cannot be built."""
        return self.build(self.catalog.cell(name))

    def build(self, cell: Cell) -> CellUnderTest | None:
        """Return a built cell of any catalogue; see `cell`."""
        try:
            build = self._builder.cell(cell)
        except MissingError as error:
            print(f"  {cell.known_as}: absent: {error}", flush=True)
            return None
        return under_test(self._suite, build, self._hosts, self.folder)

    def close(self) -> None:
        self._agent.close()

    def ping_ns(self, cell: CellUnderTest, count: int, **changes: Any) -> float:
        """Return the median round trip (ns) of `count` consecutive calls."""
        return cell_round_trip_ns(cell, self.folder, count, **changes)

    def per_message_ns(self, cell: CellUnderTest, role: str, count: int) -> float:
        """Return the kit's cost per message (ns): the mean time between consecutive records.

        `role` is a role of the cell's only pattern.
        """
        changes = {**MEASURING, "record.capacity": count + 10, "settings.arrivals": count}
        # All messages are scheduled for the same time, so the sender never waits for its schedule.
        changes |= {"period_ns": 1, "duration_ns": count, "overrun_ns": 60_000_000_000}
        sends = role in SENDING_ROLES
        changes |= {"peers.nodes": [RECEIVER_NODE if sends else SENDER_NODE], "outstanding_max": 1}
        members = [Member(cell, role, changes)]
        with Group(self.folder, cell.patterns[0], members, []) as group:
            group.start()
            group.go()
            group.wait_sent()
            group.finish()
            records = group.samples(group.node(role)).records
        field = "begin_ns" if sends else "end_ns"
        times = np.array([getattr(record, field) for record in records])
        return float((times[-1] - times[0]) / (len(times) - 1))


def peak_mib(pid: int) -> float:
    """Return the peak of the resident memory of a running process (MiB)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@contextlib.contextmanager
def bench() -> Iterator[Bench]:
    """Yield a bench in a temporary folder. Its agent ends with the context."""
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as folder:
        workbench = Bench(Path(folder))
        try:
            yield workbench
        finally:
            workbench.close()
