"""Test the message counts: gaps are losses, duplicates are separate, and the sums agree."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattwire.model.latencies import latency_summary
from wattwire.model.ledger import Fate, deliveries
from wattwire.model.sample_codes import FLAG_FAILED, FLAG_TIMEOUT, FLAG_WARM_UP
from wattwire.run.results import delivery, resources
from wattwire.run.results.convert import MESSAGE_SCHEMA
from wattwire.run.tests.test_one_latency import flows_of, node
from wattwire.store import Messages


def messages(rows):
    defaults = {"run": "r", "flow": "topic", "host": "local", "kind": "message", "peer": None,
                "hop": 0, "intended_ns": 0, "begin_ns": 0, "end_ns": 1000, "bytes": 64,
                "flags": 0}  # fmt: skip
    return pl.DataFrame([{**defaults, **r} for r in rows], schema=MESSAGE_SCHEMA)


def topic(sent, received):
    rows = [{"node": 0, "sender": 0, "counter": c} for c in range(sent)]
    rows += [{"node": 1, "sender": 0, "counter": c, "end_ns": 5000} for c in received]
    return messages(rows)


NODES = [node(0, "publisher"), node(1, "subscriber")]
FLOWS = flows_of(NODES)


def counts_of(frame, flows=FLOWS):
    return delivery.tallied(Messages.of(frame), flows, 10**18).counts


def counters(frame, fate):
    rows = deliveries(frame, FLOWS).filter(pl.col("fate") == fate)
    return sorted(rows["counter"].to_list())


def test_the_lost_ones_are_exactly_the_gaps():
    frame = topic(10, [0, 1, 3, 3, 4, 8])
    assert counters(frame, Fate.LOST) == [2, 5, 6, 7, 9]
    assert counters(frame, Fate.ARRIVED) == [0, 1, 3, 4, 8]
    assert counters(frame, Fate.DUPLICATE) == [3]


@settings(deadline=None)  # no deadline, because the machine may be loaded
@given(st.integers(1, 60), st.lists(st.integers(0, 59), max_size=120))
def test_received_and_lost_always_add_up_to_sent(sent, received):
    arrived = [c for c in received if c < sent]
    counts = counts_of(topic(sent, arrived))
    assert counts["received_unique"] + counts["lost"] == counts["sent"] == sent
    assert counts["received_unique"] + counts["duplicates"] == len(arrived)


def test_the_arrival_of_a_message_that_nobody_sent_is_not_expected():
    frame = topic(3, [0, 1, 2, 7])
    assert counters(frame, Fate.ARRIVED) == [0, 1, 2] and len(deliveries(frame, FLOWS)) == 3


def test_each_subscriber_expects_every_message():
    rows = [{"node": 0, "sender": 0, "counter": c} for c in range(4)]
    rows += [{"node": n, "sender": 0, "counter": c} for n in (1, 2) for c in range(4 - n)]
    flows = flows_of([*NODES, node(2, "subscriber")])
    summary = counts_of(messages(rows), flows)
    assert (summary["sent"], summary["expected"]) == (4, 8)
    assert (summary["received_unique"], summary["lost"]) == (5, 3)


def test_a_call_that_timed_out_is_lost_and_a_servers_records_are_not_replies():
    call = {"kind": "call", "flow": "service"}
    rows = [{**call, "node": 1, "sender": 1, "counter": c} for c in range(3)]
    rows[1] |= {"flags": FLAG_TIMEOUT, "end_ns": None}
    rows += [{**call, "node": 0, "sender": 1, "counter": c} for c in range(3)]
    flows = flows_of([node(0, "server"), node(1, "client")])
    rows = deliveries(messages(rows), flows)
    assert dict(rows.select("counter", "fate").iter_rows()) == {
        0: Fate.ARRIVED, 1: Fate.LOST, 2: Fate.ARRIVED,
    }  # fmt: skip


def latency(frame, flows=FLOWS):
    return latency_summary(deliveries(frame, flows))


def test_a_failed_call_is_neither_received_nor_lost_and_has_no_latency():
    call = {"kind": "call", "flow": "service", "node": 1, "sender": 1}
    rows = [{**call, "counter": c} for c in range(4)]
    rows[1] |= {"flags": FLAG_FAILED, "end_ns": None}
    rows[2] |= {"flags": FLAG_FAILED, "end_ns": 10}  # an error that arrives before any reply
    rows[3] |= {"flags": FLAG_TIMEOUT, "end_ns": None}
    flows = flows_of([node(0, "server"), node(1, "client")])
    summary = counts_of(messages(rows), flows)
    counts = ("sent", "expected", "received_unique", "failed", "lost")
    assert [summary[name] for name in counts] == [4, 4, 1, 2, 1]
    found = latency(messages(rows), flows)
    counts = ("expected_after_warmup", "latency_samples", "failed_after_warmup",
              "lost_after_warmup")  # fmt: skip
    assert [found[name] for name in counts] == [4, 1, 2, 1]
    assert found["latency_p50_us"] is None


def test_a_publishers_failed_send_is_not_sent():
    rows = [{"node": 0, "sender": 0, "counter": c} for c in range(3)]
    rows[1] |= {"flags": FLAG_FAILED}
    frame = messages(rows)
    assert counts_of(frame)["sent"] == 2 and counters(frame, Fate.LOST) == [0, 2]
    assert counters(frame, Fate.FAILED) == []


def test_lost_messages_stand_as_infinite_latencies():
    full, lossy = latency(topic(100, range(100))), latency(topic(100, range(95)))
    assert full["latency_p99_us"] == 5.0
    assert lossy["latency_p50_us"] == 5.0
    assert lossy["latency_p99_us"] is None


def test_warm_up_is_left_out_of_latency():
    rows = [{"node": 0, "sender": 0, "counter": 0, "flags": FLAG_WARM_UP},
            {"node": 0, "sender": 0, "counter": 1},
            {"node": 1, "sender": 0, "counter": 0, "end_ns": 9_000_000, "flags": FLAG_WARM_UP},
            {"node": 1, "sender": 0, "counter": 1, "end_ns": 2000}]  # fmt: skip
    assert latency(messages(rows))["latency_p50_us"] == 2.0


def test_what_was_lost_in_the_warm_up_is_in_no_quantile_of_the_window():
    sent = [{"node": 0, "sender": 0, "counter": c, "flags": FLAG_WARM_UP * (c < 20)}
            for c in range(120)]  # fmt: skip
    got = [{"node": 1, "sender": 0, "counter": c, "end_ns": 5000} for c in range(20, 120)]
    summary = latency(messages(sent + got))
    assert summary["latency_p99_us"] == 5.0
    assert (summary["expected_after_warmup"], summary["lost_after_warmup"]) == (100, 0)


def test_a_message_of_the_warm_up_that_arrives_after_it_is_warm_up():
    rows = [{"node": 0, "sender": 0, "counter": c, "flags": FLAG_WARM_UP * (c == 0)}
            for c in range(2)]  # fmt: skip
    rows += [{"node": 1, "sender": 0, "counter": 0, "end_ns": 9_000_000},
             {"node": 1, "sender": 0, "counter": 1, "end_ns": 2000}]  # fmt: skip
    assert latency(messages(rows))["latency_samples"] == 1


def test_a_duplicate_counts_once_with_its_first_arrival():
    twice = [{"node": 1, "sender": 0, "counter": 0, "end_ns": end_ns} for end_ns in (9000, 3000)]
    summary = latency(pl.concat([topic(2, [1]), messages(twice)]))
    assert summary["latency_samples"] == 2
    assert (summary["latency_p50_us"], summary["latency_p99_us"]) == (3.0, 5.0)


def calls_of(client, begins_ns, cold):
    """Return consecutive calls of one client. The first `cold` calls are warm-up."""
    return [{"node": client, "sender": client, "counter": c, "kind": "call", "begin_ns": begin_ns,
             "intended_ns": begin_ns, "end_ns": begin_ns + 90, "flags": FLAG_WARM_UP * (c < cold)}
            for c, begin_ns in enumerate(begins_ns)]  # fmt: skip


CALLERS = flows_of([node(0, "server"), node(1, "client"), node(2, "client")])


def test_in_closed_loop_costs_count_once_every_client_has_made_its_calls_of_warm_up():
    rows = calls_of(1, range(1000, 2000, 100), 3) + calls_of(2, range(1000, 3000, 200), 3)
    start_ns = delivery.cost_window_start_ns([messages(rows)], CALLERS, 1000, 0, closed=True)
    assert start_ns == 1600
    assert delivery.sent_within([messages(rows)], CALLERS, (start_ns, None)) == 4 + 7
    assert delivery.sent_within([messages(rows)], CALLERS, (start_ns, 1800)) == 2 + 1


def test_clients_at_work_are_those_between_their_first_and_last_counted_call():
    rows = calls_of(1, range(1000, 2000, 100), 3) + calls_of(2, range(1000, 3000, 200), 3)
    # Client 1 is active from 1600 to 1990 ns, client 2 from 1600 to 2890 ns: 390 + 1290 of 1290 ns.
    active = delivery.clients_active_mean([messages(rows)], CALLERS, (1600, None))
    assert active == pytest.approx((390 + 1290) / 1290)
    together = delivery.clients_active_mean([messages(rows)], CALLERS, (1600, 1900))
    assert together == pytest.approx((290 + 290) / 300, rel=0.04)
    assert delivery.clients_active_mean([messages(rows)], CALLERS, (9000, None)) is None


def test_a_client_that_never_left_its_warm_up_leaves_no_time_for_costs():
    rows = calls_of(1, range(1000, 2000, 100), 3) + calls_of(2, [1000, 4000], 9)
    assert delivery.cost_window_start_ns([messages(rows)], CALLERS, 1000, 0, closed=True) == 4090


def test_in_open_loop_costs_count_from_the_warm_ups_end_by_the_clock():
    rows = [{"node": 0, "sender": 0, "counter": c, "begin_ns": 1000 + 100 * c,
             "flags": FLAG_WARM_UP * (c < 3)} for c in range(10)]  # fmt: skip
    frame = messages(rows)
    assert delivery.cost_window_start_ns([frame], FLOWS, 1000, 250, closed=False) == 1250
    assert delivery.sent_within([frame], FLOWS, (1250, None)) == 7
    assert delivery.cost_window_start_ns([frame], FLOWS, 1000, 0, closed=False) == 1000


def quantities(points, quantity="cpu_time", scope="process", subject="publisher-0"):
    return pl.DataFrame(
        [{"run": "r", "host": "local", "scope": scope, "subject": subject, "meter": "m",
          "quantity": quantity, "unit": "ns", "kind": "measured", "t_ns": t, "value": v}
         for t, v in points]
    )  # fmt: skip


def test_a_counter_is_read_between_its_readings():
    readings = resources.Readings(quantities([(0, 0.0), (10, 100.0), (20, 100.0)]))
    assert readings.increase("cpu_time", "process", "publisher-0", 5, 15) == pytest.approx(50.0)
    assert readings.increase("cpu_time", "process", "nobody", 5, 15) is None


def test_what_a_process_used_to_start_is_not_in_an_interval_that_begins_with_its_first_reading():
    readings = resources.Readings(quantities([(101, 5000.0), (200, 5000.0), (300, 5100.0)]))
    assert readings.increase("cpu_time", "process", "publisher-0", 100, 200) == 0.0
    assert readings.increase("cpu_time", "process", "publisher-0", 100, 300) == 100.0


def test_a_total_with_an_unknown_part_is_unknown():
    assert resources.total([1.0, 2.0]) == 3.0
    assert resources.total([1.0, None]) is None
