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

from wattwire.analysis.topics.findings.numbers import detectors
from wattwire.analysis.topics.findings.tests.made_up import NULLS, campaign

CAMPAIGNS = int(os.environ.get("WATTWIRE_SIMULATIONS", "12"))
PROMISED = 0.05


def alarms(shape: str, seed: int) -> list[str]:
    """Return the names of the detectors with a finding in a campaign of this shape."""
    searched = campaign(np.random.default_rng([seed, 7]), NULLS[shape])
    return [name for name, detector in detectors().items() if detector.search(searched).found]


@pytest.mark.parametrize("shape", NULLS)
def test_a_campaign_without_a_cause_has_no_finding(shape: str) -> None:
    counted = Counter(name for seed in range(CAMPAIGNS) for name in alarms(shape, seed))
    print(f"{shape}: {dict(counted)} of {CAMPAIGNS}")
    limit = float(scipy_stats.binom.ppf(0.995, CAMPAIGNS, PROMISED))
    assert max(counted.values(), default=0) <= limit, f"{shape}: {counted} of {CAMPAIGNS}"
