"""Test the columns of flows: planted losses, rates within the window, and sums over flows."""

import math
import random

import polars as pl
import pytest

from wattwire.model.deployment import deployment_of
from wattwire.model.derived import with_derived
from wattwire.model.ledger import Drain
from wattwire.model.metrics import OF_FLOWS
from wattwire.model.sample_codes import FLAG_WARM_UP
from wattwire.model.study import parse_study
from wattwire.model.treatment import Treatment
from wattwire.run.results import delivery, schema
from wattwire.run.results.flows import FlowFacts, FlowTallies
from wattwire.store import Messages

MS = 1_000_000
FLOWS = {"command": (64, 20 * MS, 50), "image": (10_000, 50 * MS, 20)}
"""Flow → payload (bytes), period (ns) and number of messages of a window of one second."""
SPAN_NS = (0, 1000 * MS)


def flows():
    tables = [{"name": name, "payload_bytes": size, "rate_hz": 1e9 / period_ns}
              for name, (size, period_ns, _) in FLOWS.items()]  # fmt: skip
    study = parse_study("s", {"flow": tables, "fixed": {"cell": "x/y"}}, "study.toml")
    treatment = Treatment.of({}, study.held)
    return deployment_of(treatment, dict.fromkeys(("publisher", "subscriber"), "x/y")).flows


def records(dropped=(), latency_ns=MS, warm_up_ns=0):
    """Return the records of a run; `dropped` contains (flow, counter) of lost messages."""
    rows = []
    for flow in flows():
        size_bytes, period_ns, count = FLOWS[flow.name]
        for counter in range(count):
            due_ns = counter * period_ns
            base = {"sender": flow.sender, "counter": counter, "kind": "message",
                    "bytes": size_bytes, "flags": FLAG_WARM_UP * (due_ns < warm_up_ns)}  # fmt: skip
            rows.append({**base, "node": flow.sender, "intended_ns": due_ns, "begin_ns": due_ns,
                         "end_ns": due_ns + 1})  # fmt: skip
            if (flow.name, counter) not in dropped:
                rows.append({**base, "node": flow.receivers[0], "intended_ns": None,
                             "begin_ns": due_ns, "end_ns": due_ns + latency_ns})  # fmt: skip
    return pl.DataFrame(rows)


def columns(frame, span_ns=SPAN_NS, unrecorded=(), part_records=1 << 19, drain=None):
    facts = [FlowFacts(flow, FLOWS[flow.name][1], span_ns) for flow in flows()]
    of_flows = FlowTallies(facts)
    messages = Messages.of(frame, part_records)
    tallied = delivery.tallied(messages, flows(), 2**62, further=[of_flows], drain=drain)
    (row,) = schema.with_derived([of_flows.summary(unrecorded, None)])
    return tallied, {name: value for name, value in row.items() if ".flow." in name}


@pytest.mark.parametrize("seed", range(20))
def test_planted_losses_are_counted_in_their_flow_and_add_up(seed):
    roll = random.Random(seed)
    dropped = {(name, roll.randrange(FLOWS[name][2])) for name in roll.choices([*FLOWS], k=8)}
    tallied, row = columns(records(dropped))
    for name in FLOWS:
        planted = sum(flow == name for flow, _ in dropped)
        assert row[f"lost.flow.{name}"] == planted
        assert row[f"sent.flow.{name}"] == FLOWS[name][2]
        assert row[f"received_unique.flow.{name}"] == FLOWS[name][2] - planted
        assert row[f"loss_share.flow.{name}"] == pytest.approx(planted / FLOWS[name][2])
    for count in ("sent", "expected", "received_unique", "lost"):
        assert sum(row[f"{count}.flow.{name}"] for name in FLOWS) == tallied.counts[count]


