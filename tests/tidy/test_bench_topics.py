"""The bench of topics keeps discovery on this host, and judges each figure by its own promise."""

from __future__ import annotations

import os

import pytest

from bench.pairs import verdicts
from bench.peers import topics
from bench.peers.topics import Figures

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


@pytest.mark.parametrize(
    ("cpu_us", "error_us", "delay_us", "expected"),
    [
        (30.0, 9.0, 1040.0, ["passed", "passed", "passed"]),
        (34.0, 9.0, 1040.0, ["failed", "passed", "passed"]),
        (30.0, 11.0, 1040.0, ["passed", "failed", "passed"]),
        (30.0, 9.0, 1060.0, ["passed", "passed", "failed"]),
    ],
)
def test_each_figure_of_the_probe_has_its_own_promise(cpu_us, error_us, delay_us, expected):
    scatter = [1.0, 1.001, 0.999]
    plain = [Figures(100.0 * s, 100.0 * s, 1000.0 * s) for s in scatter]
    probed = [Figures(cpu_us, error_us, delay_us)] * len(scatter)
    assert verdicts(list(topics.of_load("load", probed, plain))) == expected
