"""Tests of the false-positive rates of detectors on campaigns without effects.

WATTWIRE_SIMULATIONS sets the number of campaigns per shape. With eight shapes, 1250 gives 10,000
campaigns.
"""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest
from scipy import stats as scipy_stats

from wattwire.report.findings.finding import Finding, Searched
from wattwire.report.findings.part import detectors
from wattwire.report.findings.tests.made_up import NULLS, campaign

CAMPAIGNS = int(os.environ.get("WATTWIRE_SIMULATIONS", "12"))
PROMISED = 0.05


def alarms(shape: str, seed: int) -> list[int]:
    """Return the places of the detectors with a finding in a campaign of this shape."""
    evidence, runs = campaign(np.random.default_rng([seed, 7]), NULLS[shape])
    searched = Searched(evidence, runs, [])
    return [
        detector.place
        for detector in detectors()
        if any(isinstance(result, Finding) for result in detector.look(searched))
    ]


@pytest.mark.parametrize("shape", NULLS)
def test_a_campaign_without_a_cause_has_no_finding(shape: str) -> None:
    counted = Counter(place for seed in range(CAMPAIGNS) for place in alarms(shape, seed))
    print(f"{shape}: {dict(counted)} of {CAMPAIGNS}")
    limit = float(scipy_stats.binom.ppf(0.995, CAMPAIGNS, PROMISED))
    assert max(counted.values(), default=0) <= limit, f"{shape}: {counted} of {CAMPAIGNS}"
