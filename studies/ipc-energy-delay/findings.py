"""What the data show about themselves, and about what was printed from them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wattwire.imports import Check, Finding, Verdict

from . import order, sheet_findings
from .checks import IPC_TITLES, LANGUAGE_TITLES, LESS, RATIO, RESOURCES, TOTAL, net_energy
from .known import TIME_ROLE, Known
from .observed import IDLE_W, NODES, UNMETERED
from .printed import PLATFORM, Printed
from .runs import SAMPLES_MIN, right_energy

RUNS_TOLD = 50
"""Runs of each implementation, as the paper says (section 3.3)."""
LAUNCHER_S, WORK_S = 1.0, 5.0


def all_findings(known: Known, tables: Printed, compared: Sequence[Check]) -> tuple[Finding, ...]:
    """Every finding that the data here allow, those about the printed numbers first."""
    of_tables: tuple[Callable[[Known, Printed], Finding | None], ...] = (
        lambda known, tables: _energy_medians(known, tables, "4"),
        lambda known, tables: _energy_medians(known, tables, "5"),
        lambda known, tables: _resource_medians(known, tables, "7"),
        lambda known, tables: _resource_medians(known, tables, "8"),
        _done_right,
        _time_of_first_run,
        _failed,
    )
    of_checks = (_impossible_totals, _ratios)
    of_data: tuple[Callable[[Known], Finding | None], ...] = (
        _missing_runs, _few_samples, _idle, _launchers, sheet_findings.padded,
        sheet_findings.changed, sheet_findings.same_digits, order.fixed, order.autocorrelation,
    )  # fmt: skip
    found = [make(known, tables) for make in of_tables]
    found += [make(compared) for make in of_checks]
    found += [make(known) for make in of_data]
    return tuple(finding for finding in found if finding is not None)


def _named(ipc: str, language: str) -> dict[str, str]:
    return {"technology": IPC_TITLES[ipc], "language": LANGUAGE_TITLES[language]}


def _energy_medians(known: Known, tables: Printed, table: str) -> Finding | None:
    """The medians behind the energies of a table, with all that the recipe takes."""
    platform = PLATFORM[table]
    rows = []
    for row in tables.rows:
        found = net_energy(known, tables, row) if row[0] == table and row[1] in NODES else None
        if found is None:
            continue
        sums, net_j = found
        rows.append(
            {
                **_named(*row[2:]),
                "node": row[1],
                "runs": len(sums.values),
                "median (J)": round(sums.median, 2),
                "T printed (s)": tables.number((table, "both", *row[2:]), "time_s"),
                "net (J)": round(net_j, 2),
                "printed (J)": tables.text(row, "energy_j"),
                "from": sums.origin,
            }
        )
    if not rows:
        return None
    return Finding(
        f"The medians behind the energies of Table {table}",
        f"The authors' recipe: median of the sums of samples (idle power included) − "
        f"{IDLE_W[platform]:g} W × the time that the table prints. The verdicts stand with the "
        "printed numbers.",
        tuple(rows),
    )


def _resource_medians(known: Known, tables: Printed, table: str) -> Finding | None:
    """The medians behind memory, faults and switches of a table."""
    rows = []
    for row in (row for row in tables.rows if row[0] == table):
        told: dict[str, Any] = {**_named(*row[2:]), "node": row[1]}
        origin = ""
        for column, (stem, short) in RESOURCES.items():
            series = known.resources(PLATFORM[table], row[1], *row[2:], stem)
            told[f"{short}, median"] = None if series is None else series.median
            told[f"{short}, printed (thousands)"] = tables.text(row, column)
            origin = origin or ("" if series is None else series.origin)
        if origin:
            rows.append({**told, "from": origin})
    if not rows:
        return None
    return Finding(
        f"The medians behind Table {table}",
        "Largest resident memory (MRSS, in KiB), minor page faults (MPF) and voluntary context "
        "switches (VCS) of `/usr/bin/time -v`, median over runs. What the table calls KB are "
        "thousands of KiB.",
        tuple(rows),
    )


def _done_right(known: Known, tables: Printed) -> Finding | None:
    """Net energies where each run has its own window, beside the printed ones."""
    rows = []
    for row in tables.rows:
        table, node, ipc, language = row
        if table not in ("4", "5") or node == "both":
            continue
        runs = known.runs(PLATFORM[table], node, ipc, language)
        energies = known.right_energies(PLATFORM[table], node, ipc, language)
        seconds = known.windows(PLATFORM[table], ipc, language, node)
        if not runs:
            continue
        rows.append(
            {
                "platform": PLATFORM[table],
                **_named(ipc, language),
                "node": node,
                "energy, median (J)": round(statistics.median(energies), 1) if energies else None,
                "runs with it": f"{len(energies)} of {len(runs)}",
                "energy printed (J)": tables.text(row, "energy_j"),
                "client's time, median (s)": round(statistics.median(seconds), 2)
                if seconds
                else None,
                "time printed (s)": tables.text((table, "both", ipc, language), "time_s"),
            }
        )
    if not rows:
        return None
    lacking = sum(row["energy, median (J)"] is None for row in rows)
    return Finding(
        "Each run with its own window, beside the printed numbers",
        "Energy above idle power in the time that the client ran, run by run, median over the "
        "runs in which the meter's samples cover that time. "
        f"In {lacking} of {len(rows)} rows no run allows it.",
        tuple(rows),
    )


def _time_of_first_run(known: Known, tables: Printed) -> Finding | None:
    """How often the printed time is that of the first run, and how often the median."""
    rows, first_hits, median_hits, longer = [], 0, 0, 0
    for (table, node, ipc, language), row in tables.rows.items():
        if node != "both" or table not in ("4", "5"):
            continue
        platform = PLATFORM[table]
        role, seconds = TIME_ROLE[platform], float(row["time_s"])
        first = known.first_time(platform, ipc, language, role)
        series = known.times(platform, ipc, language, "client")
        if first is None or series is None:
            continue
        first_hits += int(first) == seconds
        longer += first > series.median
        median_hits += int(series.median) == seconds
        rows.append(
            {
                "platform": platform, **_named(ipc, language), "printed (s)": row["time_s"],
                "first pass (s)": round(first, 3),
                "whose": role, "client's median (s)": round(series.median, 2),
            }
        )  # fmt: skip
    if not rows:
        return None
    return Finding(
        "The printed time is that of the first run",
        f"Of {len(rows)} printed times {first_hits} are the whole seconds of the first pass (on "
        f"Intel the server's, on ARM the client's), {median_hits} those of the client's median. "
        f"The first pass took longer than the client's median in {longer} of them, and idle power "
        "× the printed time is what the printed energies subtract.",
        tuple(rows),
    )


def _impossible_totals(compared: Sequence[Check]) -> Finding | None:
    """Totals that are not the sum of their parts."""
    wrong = [c for c in compared if c.place["column"] == TOTAL and c.verdict is not Verdict.EXACT]
    if not wrong:
        return None
    rows = [
        {"table": c.group.removeprefix("Table "), "technology": c.place["technology"],
         "language": c.place["language"], "printed (J)": c.published,
         "client + server (J)": None if c.value is None else round(c.value, 1)}
        for c in wrong
    ]  # fmt: skip
    less = sum(LESS in c.explanation for c in wrong)
    return Finding(
        "Totals that are not the sum of their parts",
        f"{len(wrong)} printed totals differ from client + server as printed beside them; {less} "
        "of them are less than one of the two.",
        tuple(rows),
    )


def _ratios(compared: Sequence[Check]) -> Finding | None:
    """Ratios that don't follow from the numbers beside them."""
    wrong = [
        c for c in compared if c.place["column"].startswith(RATIO) and c.verdict is Verdict.DIFFERS
    ]
    if not wrong:
        return None
    rows = [
        {"table": c.group.removeprefix("Table "), "technology": c.place["technology"],
         "language": c.place["language"], "column": c.place["column"], "printed": c.published,
         "from the printed numbers": None if c.value is None else round(c.value, 2)}
        for c in wrong
    ]  # fmt: skip
    return Finding(
        "Ratios that don't follow from the numbers beside them",
        f"{len(wrong)} printed ratios are more than 1 % away from the printed number over the "
        "smallest one of the block.",
        tuple(rows),
    )


