"""Test the hops of a pipeline: planted losses, relays without records, and times that add up."""

import random

import polars as pl
import pytest

from wattwire.model.deployment import deployment_of
from wattwire.model.ledger import deliveries
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED, FLAG_WARM_UP
from wattwire.model.treatment import Treatment
from wattwire.run.results import delivery
from wattwire.store import Messages

ROLES = ("source", "relay", "sink")


def flows(nodes):
    treatment = Treatment.of({}, {"pattern": "pipeline", "nodes": nodes})
    return deployment_of(treatment, dict.fromkeys(ROLES, "loopback/python")).flows


def chain(nodes, count, dropped=(), seed=1, warm_up=0):
    """Return the records of a chain; `dropped` contains (hop, counter) of lost messages."""
    roll, rows = random.Random(seed), []
    for counter in range(count):
        now_ns = 1_000_000 * counter
        base = {"sender": 0, "counter": counter, "flags": FLAG_WARM_UP * (counter < warm_up)}
        rows.append({**base, "node": 0, "kind": "message", "intended_ns": now_ns,
                     "begin_ns": now_ns, "end_ns": now_ns + 50})  # fmt: skip
        sent_ns = now_ns
        for hop in range(1, nodes):
            if (hop, counter) in dropped:
                break
            now_ns += roll.randrange(1_000, 9_000)
            if hop == nodes - 1:
                rows.append({**base, "node": hop, "kind": "message", "intended_ns": None,
                             "begin_ns": sent_ns, "end_ns": now_ns})  # fmt: skip
                break
            entered_ns = now_ns
            now_ns += roll.randrange(100, 900)
            rows.append({**base, "node": hop, "kind": "relay", "intended_ns": entered_ns,
                         "begin_ns": now_ns, "end_ns": now_ns + 40})  # fmt: skip
    return pl.DataFrame(rows)


def hops_of(frame, nodes, unrecorded=()):
    messages = Messages.of(frame)
    return delivery.tallied(messages, flows(nodes), 0, unrecorded=unrecorded).hops


@pytest.mark.parametrize("seed", range(20))
def test_planted_losses_are_found_at_their_hop_and_add_up(seed):
    roll, nodes = random.Random(seed), 3 + seed % 5
    dropped = {(roll.randrange(1, nodes), roll.randrange(60)) for _ in range(9)}
    first = {counter: min(h for h, c in dropped if c == counter) for _, counter in dropped}
    frame = chain(nodes, 60, dropped, seed)
    columns = hops_of(frame, nodes)
    for hop in range(1, nodes):
        assert columns[f"lost.hop.{hop}"] == sum(at == hop for at in first.values())
    counts = delivery.tallied(Messages.of(frame), flows(nodes), 0).counts
    total = sum(columns[f"lost.hop.{hop}"] for hop in range(1, nodes))
    assert counts["sent"] == counts["received_unique"] + total == 60


def test_the_losses_around_a_relay_without_records_are_one_number():
    frame = chain(5, 40, {(1, 3), (2, 7), (3, 9), (3, 11), (4, 30)})
    without = frame.filter(pl.col("node") != 2)
    columns = hops_of(without, 5, {2})
    assert [columns[f"lost.hop.{hop}"] for hop in (1, 2, 3, 4)] == [1, None, 3, 1]
    assert columns["latency_p50_us.hop.2"] is None
    assert columns["relay_time_p50_us.hop.2"] is None
    assert columns["latency_p50_us.hop.1"] == hops_of(frame, 5)["latency_p50_us.hop.1"]


def test_losses_are_unknown_if_the_source_left_no_records():
    frame = chain(4, 20, {(2, 7)}).filter(pl.col("node") != 0)
    columns = hops_of(frame, 4, {0})
    assert {columns[f"lost.hop.{hop}"] for hop in (1, 2, 3)} == {None}


def test_a_record_that_did_not_fit_at_a_relay_is_no_loss():
    frame = chain(4, 20)
    overflown = frame.filter((pl.col("node") != 1) | (pl.col("counter") < 12))
    columns = hops_of(overflown, 4)
    assert [columns[f"lost.hop.{hop}"] for hop in (1, 2, 3)] == [0, 0, 0]


def test_hops_and_relays_add_up_to_the_latency_of_each_message():
    frame = chain(3, 1)
    columns = hops_of(frame, 3)
    parts_us = [columns[name] for name in (
        "latency_p50_us.hop.1", "relay_time_p50_us.hop.1", "latency_p50_us.hop.2",
    )]  # fmt: skip
    (latency_us,) = deliveries(frame, flows(3))["latency_us"]
    assert sum(parts_us) == pytest.approx(latency_us, abs=1e-9)


def test_medians_exclude_the_warm_up_and_corrupt_arrivals():
    frame = chain(3, 30, warm_up=10)
    altered = frame.with_columns(
        flags=pl.when((pl.col("node") == 2) & (pl.col("counter") == 29))
        .then(pl.col("flags") | FLAG_CORRUPT)
        .otherwise("flags")
    )
    kept = frame.filter(pl.col("counter") >= 10)
    expected = hops_of(kept.filter(pl.col("counter") < 29), 3)["latency_p50_us.hop.2"]
    assert hops_of(altered, 3)["latency_p50_us.hop.2"] == expected
    assert hops_of(altered, 3)["lost.hop.2"] == 0


def test_a_failed_send_of_a_relay_is_a_loss_of_the_next_hop():
    frame = chain(4, 10, {(2, 4)})
    failed = frame.with_columns(
        flags=pl.when((pl.col("node") == 1) & (pl.col("counter") == 4))
        .then(pl.lit(FLAG_FAILED, pl.Int64))
        .otherwise("flags")
    )
    columns = hops_of(failed, 4)
    assert [columns[f"lost.hop.{hop}"] for hop in (1, 2, 3)] == [0, 1, 0]


def test_parts_of_a_run_give_the_columns_of_the_whole(monkeypatch):
    monkeypatch.setattr("wattwire.store.messages.COUNTERS_PER_BUCKET", 4)
    frame = chain(6, 90, {(2, 5), (4, 17)}, warm_up=20).cast(
        {"counter": pl.UInt64, "sender": pl.UInt16, "node": pl.UInt16}
    )
    whole, cut = Messages.of(frame), Messages.of(frame, part_records=50)
    assert len(list(cut.parts())) > 1
    tallies = [delivery.tallied(messages, flows(6), 0) for messages in (whole, cut)]
    assert tallies[0] == tallies[1]


def test_shares_of_missed_deadlines_count_lost_messages():
    frame = chain(3, 100, {(1, counter) for counter in range(10)})
    tallied = delivery.tallied(Messages.of(frame), flows(3), 0, period_ns=10_000_000)
    assert tallied.latency["soft_deadline_missed_share"] == pytest.approx(0.1)
    slow = frame.with_columns(
        end_ns=pl.when((pl.col("node") == 2) & (pl.col("counter") >= 80))
        .then(pl.col("end_ns") + 4_000_000)
        .otherwise("end_ns")
    )
    tallied = delivery.tallied(Messages.of(slow), flows(3), 0, period_ns=10_000_000)
    assert tallied.latency["soft_deadline_missed_share"] == pytest.approx(0.3)
    assert tallied.latency["hard_deadline_missed_share"] == pytest.approx(0.1)
    assert (
        "soft_deadline_missed_share" not in delivery.tallied(Messages.of(slow), flows(3), 0).latency
    )
