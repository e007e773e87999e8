"""Test latencies from the due time, unsent messages and growing backlogs on planted records.

A sender offers 100 messages per second for two seconds, the first 0.2 s of which are warm-up.
"""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from wattwire.analysis import carried
from wattwire.model.deployment import deployment_of
from wattwire.model.derived import with_derived
from wattwire.model.latencies import latency_summary
from wattwire.model.ledger import deliveries
from wattwire.model.sample_codes import FLAG_TIMEOUT, FLAG_WARM_UP
from wattwire.model.treatment import Treatment
from wattwire.model.verdict import Outcome
from wattwire.run.results import delivery
from wattwire.run.results.saturation import Schedule, Waits, is_held_up
from wattwire.run.results.summary import Collected
from wattwire.store import Messages

MS = 1_000_000
PERIOD_NS, COUNT, START_NS, WARM_UP = 10 * MS, 200, 1000 * MS, 20
SPEC = {"period_ns": PERIOD_NS, "phase_ns": 0, "duration_ns": COUNT * PERIOD_NS,
        "warmup_ns": WARM_UP * PERIOD_NS}  # fmt: skip
SCHEDULE = Schedule.of(SPEC, START_NS)
SCHEMA = {"node": pl.UInt16, "sender": pl.UInt16, "counter": pl.UInt64, "kind": pl.String,
          "intended_ns": pl.Int64, "begin_ns": pl.Int64, "end_ns": pl.Int64, "flags": pl.UInt8,
          "bytes": pl.UInt32}  # fmt: skip
CELLS = ("publisher", "subscriber", "client", "server")
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}


def flows(pattern):
    treatment = Treatment.of({}, {"pattern": pattern, "clients": 1})
    return deployment_of(treatment, dict.fromkeys(CELLS, "loopback/python")).flows


def due_ns(counter):
    return START_NS + counter * PERIOD_NS


def calls(service_ns, count=COUNT):
    """Return the calls of a client that waits for each reply, which takes `service_ns(begin)`."""
    rows, free_ns = [], 0
    for n in range(count):
        begin_ns = max(due_ns(n), free_ns)
        free_ns = begin_ns + service_ns(begin_ns)
        flags = FLAG_WARM_UP * (n < WARM_UP)
        rows.append((1, 1, n, "call", due_ns(n), begin_ns, free_ns, flags, 64))
    return rows


def messages(delay_ns, lost=(), late_ns=0):
    """Return sent and received messages; `delay_ns` maps a counter to the time in transit."""
    rows = []
    for n in range(COUNT):
        begin_ns, flags = due_ns(n) + late_ns, FLAG_WARM_UP * (n < WARM_UP)
        rows.append((0, 0, n, "message", due_ns(n), begin_ns, begin_ns + 1, flags, 64))
        if n not in lost:
            end_ns = begin_ns + delay_ns(n)
            rows.append((1, 0, n, "message", None, begin_ns, end_ns, flags, 64))
    return rows


def tallied(pattern, rows):
    of = flows(pattern)
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    schedules = {of[0].sender: SCHEDULE}
    return delivery.tallied(Messages.of(frame), of, 0, PERIOD_NS, schedules=schedules)


def nearest_ranks(values):
    ordered = np.sort(values)
    ranks = {name: int(np.ceil(round(q * len(ordered), 9))) - 1 for name, q in QUANTILES.items()}
    return {name: ordered[rank] for name, rank in ranks.items()}


def frozen(begin_ns):
    """Return the service time (ns) of a server that freezes once, from 0.8 s to 1.2 s."""
    frozen_ns, thawed_ns = START_NS + 800 * MS, START_NS + 1200 * MS
    return MS + (thawed_ns - begin_ns if frozen_ns <= begin_ns < thawed_ns else 0)


def test_a_client_that_waited_for_a_frozen_server_cannot_hide_the_delay():
    rows = calls(frozen)
    counted = [row for row in rows if not row[7]]
    row = tallied("service", rows).latency
    from_due = nearest_ranks([(end - due) / 1000 for _, _, _, _, due, _, end, _, _ in counted])
    since = nearest_ranks([(end - begin) / 1000 for _, _, _, _, _, begin, end, _, _ in counted])
    assert {name: row[f"latency_{name}_us"] for name in QUANTILES} == from_due
    assert {name: row[f"since_send_{name}_us"] for name in QUANTILES} == since
    assert row["latency_p90_us"] > 100 * row["since_send_p90_us"]
    assert tallied("service", rows).backlogs == {}, "the client caught up"


