"""Simulate false-positive rates of the paper's decision path, and write them to a table.

Usage: python -m tools.paper_rates [TRIALS]

Groups without a difference are drawn from several models and passed to `decide`. A rate is the
share of trials in which the test over all groups rejects at 5 %, with all values and without
outliers. The table is in wattwire/papers/rates_table.py, so that a page can print it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wattwire.papers.path import LEVEL, decide
from wattwire.papers.significance import Significance

SEED = 20_250_402
TRIALS = 5_000
TABLE = Path(__file__).resolve().parents[1] / "wattwire" / "papers" / "rates_table.py"
GROUPS, RUNS = (2, 3, 5), (3, 5, 10, 20)

Drawn = NDArray[np.float64]
Model = Callable[[np.random.Generator, int, int], Drawn]


def _blocked(rng: np.random.Generator, groups: int, runs: int) -> Drawn:
    """Return values, shape (groups, runs); half of their variance is between blocks."""
    return rng.normal(size=(1, runs)) + rng.normal(size=(groups, runs))


def _contaminated(rng: np.random.Generator, groups: int, runs: int) -> Drawn:
    """Return values, shape (groups, runs); a tenth have ten times the standard deviation."""
    is_contaminated = rng.random((groups, runs)) < 0.1
    return np.asarray(rng.normal(size=(groups, runs)) * np.where(is_contaminated, 10.0, 1.0))


MODELS: dict[str, Model] = {
    "normal": lambda rng, groups, runs: rng.normal(size=(groups, runs)),
    "lognormal": lambda rng, groups, runs: np.exp(rng.normal(size=(groups, runs))),
    "t3": lambda rng, groups, runs: rng.standard_t(3, size=(groups, runs)),
    "contaminated": _contaminated,
    "blocked": _blocked,
}


def rate(model: str, groups: int, runs: int, trials: int) -> dict[str, Any]:
    """Return a row: the shares of `trials` that reject with all values and without outliers.

    `turned` is the share of trials in which both disagree.
    """
    rng = np.random.default_rng([SEED, list(MODELS).index(model), groups, runs])
    rejected, rejected_without_outliers, disagreeing = 0, 0, 0
    for _ in range(trials):
        drawn = MODELS[model](rng, groups, runs)
        path = decide({str(number): values for number, values in enumerate(drawn)}, pairs=False)
        all_values_test = path.with_all.test
        kept_test = (path.without_outliers or path.with_all).test
        rejected += isinstance(all_values_test, Significance) and all_values_test.rejects(LEVEL)
        rejected_without_outliers += isinstance(kept_test, Significance) and kept_test.rejects(
            LEVEL
        )
        disagreeing += path.disagrees
    return {
        "model": model,
        "groups": groups,
        "runs": runs,
        "with_all": rejected / trials,
        "without_outliers": rejected_without_outliers / trials,
        "turned": disagreeing / trials,
    }


def written(rates: list[dict[str, Any]], trials: int) -> str:
    """Return the table as the source code of a module of constants."""
    rows = [tuple(rate_row.values()) for rate_row in rates]
    listed = "\n".join(f"    {row!r},".replace("'", '"') for row in rows)
    return (
        '"""Written by tools/paper_rates.py: false-positive rates of the decision path."""\n\n'
        f"TRIALS = {trials:_}\nSEED = {SEED:_}\nLEVEL = {LEVEL}\n"
        "# model, groups, runs in each; shares that reject: all values, without outliers; and the\n"
        "# share in which the two disagree.\n"
        "ROWS: tuple[tuple[str, int, int, float, float, float], ...] = (\n"
        f"{listed}\n)\n"
    )


def main() -> None:
    """Simulate all cells and write the table."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    rates = []
    for model in MODELS:
        for groups in GROUPS:
            for runs in RUNS:
                rates.append(rate(model, groups, runs, trials))
                print(rates[-1], file=sys.stderr, flush=True)
    TABLE.write_text(written(rates, trials), encoding="utf-8")


if __name__ == "__main__":
    main()
