"""State remarks on the recordings and on the numbers that were printed from them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from wattwire.imports import Check, Match, Remark
from wattwire.imports.agreement import agrees, number

from . import conduct, material, values
from .material import RUN, RUN_S, TREATMENT
from .printed import INTERVALS, LANGUAGE_TITLES, Means

SIBLING = re.compile(r"\bthe (publisher|subscriber|(action )?(server|client)) gives")


def all_remarks(
    means: Means, tables: Sequence[Check], tests: Sequence[Check], printed: Sequence[dict[str, str]]
) -> tuple[Remark, ...]:
    """Every remark that the data at hand bear out, each with the rows it rests on."""
    made = [
        _mixed(means, printed),
        _power_times_180(means, tables, printed),
        _zeros(means, printed),
        _other_group(tests),
        _sibling(tests),
        _impossible(tests),
        _outliers(tests),
        conduct.order(means),
        conduct.neighbours(means),
        conduct.run_on(means),
        conduct.without_file(means),
        conduct.days(means),
        conduct.redone(means, tables),
        conduct.interval(means),
    ]
    return tuple(remark for remark in made if remark is not None)


def _mixed(means: Means, printed: Sequence[Mapping[str, str]]) -> Remark | None:
    """Treatments whose printed mean is over full recordings and much shorter ones."""
    picked = means.material.recordings.filter(pl.col("picked").fill_null(False))
    if not picked.height:
        return None
    joined = picked.join(means.material.planned, on=RUN).with_columns(
        short=pl.col("duration_s") < material.FULL_SHARE * RUN_S
    )
    groups = joined.group_by("pattern", "language", "interval_s", "clients", maintain_order=True)
    mixed = groups.agg(
        runs=pl.len(), short=pl.col("short").sum(),
        shortest_s=pl.col("duration_s").min(), mean_sum_j=pl.col("sum_w").mean(),
    ).filter((pl.col("short") > 0) & (pl.col("short") < pl.col("runs")))  # fmt: skip
    if not mixed.height:
        return None
    rows = []
    for row in mixed.sort(TREATMENT).iter_rows(named=True):
        key = ("publisher", row["language"], row["interval_s"], row["clients"])
        right = means.row(values.RIGHT, key)
        text = _printed(printed, key, "energy_j")
        if right is None or not right["energy_j"] or not text:
            continue
        rows.append(
            {
                **_treatment(key),
                "runs": row["runs"],
                "short recordings": row["short"],
                "shortest (s)": row["shortest_s"],
                "printed energy (J)": text,
                "mean of the files' sums (J)": row["mean_sum_j"],
                "full recordings (J)": right["energy_j"],
                "printed is off by": _percent(number(text) / right["energy_j"] - 1),
            }
        )
    short = sum(row["short recordings"] for row in rows)
    return Remark(
        "Means mixed from recordings of different length",
        f"Of {sum(row['runs'] for row in rows)} publisher runs in {len(rows)} treatments, {short} "
        "entered the printed means with a second, shorter recording that lies in the same folder; "
        "the script takes whichever file the disk lists first.",
        tuple(rows),
    )


def _percent(share: float) -> str:
    """A share with its sign, as −15 %."""
    return f"{100 * share:.0f} %".replace("-", "−")


def _power_times_180(
    means: Means, tables: Sequence[Check], printed: Sequence[Mapping[str, str]]
) -> Remark | None:
    """Printed energies that no choice of files gives, but the printed power times 180 s does."""
    differing = {
        tuple(check.place[name] for name in ("table", "language", "clients", "interval (s)"))
        for check in tables
        if check.match is Match.DIFFERS and check.place["column"] == "energy (J)"
    }
    rows = []
    for row in printed:
        at = (row["table"], LANGUAGE_TITLES[row["language"]], row["clients"], row["interval_s"])
        key = _key(row)
        watts = number(row["energy_j"]) / RUN_S
        doubled = means.recordings(key).filter(pl.col("rank") > 1).height
        found = means.row(values.EARLIEST, key)
        if at in differing and doubled and found and agrees(row["power_w"], watts, 2):
            rows.append(
                {
                    "table": row["table"], **_treatment(key),
                    "printed energy (J)": row["energy_j"], "printed power (W)": row["power_w"],
                    "energy / 180 s (W)": watts, "earliest recordings (J)": found["energy_j"],
                }
            )  # fmt: skip
    if not rows:
        return None
    return Remark(
        "Energy that is power times 180 s",
        f"In {len(rows)} rows the printed energy does not come out as a sum of power; divided by "
        "180 s it gives the printed power. All of them are treatments with more than one recording "
        "in a run's folder.",
        tuple(rows),
    )


def _zeros(means: Means, printed: Sequence[Mapping[str, str]]) -> Remark | None:
    rows = []
    for row in printed:
        found = means.row(values.AUTHORS, _key(row))
        if found is None or not found["memory_runs"] or not found["memory_kib"]:
            continue
        as_zero = agrees(row["memory_kib"], found["memory_zero_kib"], 0)
        if as_zero and not agrees(row["memory_kib"], found["memory_kib"], 0):
            rows.append(
                {
                    "table": row["table"], **_treatment(_key(row)),
                    "runs with memory": f"{found['memory_runs']} of {found['planned']}",
                    "printed (KB)": row["memory_kib"],
                    "mean of those (KiB)": round(found["memory_kib"]),
                }
            )  # fmt: skip
    if not rows:
        return None
    return Remark(
        "Missing runs counted as zero",
        f"In {len(rows)} rows of the tables the printed memory is exact only if a run without a "
        "readable memory file counts as 0 KB.",
        tuple(rows),
    )


def _other_group(tests: Sequence[Check]) -> Remark | None:
    hits = [c for c in tests if c.match is Match.BY_SEARCH and "another group" in c.explanation]
    if not hits:
        return None
    return Remark(
        "A test quoted for another group",
        "The statistic and p-value printed for one grouping come out, to all digits, for a group "
        f"that the text doesn't name. {hits[0].searched} groups were tried.",
        tuple({**_test_row(c, "found in", c.recipe), "as stated": c.default_value} for c in hits),
    )


def _sibling(tests: Sequence[Check]) -> Remark | None:
    hits = [c for c in tests if c.match is Match.DIFFERS and SIBLING.search(c.explanation)]
    if not hits:
        return None
    return Remark(
        "Statistics that are close to the other node's",
        "These don't come out for the node they are printed for; the same test on the node at the "
        "other end gives the printed number or one next to it.",
        tuple(_test_row(check, "other node", check.explanation) for check in hits),
    )


def _impossible(tests: Sequence[Check]) -> Remark | None:
    hits = [
        c for c in tests
        if c.place["test"].endswith(": p") and not 0 <= number(c.published) <= 1
    ]  # fmt: skip
    if not hits:
        return None
    return Remark(
        "A p-value that cannot be",
        "A p-value lies between 0 and 1.",
        tuple(_test_row(check, "remark", check.explanation) for check in hits),
    )


def _outliers(tests: Sequence[Check]) -> Remark | None:
    hits = [
        c for c in tests
        if c.match is not Match.EXACT
        and ("not claimed" in c.explanation or " alone give" in c.explanation)
    ]  # fmt: skip
    if not hits:
        return None
    return Remark(
        "Near by a choice that the text doesn't state",
        "These differ as stated. Taking outliers out, or one interval alone, gives the printed "
        "digits or a number near them; that is told here and not claimed as a match.",
        tuple(_test_row(check, "what comes near", check.explanation) for check in hits),
    )


def _test_row(check: Check, name: str, words: str) -> dict[str, Any]:
    place = {key: text for key, text in check.place.items() if key != "section"}
    return {**place, "printed": check.published, "as stated": check.value, name: words}


# -- keys -----------------------------------------------------------------------------------------


def _key(row: Mapping[str, str]) -> tuple[str, str, float, int]:
    interval = float(row["interval_s"])
    return (
        row["node_role"], row["language"], INTERVALS.get(interval, interval), int(row["clients"])
    )  # fmt: skip


def _treatment(key: tuple[str, str, float, int]) -> dict[str, Any]:
    role, language, interval, clients = key
    told = {"node": role.replace("_", " "), "language": LANGUAGE_TITLES[language]}
    return {**told, "interval (s)": f"{interval:g}", "clients": clients}


def _printed(
    printed: Sequence[Mapping[str, str]], key: tuple[str, str, float, int], column: str
) -> str:
    return next((row[column] for row in printed if _key(row) == key), "")