def test_a_message_without_reply_counts_from_its_due_time():
    row = tallied("topic", messages(lambda n: 2 * MS, late_ns=3 * MS)).latency
    assert (row["latency_p50_us"], row["since_send_p50_us"]) == (5000, 2000)
    assert (row["latency_mean_us"], row["since_send_mean_us"]) == (5000, 2000)
    assert row["soft_deadline_missed_share"] == 1, "20 % of the period are 2 ms"


def test_a_message_that_a_native_timer_sent_early_counts_from_its_send_call():
    row = tallied("topic", messages(lambda n: MS, late_ns=-4 * MS)).latency
    assert row["latency_p50_us"] == row["since_send_p50_us"] == 1000


def test_both_latencies_of_a_closed_loop_are_equal():
    closed = [(*row[:4], row[5], *row[5:]) for row in calls(frozen)]
    frame = pl.DataFrame(closed, schema=SCHEMA, orient="row")
    row = latency_summary(deliveries(frame, flows("service")))
    assert row["latency_p99_us"] == row["since_send_p99_us"] > 0


def test_messages_that_were_due_and_never_sent_are_infinitely_late():
    result = tallied("service", calls(lambda _: MS, count=110))
    assert result.unsent == COUNT - 110
    assert result.latency["unsent_after_warmup"] == COUNT - 110
    assert result.latency["latency_p50_us"] == 1000, "90 of the 180 messages arrived"
    assert result.latency["latency_p90_us"] is None
    assert result.latency["since_send_p90_us"] == 1000
    summary = pl.DataFrame([{"sent": 110, **result.latency}])
    assert with_derived(summary)["latency_p90_us"].item() == np.inf


def test_a_sender_that_sent_only_its_warm_up_has_infinite_percentiles_not_zero_messages():
    result = tallied("service", calls(lambda _: MS, count=WARM_UP))
    summary = with_derived(pl.DataFrame([{"sent": WARM_UP, **result.latency}]))
    assert summary["latency_p50_us"].item() == summary["latency_p99_us"].item() == np.inf
    assert carried.why_not(summary, "latency_p50_us") is None


@pytest.mark.parametrize(
    ("pattern", "rows"),
    [
        ("service", calls(lambda _: 12 * MS)),  # a client that waits too long
        ("topic", messages(lambda n: 2 * MS * n)),  # a queue that grows
        ("topic", messages(lambda n: 2 * MS * n, lost=range(0, COUNT, 4))),
    ],
)
def test_a_backlog_that_grows_until_the_end_is_saturation(pattern, rows):
    result = tallied(pattern, rows)
    ((_, backlogs),) = result.backlogs.items()
    assert backlogs[0] < backlogs[1] < backlogs[2]
    assert result.latency["latency_growth_us_per_s"] == pytest.approx(2e5, rel=0.01)


