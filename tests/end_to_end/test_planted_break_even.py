"""Test the break-even of real campaigns with planted times per block, through gateway and UDP.

The bar is wide: the bench `python -m bench copro --seeds 20` measures how well the intervals hold
the true value. Other load interrupts a device that is busy, which makes the sum of round trip and
work wrong, so the test needs real-time scheduling.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.coprocessing.planted_break_even import Outcome, Planted, measure
from bench.turns import real_time_on_last_core
from wattwire.analysis.topics.break_even.numbers import ADDITIVE_MAX
from wattwire.model.errors import MissingError
from wattwire.rig.agent import find_agent

pytestmark = [pytest.mark.slow, pytest.mark.matrix, pytest.mark.quiet]

SEED, BLOCKS = 5, 3
"""Three blocks are the fewest for an interval."""
FACTOR_MAX = 1.2
ROBOT_NS, DEVICE_NS = 2000, 500


@pytest.fixture
def measured(tmp_path: Path):
    """Return a function that measures planted times, undisturbed by other processes."""
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))

    def run(planted: Planted) -> Outcome:
        with real_time_on_last_core() as is_real_time:
            if not is_real_time:
                pytest.skip("real-time scheduling is not permitted")
            return measure(planted, SEED, BLOCKS, tmp_path)

    return run


def test_the_break_even_is_near_that_of_the_planted_times(measured, nothing_left):
    result = measured(Planted(ROBOT_NS, DEVICE_NS))
    assert isinstance(result.estimate, float), result
    assert result.true / FACTOR_MAX <= result.estimate <= result.true * FACTOR_MAX, result
    assert result.is_additive_or_warned, result


def test_the_page_warns_of_a_device_that_also_needs_time_per_message(
    measured, cli, tmp_path, nothing_left
):
    """A start as long as 1,024 blocks needs makes the time per block depend on the message."""
    result = measured(Planted(ROBOT_NS, DEVICE_NS, device_start_ns=1024 * DEVICE_NS))
    assert result.errors["device"] > ADDITIVE_MAX, result
    assert result.not_additive == ["device"], result
    campaign = tmp_path / "campaign"
    assert cli("report", campaign).code == 0
    page = (campaign / "report" / "index.html").read_text()
    assert "work of device are not additive" in page
    assert "work of robot are not additive" not in page
