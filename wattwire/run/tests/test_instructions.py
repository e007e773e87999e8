"""Test the instructions per block of a run, from what its nodes report at READY."""

import pytest

from wattwire.run.results.summary import _instructions


def ready(**effective):
    return {"matched": 1, "effective": effective}


def test_the_server_that_counted_gives_the_ratio():
    lines = [ready(transport="udp"), ready(counted_instructions=71_384, counted_blocks=87)]
    assert _instructions(lines) == {"instructions_per_block": pytest.approx(71_384 / 87)}


def test_several_devices_give_the_ratio_of_their_sums():
    lines = [ready(counted_instructions=100, counted_blocks=1),
             ready(counted_instructions=600, counted_blocks=3)]  # fmt: skip
    assert _instructions(lines) == {"instructions_per_block": 175.0}


@pytest.mark.parametrize(
    "effective",
    [
        {},
        {"counted_instructions": 800},
        {"counted_instructions": 800, "counted_blocks": 0},
        {"counted_instructions": "many", "counted_blocks": 1},
        {"counted_instructions": True, "counted_blocks": 1},
    ],
)
def test_without_two_positive_numbers_there_is_no_ratio(effective):
    assert _instructions([ready(**effective)]) == {}
