"""Count how often intervals of joules per message hold the energy that the test machine planted.

Each campaign has a machine of its own (tests/machine), with real sysfs and invented energy. The
truth is the law of the kernel module, from its own log of busy time. A file of JSON lines keeps the
results, so a measurement can be continued.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.machine.boot import boot
from tests.machine.parts import MissingPartsError
from tests.machine.planted import planted
from wattwire import stats

CAMPAIGNS, HELD_MIN = 20, 18
"""An honest 95 % interval holds fewer than 18 of 20 with a probability of 7.5 %."""
ERROR_MAX = 0.02
"""A wide interval holds nearly everything, so each estimate must also be near the planted value."""
LIMIT_S = 1500.0
STEP = "campaign"


def report(campaigns: int, journal: Path) -> None:
    """Boot machines until the journal has as many campaigns, and print the counts as Markdown."""
    print("\n## Planted joules per message in the test machine (real sysfs, invented energy)\n")
    known = [json.loads(line) for line in journal.open()] if journal.exists() else []
    done = {row["campaign"] for row in known}
    for number in range(1, campaigns + 1):
        if number in done:
            continue
        try:
            rows = list(_campaign(number))
        except MissingPartsError as error:
            print(f"not measured: {error}")
            return
        except (TimeoutError, RuntimeError) as error:
            print(f"campaign {number} was lost: {error}", flush=True)
            rows = [{"campaign": number, "lost": str(error)[:200]}]
        with journal.open("a") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in rows)
        known += rows
    print("\n".join(table(known)), flush=True)


def _campaign(number: int) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="wattwire-machine-") as folder:
        ended = boot(Path(folder) / "machine", [STEP], LIMIT_S)
        if ended.status != 0:
            raise RuntimeError(ended.log or ended.console)
        for treatment, interval, planted_j in planted(ended.out / STEP).joules_per_message():
            row = {"campaign": number, "treatment": list(treatment), "planted_j": planted_j}
            if isinstance(interval, stats.Interval):
                row |= {name: getattr(interval, name) for name in ("low", "estimate", "high")}
            yield row


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table with the number of intervals of each treatment that hold the planted joules.

    A campaign that was lost, or without an interval (below the resolution, too few runs), counts as
    one that does not.
    """
    yield (
        "| treatment | half-width, median | largest error of an estimate | intervals that hold | "
        "target | verdict |"
    )
    yield "|---|---|---|---|---|---|"
    lost = [row for row in rows if "lost" in row]
    measured = [row for row in rows if "lost" not in row]
    for treatment in dict.fromkeys(tuple(row["treatment"]) for row in measured):
        of_treatment = [row for row in measured if tuple(row["treatment"]) == treatment]
        known = [row for row in of_treatment if "low" in row]
        held = sum(row["low"] <= row["planted_j"] <= row["high"] for row in known)
        widths = [(row["high"] - row["low"]) / 2 / row["estimate"] for row in known]
        width = f"{100 * np.median(widths):.1f} %" if widths else "–"
        errors = [abs(row["estimate"] / row["planted_j"] - 1) for row in known]
        error = f"{100 * max(errors):.2f} %" if errors else "–"
        count = len(of_treatment) + len(lost)
        passes = held >= HELD_MIN and max(errors, default=np.inf) <= ERROR_MAX
        verdict = "undecided" if count < CAMPAIGNS else "passed" if passes else "failed"
        yield (
            f"| {', '.join(treatment)} | {width} | {error} | {held} of {count} | "
            f"≥ {HELD_MIN} of {CAMPAIGNS}, ≤ {100 * ERROR_MAX:g} % | {verdict} |"
        )