def _missing_runs(known: Known) -> Finding | None:
    """How many passes there are, and runs without energy or time."""
    rows = []
    for platform, metered in sorted({run.key[:2] for run in known.collected.runs.values()}):
        runs = [r for key, group in known.groups.items() if key[:2] == (platform, metered)
                for r in group]  # fmt: skip
        passes = len({run.key[2] for run in runs})
        unmetered = metered == UNMETERED
        rows.append(
            {
                "platform": platform,
                "meter at": "no meter (resources)" if unmetered else metered,
                "passes": passes,
                "told": RUNS_TOLD,
                "runs": len(runs),
                "without energy": None if unmetered else sum(r.raw_energy_j is None for r in runs),
                "without client's time": sum("elapsed_s.client" not in r.values for r in runs),
                "without server's time": sum("elapsed_s.server" not in r.values for r in runs),
            }
        )
    short = [row for row in rows if row["passes"] < RUNS_TOLD]
    return Finding(
        "Runs that are not there",
        f"The paper tells of {RUNS_TOLD} runs of each implementation. In {len(short)} of "
        f"{len(rows)} sets there are fewer passes here. Runs that lack a value are left out of "
        "that value's medians, and nothing is put in their place.",
        tuple(rows),
    )


def _few_samples(known: Known) -> Finding | None:
    """Implementations that mostly end before the meter has read anything worth adding up."""
    rows = []
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
                    "platform": platform, "meter at": metered, **_named(ipc, language),
                    "runs with samples": len(told),
                    "samples, median": statistics.median(told),
                    "client's time, median (s)": round(statistics.median(times), 2)
                    if times else None,
                    f"fewer than {SAMPLES_MIN} samples": few, "other length than the run": apart,
                }
            )  # fmt: skip
    if not rows:
        return None
    return Finding(
        "Energies that the meter could not tell",
        "The meter was read once a second and its lines carry no time. In these implementations "
        f"most runs have fewer than {SAMPLES_MIN} samples, or samples for a time other than the "
        "client's: their energy stays missing.",
        tuple(rows),
    )


