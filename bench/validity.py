"""Check with planted loads of three classes whether busy and idle cells are excluded equally."""

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
from wattwire.hosts.hosts import here
from wattwire.model.deployment import HOST
from wattwire.model.study import parse_study
from wattwire.model.validity import CONDITION_CODES
from wattwire.rig import AgentClient, Builder
from wattwire.run.record import OpenAttempt
from wattwire.run.resolve_cells import prepare
from wattwire.run.results.summary import Collected
from wattwire.run.runner import OneRun, RunSetup

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
"""Number of rounds between two lines of progress."""


@dataclass(frozen=True)
class Run:
    """One run: its load, its cell, the reasons to exclude it, and its median latency."""

    number: int
    load: str
    cell: str
    codes: tuple[str, ...]
    other_load_share: float | None
    p50_us: float | None


class Loads:
    """The planted loads: one process per core and load. Only one load is active at a time."""

    def __init__(self) -> None:
        self.names = [f"{kind}, {share:.0%}" for kind in CLASSES for share in SHARES]
        self._started: dict[str, list[subprocess.Popen[bytes]]] = {}
        for kind in CLASSES:
            for share in SHARES:
                argv = [sys.executable, str(LOAD), kind, str(share)]
                started = [subprocess.Popen(argv) for _ in range(os.cpu_count() or 1)]
                self._started[f"{kind}, {share:.0%}"] = started
        for process in (p for processes in self._started.values() for p in processes):
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)

    @contextlib.contextmanager
    def planted(self, name: str) -> Iterator[None]:
        """Run the load with this name within the context."""
        for process in self._started.get(name, []):
            process.send_signal(signal.SIGCONT)
        time.sleep(SETTLE_S)
        try:
            yield
        finally:
            for process in self._started.get(name, []):
                process.send_signal(signal.SIGSTOP)

    def end(self) -> None:
        """Kill the processes of all loads."""
        for process in (p for processes in self._started.values() for p in processes):
            process.kill()
            process.wait()


class Cells:
    """The cell loopback/cpp in two studies: one uses two cores fully, the other mostly waits."""

    def __init__(self, workbench: Bench) -> None:
        self._made, self._runs = workbench, 0
        self.agent = AgentClient(workbench.folder / "agent")
        self._studies = {}
        fixed = {"idle": {"rate_hz": 25}, "busy": {"loop": "closed", "clients": 2, "count": 2000}}
        for name in CELLS:
            self._prepare(name, fixed[name])
        trial_run = self.run(0, NONE, "busy")
        if trial_run.p50_us is None:
            raise RuntimeError("the busy cell measured nothing")
        count = max(CALLS_PER_S_MIN * WINDOW_S, WINDOW_S * 1e6 / trial_run.p50_us)
        self._prepare("busy", {**fixed["busy"], "count": int(count)})

    def _prepare(self, name: str, fixed: dict[str, object]) -> None:
        """Create the study `name` with these fixed levels, and build its cell."""
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
        """Execute a run with new nodes, and check it against the default limits."""
        study, prepared = self._studies[cell]
        self._runs += 1
        token = f"wwbench{self._runs}"
        folder = self._made.folder / token
        for name in ("out", "logs"):
            (folder / name).mkdir(parents=True)
        treatment = prepared.treatments[0]
        planned = PlannedRun(token, 1, 1, treatment, "", "")
        attempt = OpenAttempt(study, planned, 1, token, folder)
        placed, hosts = prepared.placed[treatment.key], {HOST: here(self.agent)}
        setup = RunSetup.of_nodes(attempt, placed, hosts, prepared.builds)
        record = OneRun(attempt, setup, Silent()).execute()
        collected = Collected(attempt, record, {}, {})
        codes = sorted(
            {reason.code for reason in collected.reasons if reason.code in CONDITION_CODES}
        )
        row = collected.row
        subprocess.run(["rm", "-rf", str(folder)], check=True)
        other_load_share, p50_us = row.get("other_load_share"), row.get("latency_p50_us")
        return Run(number, load, cell, tuple(codes), other_load_share, p50_us)


class Silent:
    """A listener for the phases of a run that prints nothing."""

    def event(self, kind: str, **fields: object) -> None:
        """Ignore the event."""


def measure(workbench: Bench, rounds: int, journal: Path) -> list[Run]:
    """Return runs of both cells without load and under each load, in `rounds` rounds.

    Runs that are already in the journal are not repeated.
    """
    runs = [Run(**{**entry, "codes": tuple(entry["codes"])}) for entry in _journal_entries(journal)]
    done = {(run.number, run.load, run.cell) for run in runs}
    loads = Loads()
    try:
        cells = Cells(workbench)
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


