"""Test the correction of times in closed form: planted offsets and drifts, asymmetric delays."""

from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest

from wattwire.model.deployment import Deployment, Flow, Node, Process
from wattwire.model.hosts.clocks import (
    ONE_CLOCK,
    ClockRelation,
    Knot,
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


def relation(offset_ns, drift=0, clock="far", error_ns=0, band_ns=20_000, change=0):
    """Return the relation of a clock with knots at 10 s and 70 s of the controller.

    `error_ns` is the error of its offset. With a `change` of the rate at 40 s, there is a third.
    """
    at_s = (10, 40, 70) if change else (10, 70)
    knots = [
        Knot(at * SECOND, truth(at * SECOND, offset_ns, drift, change) - at * SECOND + error_ns,
             band_ns)
        for at in at_s
    ]  # fmt: skip
    return ClockRelation(clock, tuple(knots), "datagrams", 128, 2 * band_ns)


def truth(controller_ns, offset_ns, drift=0, change=0):
    """Return the time of a clock whose rate changes at 40 s of the controller."""
    later_ns = max(0, controller_ns - 40 * SECOND)
    own_ns = planted(controller_ns, offset_ns, drift, 10 * SECOND)
    return own_ns + round(later_ns * Fraction(change))


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
    assert float(found.rates[0]) == pytest.approx(float(drift), abs=1e-10)
    assert clock_reasons({"edge": found}) == []


@pytest.mark.parametrize("change", [Fraction(40, 10**6), Fraction(-300, 10**6)])
def test_a_rate_that_changes_is_corrected_by_one_line_before_and_one_after(change):
    far = relation(1_000 * SECOND, Fraction(20, 10**6), change=change)
    assert far.changes == 1 and clock_reasons({"edge": far}) == []
    instants = [5 * SECOND, 20 * SECOND, 40 * SECOND + 3, 55 * SECOND, 80 * SECOND]
    clocks = NodeClocks.of({"robot": far, "edge": NEAR}, deployed(("robot", "edge")))
    for controller_ns in instants:
        own_ns = truth(controller_ns, 1_000 * SECOND, Fraction(20, 10**6), change)
        assert far.host_ns(controller_ns) == pytest.approx(own_ns, abs=3)
        row = {"node": 1, "sender": 1, "counter": 1, "kind": "relay", "intended_ns": None,
               "begin_ns": controller_ns, "end_ns": controller_ns}  # fmt: skip
        (converted_ns,) = clocks.converted(pl.DataFrame([row]))["end_ns"]
        assert converted_ns == clocks.reference_ns(1, controller_ns)
        assert converted_ns == pytest.approx(own_ns, abs=3)


@pytest.mark.parametrize("step_ns", [-SECOND, SECOND, -31_000_000])
def test_a_clock_that_was_set_during_the_run_makes_the_run_invalid(step_ns):
    far = replace(relation(2 * SECOND), step_ns=step_ns)
    (reason,) = clock_reasons({"robot": NEAR, "edge": far})
    assert (reason.code, reason.verdict.value) == ("clock_changed", "invalid")
    assert "host edge" in reason.detail and f"{step_ns / 1e6:+.3f} ms" in reason.detail


@pytest.mark.parametrize(("changes", "codes"), [(6, []), (7, ["clock_not_linear"])])
def test_a_clock_that_never_settles_makes_the_run_invalid(changes, codes):
    knots = [Knot(10 * SECOND + at * 60 * SECOND // (changes + 1), at * 500, 9)
             for at in range(changes + 2)]  # fmt: skip
    reasons = clock_reasons({"edge": ClockRelation("far", tuple(knots))})
    assert [reason.code for reason in reasons] == codes
    for reason in reasons:
        assert reason.verdict.value == "invalid"
        assert "host edge" in reason.detail and "found 7 changes" in reason.detail


def test_a_relation_survives_run_json():
    found = relation(5 * SECOND, Fraction(20, 10**6))
    set_back = replace(found, step_ns=-7, unseen_ppm=3.5, departure_ns=9)
    for stored in (found, set_back, replace(found, knots=found.knots[:1]), NEAR):
        assert ClockRelation.from_json(stored.to_json()) == stored
    assert found.to_json()["rates_ppm"] == [pytest.approx(20, abs=1e-3)]


def test_a_campaign_with_an_exchange_before_and_after_each_run_is_read_as_before():
    ends = [
        {"controller_ns": at * SECOND, "host_ns": at * SECOND + offset_ns,
         "round_trip_ns": 40_000, "count": 64, "way": "pipe"}
        for at, offset_ns in ((10, 5_000), (70, 1_205_000))
    ]  # fmt: skip
    stored = {"clock": "far", "before": ends[0], "after": ends[1], "band_ns": 70_000}
    far = ClockRelation.from_json(stored)
    assert far.knots == (Knot(10 * SECOND, 5_000, 70_000), Knot(70 * SECOND, 1_205_000, 70_000))
    assert (far.band_ns, far.count, far.round_trip_ns, far.way) == (70_000, 128, 40_000, "pipe")
    assert far.rates == [Fraction(20, 10**6)]
    (knot,) = ClockRelation.from_json({**stored, "after": None}).knots
    assert knot.offset_ns == 5_000
    assert ClockRelation.from_json({"clock": "x", "before": None, "after": None}).is_own


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


def test_a_rate_of_the_reference_that_changes_before_the_other_clocks_first_knot_is_corrected():
    knots = [
        Knot(at * SECOND, offset_ns, 1) for at, offset_ns in ((0, 0), (2, 0), (60, 58 * 20_000))
    ]
    reference = ClockRelation("reference", tuple(knots))
    far = ClockRelation("far", tuple(Knot(at * SECOND, 7 * SECOND, 1) for at in (5, 60)))
    clocks = NodeClocks.of({"robot": reference, "edge": far}, deployed(("robot", "edge")))
    for at_s in (1, 2, 3, 10, 50):
        own_ns = far.host_ns(at_s * SECOND)
        expected_ns = reference.host_ns(at_s * SECOND)
        assert clocks.reference_ns(1, own_ns) == pytest.approx(expected_ns, abs=2)


def test_a_negative_latency_is_kept():
    far = relation(0, error_ns=200_000, band_ns=200_000)
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
    wide, narrow = relation(5 * SECOND, band_ns=900_000), relation(5 * SECOND)
    deployment = deployed(("robot", "edge", "cloud"))
    clocks = NodeClocks.of({"robot": NEAR, "edge": wide, "cloud": narrow}, deployment)
    assert clocks.band_ns(1, 2) == 0
    assert clocks.band_ns(0, 1) == clocks.band_ns(0, 2) == narrow.band_ns
    two = NodeClocks.of({"edge": wide, "cloud": narrow}, deployed(("edge", "cloud")))
    frame = pl.DataFrame(message_records(20 * SECOND, 50_000, wide, wide))
    assert two.are_one and two.converted(frame) is frame


def test_bands_of_two_measured_clocks_add_up_and_each_hop_has_its_own():
    edge, cloud = relation(5 * SECOND), relation(9 * SECOND, 0, "cloud", band_ns=90_000)
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