def _failed(known: Known, tables: Printed) -> Finding | None:
    """Runs whose client says that it failed, and whether the printed time is theirs."""
    failed = [run for run in known.collected.sorted() if run.failed]
    if not failed:
        return None
    times, rows, theirs = tables.times(), [], 0
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
                "platform": run.platform,
                "meter at": run.metered,
                "pass": f"{run.key[2]:%d %b %H:%M}",
                **_named(run.ipc, run.language),
                "client's time (s)": seconds,
                "the client says": run.failed.partition(": ")[2],
                "printed time (s)": None if told_s is None else f"{told_s:g}",
            }
        )
    return Finding(
        "Runs whose client failed",
        f"In {len(failed)} runs the client's output tells of an error; their times and energies "
        "are not those of the work, and they are set aside."
        + (f" In {theirs} the printed time is that of the failed run." if theirs else ""),
        tuple(rows),
    )


def _idle(known: Known) -> Finding | None:
    """The smallest samples of all, beside the idle power that is subtracted."""
    rows = []
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
                        "platform": platform, "meter at": metered, "idle, as told (W)": idle_w,
                        "runs": len(smallest), "smallest sample of all (W)": min(smallest),
                        "median of the runs' smallest (W)":
                            round(float(statistics.median(smallest)), 2),
                    }
                )  # fmt: skip
    if not rows:
        return None
    below = sum(row["smallest sample of all (W)"] <= row["idle, as told (W)"] for row in rows)
    return Finding(
        "The idle power that is subtracted",
        f"In {below} of {len(rows)} sets the smallest sample of all comes down to the idle power "
        "that the paper gives. Where it does not, idle power is a part of what is printed as net "
        "energy, and the more so the longer a run is.",
        tuple(rows),
    )


def _launchers(known: Known) -> Finding | None:
    """Servers whose measured program ended at once: it only started another."""
    rows = []
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
                    "platform": platform,
                    **_named(ipc, language),
                    "runs": len(pairs),
                    "server's program, median (s)": _median(p[0] for p in pairs),
                    "client's program, median (s)": _median(p[1] for p in pairs),
                    "server's memory, median (KiB)": _median(memory) if memory else None,
                }
            )
    if not rows:
        return None
    return Finding(
        "Resources of a launcher instead of the server",
        "The program that was measured as the server ended while the client still worked: it "
        "started the real server and left. Its memory, page faults and switches are printed as "
        "the server's.",
        tuple(rows),
    )


def _median(values: Iterable[float]) -> float:
    return round(float(statistics.median(values)), 3)
