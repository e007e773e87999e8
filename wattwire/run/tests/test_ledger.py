"""Compare the ledger of 10,000 random runs with fates that plain loops decide, row by row."""

import math
from collections import Counter, defaultdict
from itertools import pairwise
from types import SimpleNamespace

import polars as pl
import pytest

from wattwire.model.deployment import RELAYED, Flow
from wattwire.model.ledger import GAPS, MISSING, Drain, Fate, FateCounts, announced, ledger
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED, FLAG_TIMEOUT
from wattwire.model.verdict import Outcome
from wattwire.run.results import delivery
from wattwire.run.results.flows import FlowFacts, FlowTallies
from wattwire.run.results.summary import Collected
from wattwire.run.results.throughput import ThroughputTally
from wattwire.run.tests.random_runs import SCHEMA, random_run
from wattwire.store import Messages
from wattwire.store import messages as parts_of_runs

RUNS_OF_TIERS = (500, 2_000, 10_000)
"""Number of runs until the end of the tiers test, full and all."""
SPAN_NS = (2_000_000, 25_000_000)


class PlainFates:
    """Fate, hop and latency (ns) of each delivery of a run, by receiver, sender and counter.

    The latency is None for an arrival without a latency, and infinite for a missing message.
    """

    def __init__(self, run):
        self.run, self.fates, self.duplicates = run, {}, Counter()
        self.throughput = 0
        """Number of sound first arrivals in SPAN_NS."""
        self.times_ns = defaultdict(lambda: defaultdict(list))
        """Node → counter → times of the arrivals of sent messages."""
        self.queued = defaultdict(list)
        """Node → deliveries that did not reach it, after the last message that did."""
        records = run.records.to_dicts()
        for flow in run.flows:
            own = [row for row in records if row["sender"] == flow.sender]
            (self.calls if flow.result else self.messages)(flow, own)
        for node, keys in list(self.queued.items()):
            if self.was_receiving(node):
                for key in keys:
                    self.fates[key] = Fate.UNDELIVERED, *self.fates[key][1:]

    def add_arrival(self, key, due_ns, row):
        """Add a delivery that arrived; `row` is its record, and `due_ns` is None if unknown."""
        fate = Fate.LATE if row["end_ns"] > self.run.late_after_ns else Fate.ARRIVED
        if due_ns is None:
            fate, due_ns = Fate.UNKNOWN, row["begin_ns"]
        is_corrupt, latency_ns = bool(row["flags"] & FLAG_CORRUPT), None
        if row["begin_ns"] is not None and not is_corrupt:
            latency_ns = row["end_ns"] - min(due_ns, row["begin_ns"])
        self.fates[key] = fate, 0, latency_ns
        self.throughput += not is_corrupt and SPAN_NS[0] <= row["end_ns"] < SPAN_NS[1]

    def calls(self, flow, own):
        own = [row for row in own if row["node"] == flow.sender]
        results = {row["counter"]: row for row in own if row["kind"] == flow.result}
        for counter in {row["counter"] for row in own}:
            key, row = (flow.sender, flow.sender, counter), results.get(counter)
            if row is None or row["flags"] & FLAG_TIMEOUT:
                self.fates[key] = Fate.LOST, 0, math.inf
            elif row["flags"] & FLAG_FAILED:
                self.fates[key] = Fate.FAILED, 0, math.inf
            else:
                self.add_arrival(key, row["intended_ns"], row)

    def messages(self, flow, own):
        at_sender = [row for row in own if row["node"] == flow.sender]
        due_ns = {row["counter"]: row["intended_ns"] for row in at_sender
                  if not row["flags"] & FLAG_FAILED}  # fmt: skip
        arrivals = defaultdict(list)
        for row in own:
            node, counter = row["node"], row["counter"]
            if node in flow.receivers:
                arrivals[node, counter].append(row)
            if node != flow.sender and counter in due_ns:
                name = "intended_ns" if row["kind"] == RELAYED else "end_ns"
                self.times_ns[node][counter].append(row[name])
        for (node, counter), rows in arrivals.items():
            first = min(rows, key=lambda row: row["end_ns"])  # the first record of equal times
            if not at_sender:
                self.add_arrival((node, flow.sender, counter), None, first)
            elif counter in due_ns:
                self.duplicates[node, flow.sender] += len(rows) - 1
                self.add_arrival((node, flow.sender, counter), due_ns[counter], first)
        for hop, stops in enumerate([*([relay] for relay in flow.relays), flow.receivers], 1):
            for stop in stops:
                self.missing(flow, hop, stop, {*due_ns})

    def missing(self, flow, hop, stop, sent):
        """Add the messages that passed all nodes before `stop`, but neither it nor a later one."""
        later = [stop] if stop in flow.receivers else [*flow.relays[hop - 1 :], *flow.receivers]
        passed = {counter for node in later for counter in self.times_ns[node]}
        for counter in sorted(sent - passed):
            for receiver in [stop] if stop in flow.receivers else flow.receivers:
                key = receiver, flow.sender, counter
                if key not in self.fates:
                    self.fates[key] = Fate.LOST, hop, math.inf
                    if counter > max(passed, default=-1):
                        self.queued[stop].append(key)

    def was_receiving(self, node):
        drain, run = self.run.drain, self.run
        if drain is None or node in run.unrecorded:
            return False
        times_ns = sorted(min(times_ns) for times_ns in self.times_ns[node].values())
        if not times_ns:
            (flow,) = (flow for flow in run.flows if node in flow.nodes)
            before = flow.relays[: flow.relays.index(node)] if node in flow.relays else flow.relays
            return any(self.queued[relay] and self.was_receiving(relay) for relay in before)
        if drain.end_ns is None or len(times_ns) == 1:
            return times_ns[-1] > drain.until_ns
        gaps_ns = [after - before for before, after in pairwise(times_ns)]
        silent_ns = GAPS * sum(gaps_ns) / len(gaps_ns)
        return times_ns[-1] > max(drain.until_ns, drain.end_ns - silent_ns)