def _journal_entries(journal: Path) -> list[dict[str, object]]:
    """Return the complete entries of the journal."""
    if not journal.exists():
        return []
    lines = journal.read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


def _order(number: int, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return (load, cell) in a random order of loads, each with both cells in a random order."""
    rng = random.Random(number)
    loads = rng.sample([NONE, *names], len(names) + 1)
    return [(load, cell) for load in loads for cell in rng.sample(CELLS, 2)]


def difference_limits(
    hits: int, trials: int, other_hits: int, other_trials: int
) -> tuple[float, float]:
    """Return the 95 % limits of the difference hits / trials − other_hits / other_trials.

    Reference: Newcombe 1998, Stat. Med. 17:873, method 10.
    """
    (low, high), (other_low, other_high) = _wilson(hits, trials), _wilson(other_hits, other_trials)
    share, other_share = hits / trials, other_hits / other_trials
    below = math.hypot(share - low, other_high - other_share)
    above = math.hypot(high - share, other_share - other_low)
    return share - other_share - below, share - other_share + above


def _wilson(hits: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % limits of a share."""
    z = float(scipy_stats.norm.ppf(0.975))
    share = hits / trials
    middle = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return (middle - half) / (1 + z * z / trials), (middle + half) / (1 + z * z / trials)


def report(runs: Sequence[Run]) -> None:
    """Print the exclusions by load with verdicts, and each cell's p50 with and without load."""
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
    """Return the table cells of one load: the shares of excluded runs, with verdicts."""
    runs_by_cell = [[run for run in runs if (run.load, run.cell) == (name, cell)] for cell in CELLS]
    hits = [sum("other_load" in run.codes for run in cell_runs) for cell_runs in runs_by_cell]
    trials = [len(cell_runs) for cell_runs in runs_by_cell]
    if not all(trials):
        return "too few | | | undecided | | "
    low, high = difference_limits(hits[0], trials[0], hits[1], trials[1])
    within = low > -DIFFERENCE and high < DIFFERENCE
    beyond = low >= DIFFERENCE or high <= -DIFFERENCE
    verdict = "passed" if within else "failed" if beyond else "undecided"
    any_limit = [sum(bool(run.codes) for run in cell_runs) for cell_runs in runs_by_cell]
    texts = [f"{hit} of {total}" for hit, total in zip(hits, trials, strict=True)]
    texts.append(f"{100 * low:.1f} to {100 * high:.1f}")
    texts += [verdict, _by_class(name, sum(hits), sum(trials))]
    texts.append(
        " and ".join(
            f"{excluded} of {total}" for excluded, total in zip(any_limit, trials, strict=True)
        )
    )
    return " | ".join(texts)


def _by_class(name: str, hits: int, trials: int) -> str:
    """Return the share of excluded runs of both cells, with a verdict for two kinds of load.

    The validity limits must exclude a normal load of 100 % and must not exclude SCHED_IDLE.
    """
    interval = stats.share_interval(hits, trials)
    text = f"{100 * hits / trials:.1f} % ({100 * interval.low:.1f} to {100 * interval.high:.1f})"
    if name == "normal, 100%":
        passed, failed = interval.low >= NORMAL, interval.high < NORMAL
    elif name.startswith("SCHED_IDLE"):
        passed, failed = interval.high <= IDLE, interval.low > IDLE
    else:
        return text
    return f"{text}: {'passed' if passed else 'failed' if failed else 'undecided'}"


def _latency(runs: Sequence[Run], name: str, cell: str) -> str:
    """Return table cells: the geometric means of the runs' medians, and their ratio over rounds."""
    p50_by_run = {
        (run.load, run.number): run.p50_us for run in runs if run.cell == cell and run.p50_us
    }
    rounds = [
        number for load, number in p50_by_run if load == name and (NONE, number) in p50_by_run
    ]
    if len(rounds) < 3:
        return "too few | | | "
    with_load = np.log([p50_by_run[name, number] for number in rounds])
    without = np.log([p50_by_run[NONE, number] for number in rounds])
    ratios = with_load - without
    error = ratios.std(ddof=1) / math.sqrt(len(rounds)) * scipy_stats.t.ppf(0.975, len(rounds) - 1)
    low, high = np.exp(ratios.mean() - error), np.exp(ratios.mean() + error)
    load_shares = [r.other_load_share for r in runs if (r.load, r.cell) == (name, cell)]
    known_shares = [share for share in load_shares if share is not None]
    return (
        f"{np.exp(with_load.mean()):.1f} | {np.exp(without.mean()):.1f} | "
        f"{np.exp(ratios.mean()):.3f} ({low:.3f} to {high:.3f}) | {np.median(known_shares):.3f}"
    )
