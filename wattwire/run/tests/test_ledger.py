"""Compare the ledger of 10,000 random runs with fates that plain loops decide, row by row."""

import math
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from wattwire.model.deployment import RELAYED
from wattwire.model.ledger import GAPS, MISSING, Fate, FateCounts, announced, ledger
from wattwire.model.sample_codes import FLAG_FAILED, FLAG_TIMEOUT
from wattwire.run.results import delivery
from wattwire.run.tests.random_runs import random_run
from wattwire.store import Messages
from wattwire.store import messages as parts_of_runs

RUNS, FIRST_RUNS = 10_000, 500


class PlainFates:
    """The fate and the hop of each delivery of a run, by receiver, sender and counter."""

    def __init__(self, run):
        self.run, self.fates, self.duplicates = run, {}, Counter()
        self.times_ns = defaultdict(lambda: defaultdict(list))
        """Node → counter → times of the arrivals of sent messages."""
        self.queued = defaultdict(list)
        """Node → deliveries that did not reach it, after the last message that did."""
        records = run.records.to_dicts()
        for flow in run.flows:
            own = [row for row in records if row["sender"] == flow.sender]
            (self.calls if flow.result else self.messages)(flow, own)
        for node, deliveries in list(self.queued.items()):
            if self.was_receiving(node):
                for delivery_ in deliveries:
                    self.fates[delivery_] = Fate.UNDELIVERED, self.fates[delivery_][1]

    def arrival(self, end_ns):
        return (Fate.LATE if end_ns > self.run.late_after_ns else Fate.ARRIVED), 0

    def calls(self, flow, own):
        for row in own:
            if row["node"] == flow.sender and row["kind"] == flow.result:
                key = flow.sender, flow.sender, row["counter"]
                if row["flags"] & FLAG_FAILED:
                    self.fates[key] = Fate.FAILED, 0
                elif row["flags"] & FLAG_TIMEOUT:
                    self.fates[key] = Fate.LOST, 0
                else:
                    self.fates[key] = self.arrival(row["end_ns"])

    def messages(self, flow, own):
        at_sender = [row for row in own if row["node"] == flow.sender]
        sent = {row["counter"] for row in at_sender if not row["flags"] & FLAG_FAILED}
        ends_ns = defaultdict(list)
        for row in own:
            node, counter = row["node"], row["counter"]
            if node in flow.receivers:
                ends_ns[node, counter].append(row["end_ns"])
            if node != flow.sender and counter in sent:
                name = "intended_ns" if row["kind"] == RELAYED else "end_ns"
                self.times_ns[node][counter].append(row[name])
        for (node, counter), times_ns in ends_ns.items():
            if not at_sender:
                self.fates[node, flow.sender, counter] = Fate.UNKNOWN, 0
            elif counter in sent:
                self.duplicates[node, flow.sender] += len(times_ns) - 1
                self.fates[node, flow.sender, counter] = self.arrival(min(times_ns))
        for hop, stops in enumerate([*([relay] for relay in flow.relays), flow.receivers], 1):
            for stop in stops:
                self.missing(flow, hop, stop, sent)

    def missing(self, flow, hop, stop, sent):
        """Add the messages that passed all nodes before `stop`, but neither it nor a later one."""
        later = [stop] if stop in flow.receivers else [*flow.relays[hop - 1 :], *flow.receivers]
        passed = {counter for node in later for counter in self.times_ns[node]}
        for counter in sorted(sent - passed):
            for receiver in [stop] if stop in flow.receivers else flow.receivers:
                key = receiver, flow.sender, counter
                if key not in self.fates:
                    self.fates[key] = Fate.LOST, hop
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


@pytest.mark.parametrize(
    "seeds",
    [range(FIRST_RUNS), pytest.param(range(FIRST_RUNS, RUNS), marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_the_ledger_has_the_fates_that_plain_loops_decide_and_its_sums_hold(seeds, monkeypatch):
    monkeypatch.setattr(parts_of_runs, "COUNTERS_PER_BUCKET", 4)
    for seed in seeds:
        run = random_run(seed)
        messages, plain = Messages.of(run.records, run.part_records), PlainFates(run)
        senders, counts = announced(messages.origins, run.flows), FateCounts()
        facts = run.late_after_ns, run.drain, run.unrecorded
        fates, duplicates = {}, Counter()
        for part in ledger(messages.parts(), run.flows, senders, *facts):
            counts.add(part.deliveries)
            columns = ("node", "sender", "counter", "fate", "hop", "latency_us")
            for *key, fate, hop, latency_us in part.deliveries[columns].iter_rows():
                assert (latency_us == math.inf) == (fate in MISSING), seed
                if fate == Fate.DUPLICATE:
                    duplicates[key[0], key[1]] += 1
                else:
                    assert tuple(key) not in fates, seed
                    fates[tuple(key)] = fate, hop
        assert fates == plain.fates, seed
        assert duplicates == plain.duplicates, seed

        row = delivery.count_summary(counts, run.flows)
        received, failed, lost = (row[name] for name in ("received_unique", "failed", "lost"))
        undelivered = counts.of(Fate.UNDELIVERED)
        assert received + failed + lost + undelivered == row["expected"], seed
        at_hops = sum(counts.of(Fate.LOST, hop=hop) for hop in range(1, 6))
        timed_out = sum(
            counts.of(Fate.LOST, sender=flow.sender) for flow in run.flows if flow.result
        )
        assert at_hops + timed_out == lost, seed
