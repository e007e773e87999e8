"""State remarks on the runs themselves: missing runs, few samples, failures and idle power."""

from __future__ import annotations

from typing import Any

from wattwire.imports import Remark

from .known import TIME_ROLE, Known
from .naming import PLATFORM_TITLES, median, named, placed
from .observed import IDLE_W, NODES, UNMETERED
from .printed import Printed
from .runs import SAMPLES_MIN, right_energy

RUNS_TOLD = 50
"""Runs of each implementation, as the paper says (section 3.3)."""
LAUNCHER_S, WORK_S = 1.0, 5.0


def missing_runs(known: Known) -> Remark | None:
    """How many passes there are, and runs without energy or time."""
    rows: list[dict[str, Any]] = []
    for platform, metered in sorted({run.key[:2] for run in known.collected.runs.values()}):
        runs = [r for key, group in known.groups.items() if key[:2] == (platform, metered)
                for r in group]  # fmt: skip
        passes = len({run.key[2] for run in runs})
        unmetered = metered == UNMETERED
        rows.append(
            {
                "platform": PLATFORM_TITLES[platform],
                "meter at": "no meter (resources)" if unmetered else metered,
                "told": RUNS_TOLD,
                "passes here": passes,
                "in the sheets of sums": _listed(known, platform, metered),
                "runs": len(runs),
                "without energy": None if unmetered else sum(r.raw_energy_j is None for r in runs),
                "without client's time": sum("elapsed_s.client" not in r.values for r in runs),
                "without server's time": sum("elapsed_s.server" not in r.values for r in runs),
            }
        )
    short = [
        row
        for row in rows
        if max(row["passes here"], row["in the sheets of sums"] or 0) < RUNS_TOLD
    ]
    return Remark(
        "Runs that are not there",
        f"The paper tells of {RUNS_TOLD} runs of each implementation. In {len(short)} of "
        f"{len(rows)} sets there are fewer, as folders and as rows of sheets. Runs that lack a "
        "value are left out of that value's medians, and nothing is put in their place.",
        tuple(rows),
    )


def _listed(known: Known, platform: str, node: str) -> int | None:
    """Runs that the authors' sheets of sums list; None without such a sheet."""
    found = [
        sheet.rows for key, sheet in known.sheets.items() if key[:3] == (platform, "sums", node)
    ]
    return max(found, default=None)


def few_samples(known: Known) -> Remark | None:
    """Implementations that mostly end before the meter has read anything worth adding up."""
    rows: list[dict[str, Any]] = []
    for (platform, metered, ipc, language), runs in known.groups.items():
        counts = [run.number(f"energy_samples.{metered}") for run in runs]
        told = [count for count in counts if count]
        few = sum(count < SAMPLES_MIN for count in told)
        apart = sum(
            isinstance(found := right_energy(run), str) and found != "" for run in runs
        ) - few  # fmt: skip
        if 2 * (few + apart) > len(told) > 0:
            times = [t for r in runs if (t := r.number("elapsed_s.client")) is not None]
            rows.append(
                {
                    **placed(platform, metered), **named(ipc, language),
                    "runs with samples": len(told),
                    "samples, median": median(told, 1),
                    "client's time, median (s)": median(times, 2),
                    f"fewer than {SAMPLES_MIN} samples": few, "other length than the run": apart,
                }
            )  # fmt: skip
    if not rows:
        return None
    return Remark(
        "Energies that the meter could not tell",
        "The meter was read once a second and its lines carry no time. In these implementations "
        f"most runs have fewer than {SAMPLES_MIN} samples, or samples for a time other than the "
        "client's: their energy stays missing.",
        tuple(rows),
    )


def failed(known: Known, tables: Printed) -> Remark | None:
    """Runs whose client says that it failed, and whether the printed time is theirs."""
    failed = [run for run in known.collected.sorted() if run.failed]
    if not failed:
        return None
    times, theirs = tables.times(), 0
    rows: list[dict[str, Any]] = []
    for run in failed:
        seconds = run.number("elapsed_s.client")
        told_s = times.get((run.platform, run.ipc, run.language))
        same = (
            TIME_ROLE[run.platform] == "client"
            and known.first_run(run.platform, run.ipc, run.language) is run
            and seconds is not None
            and int(seconds) == told_s
        )
        theirs += same
        rows.append(
            {
                "platform": PLATFORM_TITLES[run.platform],
                "meter at": run.metered,
                "pass": f"{run.key[2]:%d %b %H:%M}",
                **named(run.ipc, run.language),
                "client's time (s)": seconds,
                "the client says": run.failed.partition(": ")[2],
                "printed time (s)": None if told_s is None else f"{told_s:g}",
            }
        )
    return Remark(
        "Runs whose client failed",
        f"In {len(failed)} runs the client's output tells of an error; their times and energies "
        "are not those of the work, and they are set aside."
        + (f" In {theirs} the printed time is that of the failed run." if theirs else ""),
        tuple(rows),
    )


def idle(known: Known) -> Remark | None:
    """The smallest samples of all, beside the idle power that is subtracted."""
    rows: list[dict[str, Any]] = []
    for platform, idle_w in IDLE_W.items():
        for metered in NODES:
            smallest = [
                value
                for key, runs in known.groups.items()
                if key[:2] == (platform, metered)
                for run in runs
                if (value := run.number(f"energy_sample_min_w.{metered}")) is not None
            ]
            if smallest:
                rows.append(
                    {
                        **placed(platform, metered), "idle, as told (W)": idle_w,
                        "runs": len(smallest), "smallest sample of all (W)": min(smallest),
                        "median of the runs' smallest (W)": median(smallest, 2),
                    }
                )  # fmt: skip
    if not rows:
        return None
    below = sum(row["smallest sample of all (W)"] <= row["idle, as told (W)"] for row in rows)
    return Remark(
        "The idle power that is subtracted",
        f"In {below or 'none'} of the {len(rows)} sets the smallest sample of all comes down to "
        "the idle power that the paper gives. Where it does not, idle power is a part of what is "
        "printed as net energy, and the more so the longer a run is.",
        tuple(rows),
    )


def launchers(known: Known) -> Remark | None:
    """Servers whose measured program ended at once: it only started another."""
    rows: list[dict[str, Any]] = []
    for (platform, metered, ipc, language), runs in known.groups.items():
        if metered != UNMETERED:
            continue
        pairs = [
            (server, client)
            for run in runs
            if (server := run.number("elapsed_s.server")) is not None
            and (client := run.number("elapsed_s.client")) is not None
        ]
        quick = [pair for pair in pairs if pair[0] < LAUNCHER_S and pair[1] > WORK_S]
        if pairs and len(quick) == len(pairs):
            memory = [v for r in runs if (v := r.number("memory_max_kib.server")) is not None]
            rows.append(
                {
                    "platform": PLATFORM_TITLES[platform],
                    **named(ipc, language),
                    "runs": len(pairs),
                    "server's program, median (s)": median([p[0] for p in pairs], 2),
                    "client's program, median (s)": median([p[1] for p in pairs], 2),
                    "server's memory, median (KiB)": median(memory, 1),
                }
            )
    if not rows:
        return None
    return Remark(
        "Resources of a launcher instead of the server",
        "The program that was measured as the server ended while the client still worked: it "
        "started the real server and left. Its memory, page faults and switches are printed as "
        "the server's.",
        tuple(rows),
    )