def check(seed):
    """Compare the ledger of a random run with the plain loops, and check its sums."""
    run = random_run(seed)
    messages, plain = Messages.of(run.records, run.part_records), PlainFates(run)
    senders, counts = announced(messages.origins, run.flows), FateCounts()
    facts = run.late_after_ns, run.drain, run.unrecorded
    fates, duplicates, rates = {}, Counter(), ThroughputTally(run.flows, SPAN_NS)
    for part in ledger(messages.parts(), run.flows, senders, *facts):
        counts.add(part.deliveries)
        rates.add(part.deliveries)
        columns = ("node", "sender", "counter", "fate", "hop", "latency_us")
        for *key, fate, hop, latency_us in part.deliveries.select(columns).iter_rows():
            assert (latency_us == math.inf) == (fate in MISSING)
            is_finite = latency_us is not None and math.isfinite(latency_us)
            latency_ns = round(latency_us * 1000) if is_finite else latency_us
            if fate == Fate.DUPLICATE:
                assert latency_us is None
                duplicates[key[0], key[1]] += 1
            else:
                assert tuple(key) not in fates
                fates[tuple(key)] = fate, hop, latency_ns
    assert fates == plain.fates
    assert duplicates == plain.duplicates
    assert rates.messages == plain.throughput

    row = delivery.count_summary(counts, run.flows)
    received, failed, lost = (row[name] for name in ("received_unique", "failed", "lost"))
    assert received + failed + lost + counts.of(Fate.UNDELIVERED) == row["expected"]
    at_hops = sum(counts.of(Fate.LOST, hop=hop) for hop in range(1, 6))
    timed_out = sum(counts.of(Fate.LOST, sender=flow.sender) for flow in run.flows if flow.result)
    assert at_hops + timed_out == lost


@pytest.mark.parametrize(
    "seeds",
    [
        range(RUNS_OF_TIERS[0]),
        pytest.param(range(*RUNS_OF_TIERS[:2]), marks=pytest.mark.slow),
        pytest.param(range(*RUNS_OF_TIERS[1:]), marks=[pytest.mark.slow, pytest.mark.matrix]),
    ],
    ids=["few", "many", "all"],
)
def test_the_ledger_has_the_fates_that_plain_loops_decide_and_its_sums_hold(seeds, monkeypatch):
    monkeypatch.setattr(parts_of_runs, "COUNTERS_PER_BUCKET", 4)
    for seed in seeds:
        try:
            check(seed)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


# -- cases in which the functions that the ledger replaced contradicted each other --------------

FLOW, CALLS = Flow("f", 0, (1,)), Flow("c", 0, (1,), result="result")
SENT = (0, 0, 0, "message", 0, 0, 9, 64, 0)
GOAL, RESULT = (0, 0, 0, "goal", 0, 0, 9, 64, 0), (0, 0, 0, "result", 0, 0, 500, 64, 0)


def arrival(end_ns, flags=0, begin_ns=0, counter=0):
    return (1, 0, counter, "message", None, begin_ns, end_ns, 64, flags)