@pytest.mark.parametrize(
    ("pattern", "rows"),
    [
        ("service", calls(lambda _: 9 * MS)),
        ("service", calls(frozen)),
        ("topic", messages(lambda n: 300 * MS)),  # a long link
        ("topic", messages(lambda n: MS, lost=range(0, COUNT, 3))),
        ("topic", messages(lambda n: 5 * MS + n * MS // 100)),  # 1 % slower per message
        ("topic", messages(lambda n: 200 * MS * (n > COUNT - 21))),  # a stall at the end
        # Stalls of 40 ms at three quarters, and of 80 ms at the end.
        ("topic", messages(lambda n: MS + 40 * MS * (n >= 150) + 40 * MS * (n >= 185))),
    ],
)
def test_a_load_below_the_capacity_is_not_saturation(pattern, rows):
    assert tallied(pattern, rows).backlogs == {}


def test_reordered_messages_are_counted_as_in_rfc_4737():
    held = messages(lambda n: MS + 15 * MS * (n % 10 == 9))
    assert tallied("topic", held).columns["reordered"] == COUNT // 10 - 1, "none follows the last"
    assert tallied("topic", messages(lambda n: MS)).columns["reordered"] == 0


def test_a_schedule_counts_the_messages_of_the_warm_up_by_their_due_time():
    late = Schedule.of({**SPEC, "phase_ns": 7 * MS, "warmup_ns": 27 * MS}, START_NS)
    assert (late.scheduled, late.warm_up) == (COUNT, 2), "due at 7, 17 and 27 ms"
    short = Schedule.of({**SPEC, "duration_ns": 7 * MS, "phase_ns": 7 * MS}, START_NS)
    assert (short.scheduled, short.warm_up) == (0, 0)


HELD_SPEC = {**SPEC, "timeout_ns": 1000 * MS, "outstanding_max": 1}


def held_calls(lost, service_ns=MS):
    """Return the calls of a sequential client that waits 1 s for each of the `lost` replies.

    Like a sender, it ends after the end of its schedule plus 0.5 s.
    """
    rows, free_ns = [], 0
    for n in range(COUNT):
        begin_ns = max(due_ns(n), free_ns)
        if begin_ns > due_ns(COUNT) + 500 * MS:
            break
        free_ns = begin_ns + (1000 * MS if n in lost else service_ns)
        end_ns, flags = (None, FLAG_TIMEOUT) if n in lost else (free_ns, 0)
        flags |= FLAG_WARM_UP * (n < WARM_UP)
        rows.append((1, 1, n, "call", due_ns(n), begin_ns, end_ns, flags, 64))
    return rows


def test_calls_without_a_reply_that_held_a_sender_are_not_a_load_above_the_capacity():
    rows = held_calls({50, 60})
    result = tallied("service", rows)
    assert result.unsent == COUNT - 61
    waits = result.waits[1]
    assert (waits.sent, waits.timed_out) == (61, 2)
    assert is_held_up(HELD_SPEC, waits, result.unsent)
    assert result.latency["latency_p99_us"] is None, "an upper limit is still broken"


def test_a_sender_that_could_not_keep_up_anyway_is_saturated():
    slow = tallied("service", held_calls({50, 60}, service_ns=12 * MS))
    assert not is_held_up(HELD_SPEC, slow.waits[1], slow.unsent), "a reply takes 12 of 10 ms"
    none_lost = tallied("service", calls(lambda _: MS, count=110))
    assert not is_held_up(HELD_SPEC, none_lost.waits[1], none_lost.unsent)
    few = tallied("service", held_calls({50}))
    assert not is_held_up(HELD_SPEC, few.waits[1], late=101), "one call explains 100 messages"


@pytest.mark.parametrize(
    ("sent", "effect"),
    [(161, "so it sent 161 of 200 scheduled messages"), (200, "so its later messages were late")],
)
def test_a_held_sender_that_sent_all_messages_was_only_late(sent, effect):
    node = SimpleNamespace(node=1, process="client-0", sends=True, spec=HELD_SPEC)
    run = Collected.__new__(Collected)
    run.record = SimpleNamespace(
        outcome=Outcome.COMPLETED, window={"start_ns": START_NS}, nodes=[node],
        deployment=SimpleNamespace(flow_names={}),
        state_of=lambda _: SimpleNamespace(lines={}),
    )  # fmt: skip
    run.attempt = SimpleNamespace(planned=SimpleNamespace(treatment={"loop": "open"}))
    run._without_records, run._backlogs = [], {1: (0, 20, 39)}
    run._waits = {1: Waits(sent=sent, answered=sent - 1, answered_ns=sent * MS, timed_out=1)}
    assert run._held_up().endswith(effect)


@pytest.mark.parametrize(
    ("outcome", "window", "without_records", "senders"),
    [
        (Outcome.DIED, {"start_ns": START_NS}, [], [1]),
        (Outcome.DIED, {}, [], []),
        (Outcome.DIED, {"start_ns": START_NS}, [1], []),
        (Outcome.HELD_UP, {"start_ns": START_NS}, [], [1]),
    ],
)
def test_messages_that_were_due_after_a_server_died_are_unsent(
    outcome, window, without_records, senders
):
    node = SimpleNamespace(node=1, sends=True, spec=SPEC)
    run = Collected.__new__(Collected)
    run.record = SimpleNamespace(outcome=outcome, window=window, nodes=[node])
    run.attempt = SimpleNamespace(planned=SimpleNamespace(treatment={"loop": "open"}))
    run._without_records = without_records
    assert list(run._schedules()) == senders


@pytest.mark.parametrize("outcome", [Outcome.HELD_UP, Outcome.DIED, Outcome.SATURATED])
def test_unsent_messages_of_a_flow_saturate_it_only_without_another_cause(outcome):
    row = {"outcome": outcome.value, "unsent_after_warmup.flow.control": 3}
    saturated = carried.saturated(pl.DataFrame([row]), "latency_p50_us.flow.control")
    assert saturated.tolist() == [outcome is Outcome.SATURATED]
