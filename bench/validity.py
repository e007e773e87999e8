"""Whether a load excludes a busy cell and an idle one alike: planted loads of three classes."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy import stats as scipy_stats

from bench.nodes import Bench, tell_build
from wattwire import stats
from wattwire.design import PlannedRun
from wattwire.model.study import parse_study
from wattwire.model.validity import CONDITION_CODES
from wattwire.rig import AgentClient, Builder
from wattwire.run.node_specs import node_plans
from wattwire.run.resolve_cells import prepare
from wattwire.run.results.summary import Collected
from wattwire.run.runner import OneRun

RUNS = 300
WINDOW_S = 0.3
CLASSES = ("SCHED_IDLE", "nice 19", "normal")
SHARES = (0.3, 1.0)
CELLS = ("busy", "idle")
NONE = "no load"
LOAD = Path(__file__).with_name("bare") / "load.py"
SETTLE_S = 0.02
CALLS_PER_S_MIN = 2000
DIFFERENCE, NORMAL, IDLE = 0.15, 0.95, 0.05
BETWEEN = 10
"""After so many rounds a line says how far it is."""


@dataclass(frozen=True)
class Run:
    """One run: which load, which cell, why it would be excluded, its median latency."""

    number: int
    load: str
    cell: str
    codes: tuple[str, ...]
    other_load_share: float | None
    p50_us: float | None


class Loads:
    """The planted loads: a process for each core and load, stopped while another works."""

    def __init__(self) -> None:
        self.names = [f"{kind}, {share:.0%}" for kind in CLASSES for share in SHARES]
        self._started: dict[str, list[subprocess.Popen[bytes]]] = {}
        for kind in CLASSES:
            for share in SHARES:
                argv = [sys.executable, str(LOAD), kind, str(share)]
                started = [subprocess.Popen(argv) for _ in range(os.cpu_count() or 1)]
                self._started[f"{kind}, {share:.0%}"] = started
        for process in (one for some in self._started.values() for one in some):
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)

    @contextlib.contextmanager
    def planted(self, name: str) -> Iterator[None]:
        """Let the load of this name work."""
        for process in self._started.get(name, []):
            process.send_signal(signal.SIGCONT)
        time.sleep(SETTLE_S)
        try:
            yield
        finally:
            for process in self._started.get(name, []):
                process.send_signal(signal.SIGSTOP)

    def end(self) -> None:
        """End them all."""
        for process in (one for some in self._started.values() for one in some):
            process.kill()
            process.wait()


class Cells:
    """loopback/cpp as a cell that keeps two cores busy, and as one that mostly waits."""

    def __init__(self, made: Bench) -> None:
        self._made, self._runs = made, 0
        self.agent = AgentClient(made.folder / "agent")
        self._studies = {}
        fixed = {"idle": {"rate_hz": 25}, "busy": {"loop": "closed", "clients": 2, "count": 2000}}
        for name in CELLS:
            self._prepare(name, fixed[name])
        trial = self.run(0, NONE, "busy")
        if trial.p50_us is None:
            raise RuntimeError("the busy cell measured nothing")
        count = max(CALLS_PER_S_MIN * WINDOW_S, WINDOW_S * 1e6 / trial.p50_us)
        self._prepare("busy", {**fixed["busy"], "count": int(count)})

    def _prepare(self, name: str, fixed: dict[str, object]) -> None:
        document = {
            "factors": {"cell": ["loopback/cpp"]},
            "fixed": {"pattern": "service", **fixed},
            "plan": {"duration_s": WINDOW_S, "baseline_s": 0.01, "quiet_ms": 10, "linger_ms": 20,
                     "controls": False},
        }  # fmt: skip
        study = parse_study("bench", document, "bench")
        builder = Builder(self.agent, tell_build)
        self._studies[name] = (study, prepare(study, self._made.catalog, builder))

    def run(self, number: int, load: str, cell: str) -> Run:
        """One run with fresh nodes, judged by the default limits."""
        study, prepared = self._studies[cell]
        self._runs += 1
        token = f"wwbench{self._runs}"
        folder = self._made.folder / token
        for name in ("out", "logs"):
            (folder / name).mkdir(parents=True)
        treatment = prepared.treatments[0]
        cells = prepared.cells[treatment.key]
        middleware = next(iter(cells.values())).middleware
        nodes = node_plans(treatment, study.plan, cells, middleware, token)
        planned = PlannedRun(token, 1, 1, treatment, "", "")
        one = OneRun(
            self.agent, study, planned, middleware, nodes, prepared.builds, token, folder, Silent()
        )
        made = Collected(planned, 1, one.execute(), study, folder, {}, None)
        codes = sorted({reason.code for reason in made.reasons if reason.code in CONDITION_CODES})
        row = made.row
        subprocess.run(["rm", "-rf", str(folder)], check=True)
        share, p50 = row.get("other_load_share"), row.get("latency_p50_us")
        return Run(number, load, cell, tuple(codes), share, p50)


class Silent:
    """Hears of a run's phases and says nothing."""

    def event(self, kind: str, **fields: object) -> None:
        """Say nothing."""