def tallied(rows, flow=FLOW, late_after_ns=10**9):
    """Return the counts, the latencies and the deliveries per second in one microsecond."""
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    span_ns = (0, 1000)
    of_flows = FlowTallies([FlowFacts(flow, 0, span_ns)])
    result = delivery.tallied(
        Messages.of(frame), [flow], late_after_ns, further=[of_flows], rates_span_ns=span_ns
    )
    of_flow = of_flows.summary((), None)[f"throughput_bytes_per_s.flow.{flow.name}"]
    assert of_flow == result.columns["throughput_bytes_per_s"]
    return result.counts, result.latency, result.columns["rate_hz_delivered"] / 1e6


def test_a_payload_that_is_too_short_for_a_send_time_arrived_but_has_no_latency():
    counts, latency, rate = tallied([SENT, arrival(500, begin_ns=None)])
    assert (counts["received_unique"], latency["latency_samples"], rate) == (1, 0, 1)


def test_a_sound_repeat_of_a_corrupt_arrival_is_a_duplicate():
    counts, latency, rate = tallied([SENT, arrival(500, FLAG_CORRUPT), arrival(600)])
    assert (counts["received_unique"], counts["duplicates"]) == (1, 1)
    assert (latency["latency_samples"], rate) == (0, 0)


@pytest.mark.parametrize("flags", [(FLAG_CORRUPT, 0), (0, FLAG_CORRUPT)])
def test_of_two_arrivals_at_the_same_time_the_first_record_counts(flags):
    _, latency, rate = tallied([SENT, *(arrival(500, of_one) for of_one in flags)])
    assert latency["latency_samples"] == rate == (0 if flags[0] else 1)


def test_repeats_of_a_message_that_nobody_sent_count_nowhere():
    unsent = [arrival(500, counter=7), arrival(600, counter=7)]
    counts, _, rate = tallied([SENT, arrival(400), *unsent])
    assert (counts["expected"], counts["received_unique"], counts["duplicates"]) == (1, 1, 0)
    assert rate == 1


def test_an_arrival_whose_sender_left_no_records_is_not_late():
    counts, latency, rate = tallied([arrival(500), arrival(600)], late_after_ns=100)
    assert (counts["expected"], counts["late"], counts["duplicates"]) == (0, 0, 0)
    assert (latency["expected_after_warmup"], latency["latency_samples"], rate) == (1, 1, 1)


def test_a_goal_without_a_result_is_lost_and_expected():
    counts, latency, _ = tallied([GOAL], CALLS)
    assert (counts["sent"], counts["expected"], counts["lost"]) == (1, 1, 1)
    assert (latency["expected_after_warmup"], latency["lost_after_warmup"]) == (1, 1)


@pytest.mark.parametrize(
    ("rows", "codes"), [([GOAL, RESULT], []), ([RESULT], []), ([GOAL], ["sums"])]
)
def test_a_run_without_a_record_of_each_call_that_a_client_reported_is_invalid(rows, codes):
    """The client reports one call (C-14), so one call must have a record of its end (C-12)."""
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    tally = delivery.tallied(Messages.of(frame), [CALLS], 10**9)
    run = Collected.__new__(Collected)
    states = {"client-0": SimpleNamespace(lines={"SENT": {"sent": 1}})}
    run.record = SimpleNamespace(outcome=Outcome.COMPLETED, window={}, nodes=[],
                                 processes=SimpleNamespace(states=states))  # fmt: skip
    run.attempt = SimpleNamespace(planned=SimpleNamespace(control=""))
    run.messages, run.row = Messages.of(frame), tally.counts
    run._without_records, run._goals_without_result = [], tally.goals_without_result
    assert [reason.code for reason in run._check_sums([{"recorded": len(rows)}])] == codes


def test_a_call_that_failed_late_is_failed_only():
    failed = (0, 0, 0, "result", 0, 0, 500, 64, FLAG_FAILED)
    counts, _, rate = tallied([failed], CALLS, late_after_ns=100)
    assert (counts["failed"], counts["late"], counts["received_unique"], rate) == (1, 0, 0, 0)


def test_the_messages_that_a_node_sends_are_no_arrivals_at_it():
    """Node 1 receives no message of flow f, and sends flow g until the end."""
    sent = [(node, node, 0, "message", 500, 500, 509, 64, 0) for node in (0, 1)]
    at_other = (0, 1, 0, "message", None, 500, 900, 64, 0)
    frame = pl.DataFrame([*sent, at_other], schema=SCHEMA, orient="row")
    flows = [FLOW, Flow("g", 1, (0,))]
    counts = delivery.tallied(Messages.of(frame), flows, 10**9, drain=Drain(0)).counts
    assert (counts["received_unique"], counts["lost"], counts["undelivered"]) == (1, 1, 0)
