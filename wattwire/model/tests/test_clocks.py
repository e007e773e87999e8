"""Test the correction of times in closed form: planted offsets and drifts, asymmetric delays."""

import random
from fractions import Fraction

import polars as pl
import pytest

from wattwire.model.deployment import Deployment, Flow, Node, Process
from wattwire.model.hosts.clocks import (
    BAND_ALLOWANCE_NS,
    ONE_CLOCK,
    ClockRelation,
    Exchange,
    NodeClocks,
    clock_reasons,
    clocks_of_run,
)
from wattwire.model.ledger import deliveries

SECOND = 1_000_000_000
NEAR = ClockRelation("boot time:[1]")
"""The relation of a host that has the controller's clock."""


def planted(controller_ns, offset_ns, drift=0, start_ns=0):
    """Return the time of a clock with this offset and drift (exact)."""
    return controller_ns + offset_ns + round((controller_ns - start_ns) * Fraction(drift))


def exchange_at(controller_ns, offset_ns, drift=0, out_ns=20_000, back_ns=20_000, start_ns=0):
    """Return the result of an exchange whose request takes `out_ns` and whose reply `back_ns`."""
    sent_ns, received_ns = controller_ns, controller_ns + out_ns + 5_000 + back_ns
    arrived_ns = planted(sent_ns + out_ns, offset_ns, drift, start_ns)
    replied_ns = planted(sent_ns + out_ns + 5_000, offset_ns, drift, start_ns)
    return Exchange(
        (sent_ns + received_ns) // 2,
        (arrived_ns + replied_ns) // 2,
        (received_ns - sent_ns) - (replied_ns - arrived_ns),
        64,
        "datagrams",
    )


def relation(offset_ns, drift=0, clock="far", out_ns=20_000, back_ns=20_000):
    """Return the relation of a clock from exchanges at 10 s and 70 s of the controller."""
    ends = (
        exchange_at(at_s * SECOND, offset_ns, drift, out_ns, back_ns, 10 * SECOND)
        for at_s in (10, 70)
    )
    return ClockRelation(clock, *ends)


def deployed(hosts, relays=(), result=""):
    """Return a deployment with one node per host in `hosts`, and one flow through all of them."""
    roles = ("client", "server") if result else ("publisher", "subscriber")
    nodes = tuple(
        Node(number, f"node-{number}", roles[min(number, 1)], 0, number, "loopback/python")
        for number in range(len(hosts))
    )
    processes = tuple(
        Process(node.process, "node", host) for node, host in zip(nodes, hosts, strict=True)
    )
    receivers = tuple(n for n in range(1, len(hosts)) if n not in relays)
    flow = Flow("main", 0, receivers, tuple(relays), result)
    return Deployment(processes, nodes, (flow,), tuple(dict.fromkeys(hosts)))


@pytest.mark.parametrize("offset_ns", [0, 1_000 * SECOND, -7 * SECOND, 3])
@pytest.mark.parametrize("drift", [0, Fraction(20, 10**6), Fraction(-113, 10**6)])
def test_a_planted_offset_and_drift_are_found_exactly_at_every_time(offset_ns, drift):
    found = relation(offset_ns, drift)
    for controller_ns in (10 * SECOND, 40 * SECOND + 7, 70 * SECOND):
        own_ns = planted(controller_ns, offset_ns, drift, 10 * SECOND)
        assert found.host_ns(controller_ns) == pytest.approx(own_ns, abs=3)
        assert found.controller_ns(own_ns) == pytest.approx(controller_ns, abs=3)
    assert float(found.drift) == pytest.approx(float(drift), abs=1e-10)
    assert clock_reasons({"edge": found}) == []


@pytest.mark.parametrize("seed", range(20))
def test_the_error_of_asymmetric_delays_stays_inside_the_band(seed):
    roll = random.Random(seed)
    out_ns, back_ns = roll.choice([(0, 1), (1, 0)])
    total_ns = roll.randrange(10_000, 40_000_000)
    found = relation(5 * SECOND, out_ns=out_ns * total_ns, back_ns=back_ns * total_ns)
    error_ns = abs(found.offset_ns(40 * SECOND) - 5 * SECOND)
    assert error_ns == pytest.approx(total_ns / 2, abs=2)  # the worst asymmetry
    assert error_ns <= found.band_ns == (total_ns + 1) // 2 + BAND_ALLOWANCE_NS