def measure(made: Bench, rounds: int, journal: Path) -> list[Run]:
    """Run all loads and none in rounds, both cells under each; what is in the journal stays."""
    runs = [Run(**{**one, "codes": tuple(one["codes"])}) for one in _kept(journal)]
    done = {(run.number, run.load, run.cell) for run in runs}
    loads = Loads()
    try:
        cells = Cells(made)
        with journal.open("a", encoding="utf-8") as file:
            for number in range(1, rounds + 1):
                for load, cell in _order(number, loads.names):
                    if (number, load, cell) in done:
                        continue
                    with loads.planted(load):
                        run = cells.run(number, load, cell)
                    runs.append(run)
                    file.write(json.dumps(asdict(run)) + "\n")
                    file.flush()
                if number % BETWEEN == 0:
                    print(f"  validity: round {number} of {rounds}", file=sys.stderr, flush=True)
        cells.agent.close()
    finally:
        loads.end()
    return runs


def _kept(journal: Path) -> list[dict[str, object]]:
    if not journal.exists():
        return []
    lines = journal.read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


def _order(number: int, names: Sequence[str]) -> list[tuple[str, str]]:
    """Loads in a random order, the two cells of each next to each other, in a random order too."""
    order = random.Random(number)
    loads = order.sample([NONE, *names], len(names) + 1)
    return [(load, cell) for load in loads for cell in order.sample(CELLS, 2)]


def difference_limits(hits: int, trials: int, others: int, of: int) -> tuple[float, float]:
    """95 % limits of the difference of two shares (Newcombe 1998, Stat. Med. 17:873, method 10)."""
    (low, high), (other_low, other_high) = _wilson(hits, trials), _wilson(others, of)
    share, other = hits / trials, others / of
    below = math.hypot(share - low, other_high - other)
    above = math.hypot(high - share, other - other_low)
    return share - other - below, share - other + above


def _wilson(hits: int, trials: int) -> tuple[float, float]:
    z = float(scipy_stats.norm.ppf(0.975))
    share = hits / trials
    middle = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return (middle - half) / (1 + z * z / trials), (middle + half) / (1 + z * z / trials)


def report(runs: Sequence[Run]) -> None:
    """Print exclusion by load, with verdicts, and each cell's p50 with and without each load."""
    names = list(dict.fromkeys(run.load for run in sorted(runs, key=lambda run: run.load)))
    print("\n## Excluded for other load, in a busy and in an idle cell\n")
    print("| load | busy | idle | difference, points (95 %) | alike | by class | by any limit |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        print(f"| {name} | {_shares(runs, name)} |")
    print("\n## Median latency with a load, over that without one\n")
    print("| load | cell | p50, µs | without | ratio (95 % t) | load seen, median |")
    print("|---|---|---|---|---|---|")
    for name in names:
        for cell in CELLS:
            if name != NONE:
                print(f"| {name} | {cell} | {_latency(runs, name, cell)} |")
    print(
        "\nWork of idle priority keeps cores awake, which can make a cell faster than no load does."
    )


def _shares(runs: Sequence[Run], name: str) -> str:
    sides = [[run for run in runs if (run.load, run.cell) == (name, cell)] for cell in CELLS]
    hits = [sum("other_load" in run.codes for run in side) for side in sides]
    trials = [len(side) for side in sides]
    if not all(trials):
        return "too few | | | undecided | | "
    low, high = difference_limits(hits[0], trials[0], hits[1], trials[1])
    within = low > -DIFFERENCE and high < DIFFERENCE
    beyond = low >= DIFFERENCE or high <= -DIFFERENCE
    alike = "passed" if within else "failed" if beyond else "undecided"
    any_limit = [sum(bool(run.codes) for run in side) for side in sides]
    told = [f"{hit} of {of}" for hit, of in zip(hits, trials, strict=True)]
    told.append(f"{100 * low:.1f} to {100 * high:.1f}")
    told += [alike, _by_class(name, sum(hits), sum(trials))]
    told.append(" and ".join(f"{n} of {of}" for n, of in zip(any_limit, trials, strict=True)))
    return " | ".join(told)


def _by_class(name: str, hits: int, trials: int) -> str:
    """Whether a load that takes everything is excluded, and one that takes nothing is not."""
    interval = stats.share_interval(hits, trials)
    told = f"{100 * hits / trials:.1f} % ({100 * interval.low:.1f} to {100 * interval.high:.1f})"
    if name == "normal, 100%":
        kept, broken = interval.low >= NORMAL, interval.high < NORMAL
    elif name.startswith("SCHED_IDLE"):
        kept, broken = interval.high <= IDLE, interval.low > IDLE
    else:
        return told
    return f"{told}: {'passed' if kept else 'failed' if broken else 'undecided'}"


def _latency(runs: Sequence[Run], name: str, cell: str) -> str:
    """Geometric means of the runs' medians, and their ratio over rounds."""
    of = {(run.load, run.number): run.p50_us for run in runs if run.cell == cell and run.p50_us}
    rounds = [number for load, number in of if load == name and (NONE, number) in of]
    if len(rounds) < 3:
        return "too few | | | "
    with_load = np.log([of[name, number] for number in rounds])
    without = np.log([of[NONE, number] for number in rounds])
    ratios = with_load - without
    error = ratios.std(ddof=1) / math.sqrt(len(rounds)) * scipy_stats.t.ppf(0.975, len(rounds) - 1)
    low, high = np.exp(ratios.mean() - error), np.exp(ratios.mean() + error)
    seen = [r.other_load_share for r in runs if (r.load, r.cell) == (name, cell)]
    known = [share for share in seen if share is not None]
    return (
        f"{np.exp(with_load.mean()):.1f} | {np.exp(without.mean()):.1f} | "
        f"{np.exp(ratios.mean()):.3f} ({low:.3f} to {high:.3f}) | {np.median(known):.3f}"
    )
