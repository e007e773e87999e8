"""The bench of topics keeps discovery on this host, and changes no variable for later benches."""

from __future__ import annotations

import os

import pytest

from bench.peers import topics

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"


@pytest.mark.parametrize("before", [None, "SUBNET"])
def test_the_agent_inherits_the_range_of_discovery_and_later_benches_do_not(monkeypatch, before):
    monkeypatch.delenv(RANGE, raising=False)
    if before is not None:
        monkeypatch.setenv(RANGE, before)

    class Stopped(Exception):
        pass

    ranges = []

    def start(_state):
        ranges.append(os.environ.get(RANGE))
        raise Stopped

    monkeypatch.setattr(topics, "AgentClient", start)
    with pytest.raises(Stopped):
        next(topics.comparisons(1))
    assert ranges == ["LOCALHOST"]
    assert os.environ.get(RANGE) == before
