"""Test the simultaneous coverage of ratios in the order of the plan, and in an order of groups.

`python -m bench run_order` is the full simulation. Seeds are fixed, so the shares here are too.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from wattwire import stats
from wattwire.analysis.dataset import order_of
from wattwire.design import expand, make_plan
from wattwire.model.study import Plan, parse_study
from wattwire.stats.blocked import GROUPED, RANDOM

CAMPAIGNS = 400
LEAST = 0.92
"""Almost three standard errors below 95 %. A pooled error reaches at most 0.89 in each case."""
CORRELATION = 0.9


def planned(factors, blocks, seed):
    """Return (block, levels) of each run in run order, from wattwire's own plan."""
    document = {"factors": factors, "fixed": {"middleware": "loopback", "pattern": "topic"}}
    study = parse_study("s", document, "s.toml")
    treatments = [treatment for treatment, reason in expand(study) if reason is None]
    plan = Plan(blocks=blocks, seed=seed, primary=next(iter(factors)), controls=False)
    runs = make_plan(treatments, plan)
    return [(run.block, tuple(run.treatment[name] for name in factors)) for run in runs]


def grouped(runs, rng):
    """Return the runs with the levels of the first factor next to each other in random groups."""
    ranks = {(block, levels[1:]): rng.random() for block, levels in runs}
    return sorted(runs, key=lambda run: (run[0], ranks[run[0], run[1][1:]], rng.random()))


def machine_errors(rng, count):
    values = rng.standard_normal(count + 50)
    for at in range(1, values.size):
        values[at] = CORRELATION * values[at - 1] + np.sqrt(1 - CORRELATION**2) * values[at]
    return values[50:]


def all_hold(runs, errors, factors, order=RANDOM):
    """Return whether all simultaneous intervals contain 1, the ratio of equal treatments."""
    columns = {name: [levels[at] for _, levels in runs] for at, name in enumerate(factors)}
    fit = stats.fit_log(np.exp(0.1 * errors), [block for block, _ in runs], columns, None, order)
    contrasts = [(name, level, names[0]) for name, names in factors.items() for level in names[1:]]
    level = stats.bonferroni(0.95, len(contrasts))
    ratios = [stats.ratio(fit, *contrast, level).interval for contrast in contrasts]
    return not any(interval.excludes(1.0) for interval in ratios)


FACTORS = {"language": ["a", "b", "c"], "clients": [1, 2]}


def test_ratios_cover_in_the_order_of_the_plan_when_the_machine_drifts() -> None:
    rng = np.random.default_rng(5)
    hits = []
    for campaign in range(CAMPAIGNS):
        runs = planned(FACTORS, 8, campaign)
        hits.append(all_hold(runs, machine_errors(rng, len(runs)), FACTORS))
    assert np.mean(hits) >= LEAST


def test_ratios_cover_in_an_order_of_groups_when_the_machine_drifts() -> None:
    rng = np.random.default_rng(6)
    hits = []
    for campaign in range(CAMPAIGNS):
        runs = grouped(planned(FACTORS, 8, campaign), rng)
        hits.append(all_hold(runs, machine_errors(rng, len(runs)), FACTORS, GROUPED))
    assert np.mean(hits) >= LEAST


def test_ratios_cover_when_the_baseline_scatters_more_than_the_other_levels() -> None:
    rng = np.random.default_rng(7)
    factors = {"language": list("abcdef")}
    runs = planned(factors, 8, 1)
    spread = np.array([2.0 if levels == ("a",) else 1.0 for _, levels in runs])
    hits = [
        all_hold(runs, spread * rng.standard_normal(len(runs)), factors) for _ in range(CAMPAIGNS)
    ]
    assert np.mean(hits) >= LEAST


@pytest.mark.parametrize(("arranged", "order"), [(False, RANDOM), (True, GROUPED)])
def test_the_run_table_shows_the_order_of_the_runs(arranged, order) -> None:
    runs = planned(FACTORS, 5, 3)
    runs = grouped(runs, np.random.default_rng(1)) if arranged else runs
    evidence = SimpleNamespace(
        imported=False,
        primary="language",
        varied=list(FACTORS),
        designed=[
            {"block": block, "position": at, "treatment": dict(zip(FACTORS, levels, strict=True))}
            for at, (block, levels) in enumerate(runs)
        ],
    )
    assert order_of(evidence) == order
