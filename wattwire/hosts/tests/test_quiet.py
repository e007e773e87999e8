"""Test that a run waits for quiet machines, and no longer than allowed."""

import pytest

from wattwire.hosts.health.quiet import wait_until_quiet
from wattwire.model.validity import ValidityLimits


class Host:
    """Agent whose other processes demand a share of 4 CPUs, from `wanted`, at each measurement."""

    def __init__(self, *wanted):
        self.wanted, self.looks, self.total_ns, self.demand_ns = list(wanted), 0, 0, 0

    def request(self, operation):
        assert operation == "load"
        if self.looks % 2:
            self.total_ns += 400_000_000
            self.demand_ns += int(self.wanted.pop(0) * 400_000_000)
        self.looks += 1
        return {"busy_ns": self.total_ns, "steal_ns": 0, "total_ns": self.total_ns, "cpus": 4,
                "tick_ns": 10_000_000, "other_demand_ns": self.demand_ns}  # fmt: skip


def test_a_run_waits_for_a_quiet_host_and_goes_on_when_time_is_up(monkeypatch):
    monkeypatch.setattr("wattwire.hosts.health.quiet.LOAD_SPAN_S", 0.0)
    seen = wait_until_quiet([Host(0.9, 0.6, 0.1)], ValidityLimits(), 60.0)
    assert seen["quiet"] and seen["other_load_share"] == pytest.approx(0.1)
    seen = wait_until_quiet([Host(3.0)], ValidityLimits(), 0.0)
    assert not seen["quiet"] and seen["other_load_share"] == 1.0
    assert wait_until_quiet([Host(0.9)], ValidityLimits(look=True), 60.0)["quiet"]
    both = [Host(0.0, 0.0), Host(0.9, 0.2)]  # only the second machine is busy at first
    seen = wait_until_quiet(both, ValidityLimits(), 60.0)
    assert seen["quiet"] and seen["other_load_share"] == pytest.approx(0.2)
    assert [machine.looks for machine in both] == [4, 4]
