"""State differences between the authors' sheets and the passes, and between the sheets."""

from __future__ import annotations

from collections import Counter

from wattwire.imports import Remark

from .known import Known
from .naming import IPC_TITLES, named, placed
from .observed import IPCS, LANGUAGES, NODES, PLATFORMS
from .sheets import METRICS, Sheet

DIGITS = 2
CELLS_MIN = 100
SHARE_TOLD = 0.2
"""Independent numbers share their last two digits in 1 % of the cases."""


def padded(known: Known) -> Remark | None:
    """Sheets that the tables were made from, with more rows than there were runs."""
    rows = []
    for platform in PLATFORMS:
        for node in NODES:
            for ipc in IPCS:
                sums = known.sheets.get((platform, "sums", node, ipc))
                sheet = known.sheets.get((platform, "padded", node, ipc))
                if sums is None or sheet is None or sheet.rows <= sums.rows:
                    continue
                lacking = sum(_beyond(sheet, sums, language) for language in LANGUAGES)
                rows.append(
                    {
                        **placed(platform, node), "technology": IPC_TITLES[ipc],
                        "rows of the sheet": sheet.rows, "runs": sums.rows,
                        "rows without a run": sheet.rows - sums.rows,
                        "energies that no run has": lacking,
                    }
                )  # fmt: skip
    if not rows:
        return None
    return Remark(
        "Sheets with more rows than runs",
        "The sheets of energies that the tables rest on were filled up. Nothing in the package "
        "says where the further rows come from; no value here is taken from them.",
        tuple(rows),
    )


def _beyond(sheet: Sheet, sums: Sheet, language: str) -> int:
    """How many numbers of the sheet no run has, each run counted once."""
    left = Counter(sheet.known(language))
    left.subtract(Counter(sums.known(language)))
    return sum(count for count in left.values() if count > 0)


def changed(known: Known) -> Remark | None:
    """Runs whose sum of samples stands nowhere in the sheet of sums."""
    rows, compared = [], 0
    for (platform, metered, ipc, language), runs in known.groups.items():
        sheet = known.sheets.get((platform, "sums", metered, ipc))
        if sheet is None:
            continue
        listed = Counter(round(value, 1) for value in sheet.known(language))
        for run in runs:
            raw = run.raw_energy_j
            if raw is None:
                continue
            compared += 1
            if listed[round(raw, 1)] > 0:
                listed[round(raw, 1)] -= 1
                continue
            rows.append(
                {
                    **placed(platform, metered), **named(ipc, language),
                    "pass": f"{run.key[2]:%d %b %H:%M}",
                    "sum of samples (J)": round(raw, 1),
                }
            )  # fmt: skip
    if compared == 0:
        return None
    return Remark(
        "Sums that the sheets give otherwise"
        if rows
        else "The sheets' sums are those of the files",
        f"{compared} sums of samples were looked for in the authors' sheets of sums; not found "
        f"there: {len(rows)}. The sheets give other numbers in their place, or none.",
        tuple(rows),
    )


def same_digits(known: Known) -> Remark | None:
    """Whether the resources of two platforms end alike, row by row and column by column."""
    rows, shared, total = [], 0, 0
    for ipc in IPCS:
        for role in NODES:
            pair = [known.sheets.get((p, "resources", role, ipc)) for p in PLATFORMS]
            if pair[0] is None or pair[1] is None:
                continue
            alike, cells = _alike(pair[0], pair[1])
            if cells:
                shared, total = shared + alike, total + cells
                rows.append(
                    {
                        "technology": IPC_TITLES[ipc], "node": role, "cells": cells,
                        f"same last {DIGITS} digits": alike,
                        "expected by chance": round(cells / 10**DIGITS),
                    }
                )  # fmt: skip
    if total < CELLS_MIN or shared < SHARE_TOLD * total:
        return None
    return Remark(
        "The ARM sheets of resources end like the Intel ones",
        f"Row by row and column by column, {shared} of {total} numbers of the ARM sheets have the "
        f"same last {DIGITS} digits as those of the Intel sheets (by chance about "
        f"{round(total / 10**DIGITS)}). Measurements on two machines don't do that; what happened "
        "the package does not say. There are no files of single runs behind the ARM sheets, so "
        "Table 8 can be recomputed from them, and nothing else is concluded from them here.",
        tuple(rows),
    )


def _alike(one: Sheet, other: Sheet) -> tuple[int, int]:
    """Cells with the same last digits, and cells that both sheets have, below row and column."""
    alike = cells = 0
    for metric in METRICS.values():
        for language in LANGUAGES:
            name = f"{metric}.{language}"
            for a, b in zip(one.columns.get(name, ()), other.columns.get(name, ()), strict=False):
                if a is not None and b is not None and min(a, b) >= 10**DIGITS:
                    cells += 1
                    alike += int(a) % 10**DIGITS == int(b) % 10**DIGITS
    return alike, cells
