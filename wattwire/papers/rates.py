"""False-positive rates of the decision path of `decide`.

What it computes: the share of simulated campaigns without a true difference in which the test over
all groups rejects at 5 %, with all values and with interquartile outliers removed.
How: `tools/paper_rates.py` simulated the rates once and wrote `rates_table.py` with the sizes,
models, seeds and numbers of trials.
What it misses: data that match none of the models; pairs after a rejection.
Reference: the decision path itself; for its parts, Rochon, Gondan & Kieser 2012, BMC Medical
Research Methodology 12:81.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wattwire.papers.rates_table import ROWS, TRIALS

MODELS = {
    "normal": "normal runs",
    "lognormal": "lognormal runs",
    "t3": "heavy tails (t with 3 degrees)",
    "contaminated": "one run in ten ten times as noisy",
    "blocked": "half of the variance common to a block",
}


@dataclass(frozen=True)
class Rate:
    """False-positive rates for `groups` groups of `runs` runs, simulated from `model`.

    `turned` is the share of trials in which removing outliers changed the verdict. `trials` is the
    number of trials.
    """

    model: str
    groups: int
    runs: int
    with_all: float
    without_outliers: float
    turned: float
    trials: int = TRIALS

    @property
    def model_title(self) -> str:
        """The distribution of the simulated runs."""
        return MODELS[self.model]


def rates_for(groups: int, runs: int) -> tuple[Rate, ...]:
    """Return the rates of each model at the simulated sizes nearest to `groups` and `runs`."""
    sizes = {(row[1], row[2]) for row in ROWS}
    nearest = min(
        sizes,
        key=lambda size: (
            abs(math.log(size[0] / max(2, groups))),
            abs(math.log(size[1] / max(1, runs))),
        ),
    )
    return tuple(Rate(*row) for row in ROWS if (row[1], row[2]) == nearest)
