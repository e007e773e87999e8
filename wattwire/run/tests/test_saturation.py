"""Test the messages that a saturated hop had not delivered in time, against closed-form cases.

A sender offers 100 messages per second for two seconds. A saturated hop passes a message every
20 ms, half of the offered rate, in the order of sending.
"""

import polars as pl
import pytest

from wattwire.model.deployment import deployment_of
from wattwire.model.ledger import Drain
from wattwire.model.sample_codes import FLAG_WARM_UP
from wattwire.model.treatment import Treatment
from wattwire.run.results import delivery
from wattwire.store import Messages
from wattwire.store import messages as parts_of_runs

MS = 1_000_000
PERIOD_NS, SERVICE_NS = 10 * MS, 20 * MS
COUNT, BEGIN_NS = 200, 1000 * MS
CELLS = ("publisher", "subscriber", "source", "relay", "sink")
SCHEMA = {"node": pl.UInt16, "sender": pl.UInt16, "counter": pl.UInt64, "kind": pl.String,
          "intended_ns": pl.Int64, "begin_ns": pl.Int64, "end_ns": pl.Int64, "flags": pl.UInt8,
          "bytes": pl.UInt32}  # fmt: skip


def flows(pattern, **counts):
    treatment = Treatment.of({}, {"pattern": pattern, **counts})
    return deployment_of(treatment, dict.fromkeys(CELLS, "loopback/python")).flows


def due_ns(counter):
    return BEGIN_NS + counter * PERIOD_NS


def sent(warm_up=0):
    return [
        (0, 0, n, "message", due_ns(n), due_ns(n), due_ns(n) + 1, FLAG_WARM_UP * (n < warm_up), 64)
        for n in range(COUNT)
    ]


def arrived(node, counters, delay_ns, kind="message"):
    """Return arrivals at a node; `delay_ns` maps a counter to the time from its sending."""
    rows = []
    for n in counters:
        at_ns = due_ns(n) + delay_ns(n)
        times = (at_ns, at_ns + 5, at_ns + 9) if kind == "relay" else (None, due_ns(n), at_ns)
        rows.append((node, 0, n, kind, *times, 0, 64))
    return rows


def queued(counter):
    """Return the delay of a message in the queue of the saturated hop."""
    return SERVICE_NS + counter * (SERVICE_NS - PERIOD_NS)


def prompt(counter):
    return MS


def tallied(of, rows, until_ns, part_records=10_000, end_ns=None):
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    messages = Messages.of(frame, part_records=part_records)
    return delivery.tallied(messages, of, 0, PERIOD_NS, drain=Drain(until_ns, end_ns))


@pytest.mark.parametrize("part_records", [10_000, 20])
def test_messages_in_the_queue_at_the_end_are_undelivered_and_gaps_are_lost(
    monkeypatch, part_records
):
    monkeypatch.setattr(parts_of_runs, "COUNTERS_PER_BUCKET", 4)
    passed = [n for n in range(120) if n not in (7, 50, 119)]
    rows = [*sent(), *arrived(1, passed, queued)]
    last_ns = due_ns(118) + queued(118)
    result = tallied(flows("topic", clients=1), rows, last_ns - 1, part_records)
    counts = result.counts
    assert (counts["sent"], counts["received_unique"]) == (COUNT, 117)
    assert (counts["lost"], counts["undelivered"]) == (2, COUNT - 119)
    assert result.latency["lost_after_warmup"] == 2
    assert result.latency["undelivered_after_warmup"] == COUNT - 119
    # Offered rate over capacity, minus 1: latency grows by one second per second.
    assert result.latency["latency_growth_us_per_s"] == pytest.approx(1e6)


def test_a_receiver_that_had_stopped_receiving_has_lost_the_last_messages():
    rows = [*sent(), *arrived(1, range(120), prompt)]
    result = tallied(flows("topic", clients=1), rows, due_ns(119) + MS)
    assert (result.counts["lost"], result.counts["undelivered"]) == (COUNT - 120, 0)
    assert result.latency["latency_growth_us_per_s"] == pytest.approx(0, abs=1e-6)


