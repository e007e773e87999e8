"""Test the bands and the delay variation of runs between hosts with different clocks."""

import polars as pl
import pytest

from wattwire.model.deployment import Deployment, Flow, Node, Process
from wattwire.model.hosts.clocks import ClockRelation, Knot, NodeClocks
from wattwire.run.results import delivery
from wattwire.store import Messages

NEAR = ClockRelation("near")
LATE_NS = 2**62


def far(offset_ns=0, band_ns=100_000, clock="far"):
    return ClockRelation(clock, (Knot(0, offset_ns, band_ns),), "pipe", 64)


def fan_out(relations):
    """Return the flows and the clocks of a publisher and subscribers, one on each host."""
    roles = ["publisher", *["subscriber"] * (len(relations) - 1)]
    names = [f"host-{number}" for number in range(len(roles))]
    nodes = tuple(
        Node(number, name, role, 0, number, "loopback/python")
        for number, (name, role) in enumerate(zip(names, roles, strict=True))
    )
    flow = Flow("main", 0, tuple(range(1, len(nodes))))
    processes = tuple(Process(name, "node", name) for name in names)
    deployment = Deployment(processes, nodes, (flow,), tuple(names))
    return (flow,), NodeClocks.of(dict(zip(names, relations, strict=True)), deployment)


def tallied(relations, latencies_us, errors_us, lost=0):
    """Return the tally of one stream for each receiver; `errors_us` are errors of its offset."""
    flows, clocks = fan_out(relations)
    rows = []
    for counter in range(len(latencies_us[0]) + lost):
        begin_ns = 10**9 + counter * 10**6
        sent = {"sender": 0, "counter": counter, "kind": "message", "begin_ns": begin_ns,
                "intended_ns": begin_ns, "flags": 0}  # fmt: skip
        rows.append({**sent, "node": 0, "end_ns": begin_ns + 9})
        for node, (values_us, error_us) in enumerate(zip(latencies_us, errors_us, strict=True), 1):
            if counter < len(values_us):
                end_ns = begin_ns + round((values_us[counter] + error_us) * 1_000)
                rows.append({**sent, "node": node, "intended_ns": None, "end_ns": end_ns})
    messages = Messages.of(pl.DataFrame(rows)).on_one_clock(clocks)
    return delivery.tallied(messages, flows, LATE_NS, clocks=clocks)


def test_delay_variation_needs_no_offset_and_one_way_latency_does():
    latencies_us = [[50.0 + step for step in range(100)], [900.0 + 3 * step for step in range(100)]]
    exact = tallied([NEAR, far(), far()], latencies_us, [0, 0])
    wrong = tallied([NEAR, far(), far()], latencies_us, [-80, 70])
    assert exact.latency["latency_p50_us"] != wrong.latency["latency_p50_us"]
    for tally in (exact, wrong):
        # Both streams together: 0, 1, … 99, and 0, 3, … 297.
        assert tally.columns["delay_variation_p50_us"] == pytest.approx(74, abs=1)
        assert tally.columns["delay_variation_p99_us"] == pytest.approx(291, abs=3)


def test_the_quantiles_of_delay_variation_include_lost_messages():
    tally = tallied([NEAR, far()], [[float(step) for step in range(50)]], [0], lost=49)
    assert tally.columns["delay_variation_p50_us"] == 49
    assert tally.columns["delay_variation_p99_us"] is None


def test_the_band_of_a_run_is_the_largest_sum_of_both_hosts_bands():
    latencies_us = [[50.0], [50.0]]
    tally = tallied([far(), NEAR, far(clock="third")], latencies_us, [0, 0])
    assert tally.between_clocks["clock_band_us"] == 200
    tally = tallied([NEAR, NEAR, far(band_ns=60_000)], latencies_us, [0, 0])
    assert tally.between_clocks["clock_band_us"] == 60
    assert tallied([NEAR] * 3, latencies_us, [0, 0]).between_clocks["clock_band_us"] == 0


def test_each_hop_of_a_chain_has_its_own_band():
    _, clocks = fan_out([NEAR, far(), NEAR])
    chain = Flow("main", 0, (2,), (1,))
    assert delivery.clock_bands_us([chain], clocks) == {
        "clock_band_us": 0.0, "clock_band_us.hop.1": 100.0, "clock_band_us.hop.2": 100.0,
    }  # fmt: skip


def test_a_run_without_a_rig_has_no_such_columns():
    flows, _ = fan_out([NEAR, NEAR])
    empty = pl.DataFrame(schema=dict.fromkeys(("node", "sender", "counter"), pl.Int64))
    frame = empty.with_columns(kind=pl.lit("message"), flags=pl.lit(0)).with_columns(
        **{name: pl.lit(0, pl.Int64) for name in ("intended_ns", "begin_ns", "end_ns")}
    )
    assert delivery.tallied(Messages.of(frame), flows, LATE_NS).between_clocks == {}
