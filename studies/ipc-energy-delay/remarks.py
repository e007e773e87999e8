"""State remarks on the printed numbers, and then on the data themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wattwire.imports import Check, Match, Remark

from . import data_remarks, order, sheet_remarks
from .checks import LESS, RATIO, RESOURCES, TOTAL, UNIT_OFF, net_energy
from .known import TIME_ROLE, Known
from .naming import PLATFORM_TITLES, digits, median, named
from .observed import IDLE_W, NODES
from .printed import PLATFORM, Printed


def all_remarks(known: Known, tables: Printed, compared: Sequence[Check]) -> tuple[Remark, ...]:
    """Every remark that the data here allow, those about the printed numbers first."""
    of_tables: tuple[Callable[[Known, Printed], Remark | None], ...] = (
        lambda known, tables: _energy_medians(known, tables, "4", compared),
        lambda known, tables: _energy_medians(known, tables, "5", compared),
        lambda known, tables: _resource_medians(known, tables, "7"),
        lambda known, tables: _resource_medians(known, tables, "8"),
        _done_right,
        _time_of_first_run,
        data_remarks.failed,
    )
    of_checks = (_impossible_totals, _ratios)
    of_data: tuple[Callable[[Known], Remark | None], ...] = (
        data_remarks.missing_runs,
        data_remarks.few_samples,
        data_remarks.idle,
        data_remarks.launchers,
        sheet_remarks.padded,
        sheet_remarks.changed,
        sheet_remarks.same_digits,
        order.fixed,
        order.autocorrelation,
    )
    found = [make(known, tables) for make in of_tables]
    found += [make(compared) for make in of_checks]
    found += [make(known) for make in of_data]
    return tuple(remark for remark in found if remark is not None)


def _energy_medians(
    known: Known, tables: Printed, table: str, compared: Sequence[Check]
) -> Remark | None:
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
                **named(*row[2:]),
                "node": row[1],
                "runs": len(sums.values),
                "median (J)": digits(sums.median, 2),
                "T printed (s)": tables.text((table, "both", *row[2:]), "time_s"),
                "net (J)": digits(net_j, 2),
                "printed (J)": tables.text(row, "energy_j"),
                "from": sums.origin,
            }
        )
    if not rows:
        return None
    agree = [
        check
        for check in compared
        if check.group == f"Table {table}"
        and check.place["column"].startswith("energy")
        and check.match is Match.EXACT
    ]
    off = sum(UNIT_OFF in check.explanation for check in agree)
    return Remark(
        f"The medians behind the energies of Table {table}",
        f"The authors' recipe: median of the sums of samples (idle power included) − "
        f"{IDLE_W[platform]:g} W × the time that the table prints. {len(agree)} of the printed "
        f"energies agree, {off} of them to one unit of the last digit only.",
        tuple(rows),
    )


def _resource_medians(known: Known, tables: Printed, table: str) -> Remark | None:
    """The medians behind memory, faults and switches of a table."""
    rows = []
    for row in (row for row in tables.rows if row[0] == table):
        told: dict[str, Any] = {**named(*row[2:]), "node": row[1]}
        origin = ""
        for column, (stem, short) in RESOURCES.items():
            series = known.resources(PLATFORM[table], row[1], *row[2:], stem)
            told[f"{short}, median"] = None if series is None else digits(series.median, 1)
            told[f"{short}, printed (thousands)"] = tables.text(row, column)
            origin = origin or ("" if series is None else series.origin)
        if origin:
            rows.append({**told, "from": origin})
    if not rows:
        return None
    return Remark(
        f"The medians behind Table {table}",
        "Largest resident memory (MRSS, in KiB), minor page faults (MPF) and voluntary context "
        "switches (VCS) of /usr/bin/time -v, median over runs. What the table calls KB are "
        "thousands of KiB.",
        tuple(rows),
    )


def _done_right(known: Known, tables: Printed) -> Remark | None:
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
                "platform": PLATFORM_TITLES[PLATFORM[table]],
                **named(ipc, language),
                "node": node,
                "energy, median (J)": median(energies, 1),
                "runs with it": f"{len(energies)} of {len(runs)}",
                "energy printed (J)": tables.text(row, "energy_j"),
                "client's time, median (s)": median(seconds, 2),
                "time printed (s)": tables.text((table, "both", ipc, language), "time_s"),
            }
        )
    if not rows:
        return None
    lacking = sum(row["energy, median (J)"] is None for row in rows)
    return Remark(
        "Each run with its own window, beside the printed numbers",
        "Energy above idle power in the time that the client ran, run by run, median over the "
        "runs in which the meter's samples cover that time. "
        f"In {lacking} of {len(rows)} rows no run allows it.",
        tuple(rows),
    )


def _time_of_first_run(known: Known, tables: Printed) -> Remark | None:
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
                "platform": PLATFORM_TITLES[platform], **named(ipc, language),
                "printed (s)": row["time_s"],
                "first pass (s)": digits(first, 3),
                "whose": role, "client's median (s)": digits(series.median, 2),
            }
        )  # fmt: skip
    if not rows:
        return None
    return Remark(
        "The printed time is that of the first run",
        f"Of {len(rows)} printed times {first_hits} are the whole seconds of the first pass (on "
        f"Intel the server's, on ARM the client's), {median_hits} those of the client's median. "
        f"The first pass took longer than the client's median in {longer} of them, and idle power "
        "× the printed time is what the printed energies subtract.",
        tuple(rows),
    )


def _impossible_totals(compared: Sequence[Check]) -> Remark | None:
    """Totals that are not the sum of their parts."""
    wrong = [c for c in compared if c.place["column"] == TOTAL and c.match is not Match.EXACT]
    if not wrong:
        return None
    rows = [
        {"table": c.group.removeprefix("Table "), "technology": c.place["technology"],
         "language": c.place["language"], "printed (J)": c.published,
         "client + server (J)": None if c.value is None else digits(c.value, 1)}
        for c in wrong
    ]  # fmt: skip
    less = sum(LESS in c.explanation for c in wrong)
    return Remark(
        "Totals that are not the sum of their parts",
        f"{len(wrong)} printed totals differ from client + server as printed beside them; {less} "
        "of them are less than one of the two.",
        tuple(rows),
    )


def _ratios(compared: Sequence[Check]) -> Remark | None:
    """Ratios that don't follow from the numbers beside them."""
    wrong = [
        c for c in compared if c.place["column"].startswith(RATIO) and c.match is Match.DIFFERS
    ]
    if not wrong:
        return None
    rows = [
        {"table": c.group.removeprefix("Table "), "technology": c.place["technology"],
         "language": c.place["language"], "column": c.place["column"], "printed": c.published,
         "from the printed numbers": None if c.value is None else digits(c.value, 2)}
        for c in wrong
    ]  # fmt: skip
    return Remark(
        "Ratios that don't follow from the numbers beside them",
        f"{len(wrong)} printed ratios are more than 1 % away from the printed number over the "
        "smallest one of the block.",
        tuple(rows),
    )
