"""On campaigns with nothing in them detectors stay silent, as often as they promise.

WATTWIRE_SIMULATIONS sets the campaigns of each shape (1250 make 10,000 of all eight).
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats as scipy_stats

from wattwire.report.findings import delayed_ack, idle, sizes
from wattwire.report.findings.finding import Finding
from wattwire.report.findings.tests.made_up import NULLS, campaign

CAMPAIGNS = int(os.environ.get("WATTWIRE_SIMULATIONS", "12"))
PROMISED = 0.05


def alarms(shape: str, seed: int) -> dict[str, bool]:
    """Which detectors find something in one campaign of that shape."""
    evidence, runs = campaign(np.random.default_rng([seed, 7]), NULLS[shape])
    return {
        "delayed acknowledgements": isinstance(delayed_ack.find(evidence, runs), Finding),
        "steps": isinstance(sizes.find(evidence, runs)[0], Finding),
        "rate": isinstance(idle.find(evidence, runs, {}), Finding),
    }


@pytest.mark.parametrize("shape", NULLS)
def test_a_campaign_without_a_cause_has_no_finding(shape: str) -> None:
    counted = {"delayed acknowledgements": 0, "steps": 0, "rate": 0}
    for seed in range(CAMPAIGNS):
        for name, alarmed in alarms(shape, seed).items():
            counted[name] += alarmed
    print(f"{shape}: {counted} of {CAMPAIGNS}")
    limit = float(scipy_stats.binom.ppf(0.995, CAMPAIGNS, PROMISED))
    assert max(counted.values()) <= limit, f"{shape}: {counted} of {CAMPAIGNS}"
