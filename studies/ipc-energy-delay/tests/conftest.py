"""A small tree of the authors' layout, written by each test with its own numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from wattwire import imports

FOLDER = Path(__file__).resolve().parents[1]
FIRST = "experiment_data_Fri_Mar__1_18:39:10_UTC_2019"
SECOND = "experiment_data_Sat_Mar__2_00:40:59_UTC_2019"
ARM_FIRST = "experiment_data_Mon_18_Feb_16:28:25_UTC_2019"


def clock(seconds: float) -> str:
    """Seconds as bash's `time` prints them."""
    return f"{int(seconds // 60)}m{seconds % 60:.3f}s"


class Tree:
    """Writes files where the authors' scripts would have left them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, where: str, text: str | bytes) -> Path:
        path = self.root / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def energy(
        self,
        watts: Sequence[float],
        run: str = "go/grpc",
        at: str = FIRST,
        node: str = "intel/client",
    ) -> Path:
        name = run.partition("/")[0]
        lines = "".join(f"{w}\n" for w in watts)
        return self.put(f"{node}/{at}/energy_server/{run}/{name}.txt", lines)

    def time(
        self,
        seconds: float,
        role: str = "client",
        run: str = "go/grpc",
        at: str = FIRST,
        node: str = "intel/client",
        before: str = "",
    ) -> Path:
        name = run.partition("/")[0]
        text = f"{before}\nreal\t{clock(seconds)}\nuser\t0m1.500s\nsys\t0m0.250s\n"
        return self.put(f"{node}/{at}/performance_{role}/{run}/{name}.txt", text)

    def resources(
        self,
        memory: int,
        side: str = "remote",
        run: str = "go/grpc",
        name: str = "",
        at: str = FIRST,
    ) -> Path:
        text = (
            '\tCommand being timed: "x"\n\tUser time (seconds): 1.00\n'
            "\tSystem time (seconds): 0.50\n"
            "\tElapsed (wall clock) time (h:mm:ss or m:ss): 1:02:03\n"
            f"\tMaximum resident set size (kbytes): {memory}\n"
            "\tMinor (reclaiming a frame) page faults: 777\n"
            "\tVoluntary context switches: 55\n\tExit status: 0\n"
        )
        file = name or f"{run.partition('/')[0]}.txt"
        return self.put(f"intel/resource_usage/{at}/resource_usage_{side}/{run}/{file}", text)

    def sheet(self, where: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
        lines = [" ".join(names), *(" ".join(map(str, row)) for row in rows)]
        return self.put(where, "\n".join(lines) + "\n")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture(scope="session")
def study() -> SimpleNamespace:
    """The reader and its modules, loaded as `wattwire import` loads them."""
    reader = imports.load(FOLDER)
    base = reader.function.__module__
    names = ("files", "layout", "observed", "printed", "runs", "sheets", "order", "naming")
    modules = {name: sys.modules[f"{base}.{name}"] for name in names}
    return SimpleNamespace(reader=reader, read=reader.function, **modules)


@pytest.fixture
def aside() -> Callable[[imports.Imported], dict[str, str]]:
    """What was set aside: path -> why."""
    return lambda imported: {one.path: one.why for one in imported.set_aside}