@pytest.mark.parametrize(
    ("step_ns", "is_invalid"),
    [(-SECOND, True), (SECOND, True), (-31_000_000, True), (-29_000_000, False), (0, False)],
)
def test_a_clock_that_was_set_during_the_run_makes_the_run_invalid(step_ns, is_invalid):
    before = exchange_at(10 * SECOND, 2 * SECOND)
    after = exchange_at(70 * SECOND, 2 * SECOND + step_ns)
    reasons = clock_reasons({"robot": NEAR, "edge": ClockRelation("far", before, after)})
    assert [reason.code for reason in reasons] == ["clock_changed"] * is_invalid
    for reason in reasons:
        assert reason.verdict.value == "invalid"
        assert "host edge" in reason.detail and f"{step_ns / 1e6:+.3f} ms" in reason.detail


def test_a_relation_survives_run_json():
    found = relation(5 * SECOND, Fraction(20, 10**6))
    for stored in (found, ClockRelation("far", found.before), NEAR):
        assert ClockRelation.from_json(stored.to_json()) == stored
    assert found.to_json()["drift_ppm"] == pytest.approx(20, abs=1e-3)


def message_records(sent_ns, latency_ns, clock_of_sender, clock_of_receiver):
    """Return the records of one message, with the times that both nodes read."""
    arrived_ns = sent_ns + latency_ns
    begin_ns = clock_of_sender.host_ns(sent_ns)
    return [
        {"node": 0, "sender": 0, "counter": sent_ns, "kind": "message", "intended_ns": begin_ns,
         "begin_ns": begin_ns, "end_ns": begin_ns + 50, "flags": 0},
        {"node": 1, "sender": 0, "counter": sent_ns, "kind": "message", "intended_ns": None,
         "begin_ns": begin_ns, "end_ns": clock_of_receiver.host_ns(arrived_ns), "flags": 0},
    ]  # fmt: skip


@pytest.mark.parametrize("drift", [0, Fraction(50, 10**6)])
@pytest.mark.parametrize("sender_is_far", [False, True])
def test_one_way_latencies_between_clocks_are_those_of_the_truth(drift, sender_is_far):
    far = relation(1_000 * SECOND, drift)
    relations = {"robot": far, "edge": NEAR} if sender_is_far else {"robot": NEAR, "edge": far}
    deployment = deployed(("robot", "edge"))
    clocks = NodeClocks.of(relations, deployment)
    sent = [20 * SECOND, 40 * SECOND, 60 * SECOND]
    rows = [
        row
        for at_ns in sent
        for row in message_records(at_ns, 250_000, relations["robot"], relations["edge"])
    ]
    expected = deliveries(clocks.converted(pl.DataFrame(rows)), deployment.flows)
    assert expected["latency_us"].to_list() == pytest.approx([250.0] * 3, abs=50e-6 * 250 + 0.003)
    # The reference is the sender's clock, so the times of its records stay as they are.
    assert expected["due_ns"].to_list() == [relations["robot"].host_ns(at_ns) for at_ns in sent]
    assert clocks.band_ns(0, 1) == clocks.flow_band_ns(deployment.flows[0]) == far.band_ns


@pytest.mark.parametrize("drift", [0, Fraction(50, 10**6), Fraction(-400, 10**6)])
def test_a_single_time_moves_as_the_times_of_records_do(drift):
    far, other = relation(1_000 * SECOND, drift), relation(3 * SECOND, 0, "other")
    deployment = deployed(("robot", "edge", "cloud"))
    for relations in ({"robot": NEAR, "edge": far, "cloud": other},
                      {"robot": far, "edge": other, "cloud": NEAR}):  # fmt: skip
        clocks = NodeClocks.of(relations, deployment)
        for node, host in enumerate(relations):
            own_ns = relations[host].host_ns(47 * SECOND)
            row = {"node": node, "sender": node, "counter": 1, "kind": "relay",
                   "intended_ns": own_ns, "begin_ns": own_ns, "end_ns": own_ns}  # fmt: skip
            (converted_ns,) = clocks.converted(pl.DataFrame([row]))["end_ns"]
            assert clocks.reference_ns(node, own_ns) == converted_ns
            truth_ns = relations["robot"].host_ns(47 * SECOND)
            assert converted_ns == pytest.approx(truth_ns, abs=2)