def test_each_receiver_has_its_own_queue():
    rows = [*sent(), *arrived(1, range(COUNT), prompt), *arrived(2, range(90), queued)]
    result = tallied(flows("topic", clients=2), rows, due_ns(89) + queued(89) - 1)
    assert result.counts["undelivered"] == COUNT - 90
    assert result.counts["lost"] == 0


def test_undelivered_messages_have_the_hop_of_the_queue_and_all_hops_add_up():
    at_relay = [n for n in range(150) if n != 20]
    at_sink = [n for n in at_relay if n < 100 and n not in (3, 4)]
    rows = [
        *sent(),
        *arrived(1, at_relay, queued, "relay"),
        *arrived(2, at_sink, lambda n: queued(n) + MS),
    ]
    until_ns = due_ns(99) + queued(99)
    result = tallied(flows("pipeline", nodes=3), rows, until_ns)
    hops = {name: result.hops[name] for name in result.hops if name.startswith(("lost", "undel"))}
    assert hops == {
        "lost.hop.1": 1, "undelivered.hop.1": 50, "lost.hop.2": 2, "undelivered.hop.2": 50,
    }  # fmt: skip
    assert result.counts["sent"] == result.counts["received_unique"] + sum(hops.values())
    assert (result.counts["lost"], result.counts["undelivered"]) == (3, 100)
    # The sink had stopped receiving before: what it lacks is lost.
    later = tallied(flows("pipeline", nodes=3), rows, until_ns + MS)
    assert later.hops["undelivered.hop.1"] == 50
    assert (later.hops["lost.hop.2"], later.hops["undelivered.hop.2"]) == (52, 0)
    assert (later.counts["lost"], later.counts["undelivered"]) == (53, 50)


def test_the_warm_up_counts_only_in_the_whole_run():
    rows = [*sent(warm_up=130), *arrived(1, range(100), queued)]
    result = tallied(flows("topic", clients=1), rows, due_ns(99))
    assert result.counts["undelivered"] == COUNT - 100
    assert result.latency["undelivered_after_warmup"] == COUNT - 130
    assert result.latency["lost_after_warmup"] == 0
    assert result.latency["latency_growth_us_per_s"] is None


def test_a_receiver_without_any_message_has_lost_all():
    result = tallied(flows("topic", clients=1), sent(), 0)
    assert (result.counts["lost"], result.counts["undelivered"]) == (COUNT, 0)


def slowly(counter):
    """Return the delay behind a hop that passes a message every 500 ms."""
    return (counter + 1) * 500 * MS - counter * PERIOD_NS


STOP_NS = due_ns(COUNT)


def test_a_slow_hop_is_still_delivering_if_its_pause_is_as_long_as_those_before():
    rows = [*sent(), *arrived(1, range(8), slowly)]
    last_ns = due_ns(7) + slowly(7)
    for end_ns, undelivered in ((last_ns + 1400 * MS, COUNT - 8), (last_ns + 1600 * MS, 0)):
        counts = tallied(flows("topic", clients=1), rows, STOP_NS, end_ns=end_ns).counts
        assert (counts["lost"], counts["undelivered"]) == (COUNT - 8 - undelivered, undelivered)


def test_the_last_messages_of_a_fast_hop_are_lost_however_long_receivers_wait():
    rows = [*sent(), *arrived(1, range(COUNT - 2), lambda n: 50 * MS)]
    counts = tallied(flows("topic", clients=1), rows, STOP_NS, end_ns=STOP_NS + 2000 * MS).counts
    assert (counts["lost"], counts["undelivered"]) == (2, 0)


def test_a_node_without_any_message_behind_a_queue_has_lost_none():
    rows = [*sent(), *arrived(1, range(8), slowly, "relay")]
    end_ns = due_ns(7) + slowly(7) + 100 * MS
    hops = tallied(flows("pipeline", nodes=3), rows, STOP_NS, end_ns=end_ns).hops
    assert (hops["lost.hop.1"], hops["undelivered.hop.1"]) == (0, COUNT - 8)
    assert (hops["lost.hop.2"], hops["undelivered.hop.2"]) == (0, 8)
    prompt_rows = [*sent(), *arrived(1, range(COUNT), prompt, "relay")]
    hops = tallied(flows("pipeline", nodes=3), prompt_rows, STOP_NS, end_ns=end_ns).hops
    assert (hops["lost.hop.2"], hops["undelivered.hop.2"]) == (COUNT, 0)