def test_rate_and_throughput_refer_to_the_window_without_its_warm_up():
    _, row = columns(records(latency_ns=101 * MS, warm_up_ns=500 * MS), (500 * MS, 1000 * MS))
    assert row["rate_hz_achieved.flow.command"] == pytest.approx(50)
    assert row["rate_hz_achieved.flow.image"] == pytest.approx(20)
    # Messages that were sent from 400 ms on arrived from 501 ms on, and those of 900 ms too late.
    assert row["throughput_bytes_per_s.flow.command"] == pytest.approx(25 * 64 / 0.5)
    assert row["throughput_bytes_per_s.flow.image"] == pytest.approx(10 * 10_000 / 0.5)
    assert row["latency_samples.flow.command"] == 25
    assert row["latency_p50_us.flow.image"] == pytest.approx(101_000)


def test_a_flow_has_its_own_share_of_reordered_messages():
    is_held = (pl.col("node") == flows()[1].receivers[0]) & (pl.col("counter") == 5)
    ends_ns = pl.col("end_ns") + pl.when(is_held).then(60 * MS).otherwise(0)  # the period is 50 ms
    _, row = columns(records().with_columns(end_ns=ends_ns))
    assert row["reordered_share.flow.image"] == pytest.approx(1 / FLOWS["image"][2])
    assert row["reordered_share.flow.command"] == 0


def test_deadlines_use_the_period_of_the_flow():
    _, row = columns(records(latency_ns=5 * MS))
    assert row["soft_deadline_missed_share.flow.command"] == 1.0  # 20 % of 20 ms
    assert row["soft_deadline_missed_share.flow.image"] == 0.0  # at most 5 ms


def test_a_flow_whose_sender_left_no_records_has_no_counts_but_latencies():
    frame = records().filter(pl.col("node") != flows()[1].sender)
    _, row = columns(frame, unrecorded={flows()[1].sender})
    assert row["sent.flow.command"] == 50 and row["sent.flow.image"] is None
    assert row["lost.flow.image"] is None and row["loss_share.flow.image"] is None
    assert row["latency_p50_us.flow.image"] == pytest.approx(1_000)


def test_parts_of_a_run_give_the_columns_of_the_whole(monkeypatch):
    monkeypatch.setattr("wattwire.store.messages.COUNTERS_PER_BUCKET", 4)
    frame = records({("image", 3), ("command", 7)}, warm_up_ns=100 * MS).cast(
        {"counter": pl.UInt64, "sender": pl.UInt16, "node": pl.UInt16}
    )
    assert columns(frame)[1] == columns(frame, part_records=30)[1]


def test_undelivered_messages_are_counted_in_their_flow_and_are_not_lost():
    image = FLOWS["image"][2]
    dropped = {("image", counter) for counter in (1, *range(image - 4, image))}
    tallied, row = columns(records(dropped), drain=Drain(0))
    assert (row["lost.flow.image"], row["undelivered.flow.image"]) == (1, 4)
    assert (row["lost.flow.command"], row["undelivered.flow.command"]) == (0, 0)
    assert (tallied.counts["lost"], tallied.counts["undelivered"]) == (1, 4)
    assert row["loss_share.flow.image"] == pytest.approx(1 / image)
    assert row["undelivered_after_warmup.flow.image"] == 4


def test_every_column_of_a_flow_is_a_metric_of_flows():
    _, row = columns(records())
    stems = {name.split(".flow.")[0] for name in row}
    assert stems <= OF_FLOWS
    with_clocks_or_schedules = {"clock_band_us", "unsent_after_warmup"}
    assert OF_FLOWS - stems == with_clocks_or_schedules


def test_a_percentile_among_lost_messages_of_its_flow_is_infinite():
    _, row = columns(records({("image", counter) for counter in range(15)}))
    frame = with_derived(pl.DataFrame([{**row, "sent": 70, "expected": 70, "lost": 15}]))
    assert math.isinf(frame["latency_p50_us.flow.image"][0])
    assert frame["latency_p50_us.flow.command"][0] == pytest.approx(1_000)