def test_a_negative_latency_is_kept():
    far = relation(0, out_ns=400_000, back_ns=0)  # the offset is 200 µs too high
    deployment = deployed(("robot", "edge"))
    clocks = NodeClocks.of({"robot": NEAR, "edge": far}, deployment)
    rows = message_records(20 * SECOND, 50_000, NEAR, NEAR)
    (latency_us,) = deliveries(clocks.converted(pl.DataFrame(rows)), deployment.flows)["latency_us"]
    assert latency_us == pytest.approx(50 - 200, abs=0.01)
    assert -far.band_ns / 1_000 <= latency_us < 0


def test_durations_of_one_clock_do_not_change():
    far = relation(1_000 * SECOND, Fraction(400, 10**6))
    other = relation(3 * SECOND, 0, "other")
    deployment = deployed(("edge", "cloud"), result="call")
    clocks = NodeClocks.of({"edge": far, "cloud": other}, deployment)
    rows = [
        {"node": node, "sender": 0, "counter": 1, "kind": kind, "intended_ns": at_ns - 7,
         "begin_ns": at_ns, "end_ns": at_ns + 90_000_001, "flags": 0}
        for node, kind, at_ns in ((0, "call", 1_050 * SECOND), (1, "call", 43 * SECOND))
    ]  # fmt: skip
    before = pl.DataFrame(rows)
    after = clocks.converted(before)
    for name in ("intended_ns", "end_ns"):
        assert (after[name] - after["begin_ns"]).equals(before[name] - before["begin_ns"])
    assert after.filter(pl.col("node") == 0).equals(before.filter(pl.col("node") == 0))
    assert clocks.flow_band_ns(deployment.flows[0]) == 0  # round trips need no correction


def test_a_feedback_begins_on_the_clock_of_the_server():
    far = relation(1_000 * SECOND)
    deployment = deployed(("robot", "edge"), result="result")
    clocks = NodeClocks.of({"robot": NEAR, "edge": far}, deployment)
    row = {"node": 0, "sender": 0, "counter": 1, "kind": "feedback", "intended_ns": None,
           "begin_ns": far.host_ns(20 * SECOND), "end_ns": 20 * SECOND + 5, "flags": 0}  # fmt: skip
    frame = pl.DataFrame([row], schema_overrides={"intended_ns": pl.Int64})
    assert clocks.converted(frame)["begin_ns"].to_list() == [20 * SECOND]


def test_hosts_with_one_clock_need_no_correction_and_share_the_smallest_band():
    wide, narrow = relation(5 * SECOND, out_ns=900_000), relation(5 * SECOND)
    deployment = deployed(("robot", "edge", "cloud"))
    clocks = NodeClocks.of({"robot": NEAR, "edge": wide, "cloud": narrow}, deployment)
    assert clocks.band_ns(1, 2) == 0
    assert clocks.band_ns(0, 1) == clocks.band_ns(0, 2) == narrow.band_ns
    two = NodeClocks.of({"edge": wide, "cloud": narrow}, deployed(("edge", "cloud")))
    frame = pl.DataFrame(message_records(20 * SECOND, 50_000, wide, wide))
    assert two.are_one and two.converted(frame) is frame


def test_bands_of_two_measured_clocks_add_up_and_each_hop_has_its_own():
    edge, cloud = relation(5 * SECOND), relation(9 * SECOND, 0, "cloud", 90_000, 90_000)
    relations = {"robot": NEAR, "edge": edge, "cloud": cloud}
    deployment = deployed(("robot", "edge", "cloud"))
    clocks = NodeClocks.of(relations, deployment)
    assert clocks.band_ns(1, 2) == edge.band_ns + cloud.band_ns
    assert clocks.flow_band_ns(deployment.flows[0]) == cloud.band_ns
    chain = Flow("main", 0, (2,), (1,))
    assert clocks.hop_bands_ns(chain) == [edge.band_ns, edge.band_ns + cloud.band_ns]


def test_a_run_without_a_rig_is_not_changed():
    assert clocks_of_run({"nodes": []}) is ONE_CLOCK
    frame = pl.DataFrame(message_records(20 * SECOND, 50_000, NEAR, NEAR))
    assert ONE_CLOCK.converted(frame) is frame
    assert NodeClocks.of({"local": NEAR}, deployed(("local", "local"))).converted(frame) is frame


def test_the_stored_run_has_the_clocks():
    far = relation(5 * SECOND)
    deployment = deployed(("robot", "edge"))
    hosts = {"robot": {"clock": NEAR.to_json()}, "edge": {"clock": far.to_json()}}
    clocks = clocks_of_run({"hosts": hosts, "deployment": deployment.to_json()})
    assert clocks == NodeClocks.of({"robot": NEAR, "edge": far}, deployment)
