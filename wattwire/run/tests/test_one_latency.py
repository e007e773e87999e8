"""Test that the summary's latency equals the page's latency for arbitrary records."""

import math
import random

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.latency import series_of
from wattwire.model.hosts.clocks import ClockRelation, Knot, clocks_of_run
from wattwire.model.latencies import LATENCY_QUANTILES, latency_summary
from wattwire.model.ledger import deliveries
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED, FLAG_TIMEOUT, FLAG_WARM_UP
from wattwire.model.tests.deployments import deployment_of_nodes, run_of_nodes
from wattwire.run.node_specs import RunNode
from wattwire.run.results import delivery
from wattwire.run.results.convert import MESSAGE_SCHEMA
from wattwire.stats import nearest_rank
from wattwire.store import Messages

PAIRS = {
    "topic": ("publisher", "subscriber"),
    "service": ("server", "client"),
    "pingpong": ("pong", "ping"),
    "action": ("action_server", "action_client"),
}

LATE_NS = 60_000_000


def node(number, role):
    index = max(0, number - 1)
    return RunNode(number, f"{role}-{index}", role, index, 0, "x/y", None, {})


def flows_of(nodes):
    """Return the flows that follow from the roles of the nodes."""
    return deployment_of_nodes([{"node": n.node, "role": n.role} for n in nodes]).flows


def frame(rows):
    defaults = {"run": "r", "flow": "f", "host": "local", "peer": None, "hop": 0, "bytes": 64,
                "intended_ns": None, "flags": 0}  # fmt: skip
    return pl.DataFrame([{**defaults, **row} for row in rows], schema=MESSAGE_SCHEMA)


def sent_and_received(seed, pattern, count=120, nodes_beside=2):
    """Return nodes and records that contain every possible event, such as losses and duplicates."""
    roll = random.Random(seed)
    hub, leaf = PAIRS[pattern]
    nodes = [node(0, hub)] + [node(n, leaf) for n in range(1, 1 + nodes_beside)]
    rows = []
    senders = [0] if pattern == "topic" else [n.node for n in nodes[1:]]
    warm_up = roll.choice([0, 7, 30])
    for sender in senders:
        for counter in range(count):
            begin_ns = 1_000_000 * counter
            flags = FLAG_WARM_UP if counter < warm_up else 0
            one = {"node": sender, "sender": sender, "counter": counter, "begin_ns": begin_ns,
                   "intended_ns": begin_ns - roll.choice([0, 0, 70_000, 3_000_000]),
                   "end_ns": begin_ns + 10, "flags": flags}  # fmt: skip
            if pattern == "topic":
                failed = roll.random() < 0.03
                rows.append({**one, "kind": "message", "flags": flags | FLAG_FAILED * failed})
                for receiver in nodes[1:]:
                    rows += arrivals(roll, one, receiver.node, warm_up)
            else:
                rows += call(roll, one, "result" if pattern == "action" else "call")
    return nodes, frame(rows)


def arrivals(roll, sent, receiver, warm_up):
    copies = roll.choice([0, 1, 1, 1, 1, 1, 1, 2, 3])
    late_ns = 40_000_000 if roll.random() < 0.1 else 0  # arrives after the warm-up
    for copy in range(copies):
        end_ns = sent["begin_ns"] + roll.randrange(1000, 900_000) + late_ns + copy * 5_000_000
        yield {**sent, "node": receiver, "kind": "message", "intended_ns": None,
               "begin_ns": None if roll.random() < 0.02 else sent["begin_ns"], "end_ns": end_ns,
               "flags": (FLAG_WARM_UP if end_ns < 1_000_000 * warm_up else 0)
               | (FLAG_CORRUPT if roll.random() < 0.03 else 0)}  # fmt: skip


def call(roll, sent, kind):
    if kind == "result":
        yield {**sent, "kind": "goal"}
        yield {**sent, "kind": "feedback", "intended_ns": None, "end_ns": sent["begin_ns"] + 40}
    end_ns, fate = sent["begin_ns"] + roll.randrange(1000, 900_000), roll.random()
    flags = FLAG_CORRUPT if fate < 0.03 else FLAG_FAILED if fate < 0.06 else 0
    if fate > 0.9:
        yield {**sent, "kind": kind, "end_ns": None, "flags": sent["flags"] | FLAG_TIMEOUT}
        return
    yield {**sent, "kind": kind, "end_ns": end_ns, "flags": sent["flags"] | flags}


@pytest.mark.parametrize("pattern", PAIRS)
@pytest.mark.parametrize("seed", range(12))
def test_the_summary_and_the_curves_have_the_same_latencies_and_losses(pattern, seed):
    nodes, messages = sent_and_received(seed, pattern)
    counts = delivery.tallied(Messages.of(messages), flows_of(nodes), LATE_NS).counts
    unanswered = counts["failed"] + counts["lost"]
    document = run_of_nodes({n.node: n.role for n in nodes})
    series = series_of(Messages.of(messages), document, unanswered)
    summary = latency_summary(deliveries(messages, flows_of(nodes)))
    values = np.sort(series.values_us)

    assert series.loose == 0
    assert summary["latency_samples"] == np.isfinite(values).sum()
    infinite = summary["failed_after_warmup"] + summary["lost_after_warmup"]
    assert infinite == np.isinf(values).sum()
    for name, share in LATENCY_QUANTILES.items():
        told = summary[f"latency_{name}_us"]
        assert (math.inf if told is None else told) == nearest_rank(values, share)


@pytest.mark.parametrize("pattern", PAIRS)
@pytest.mark.parametrize("seed", range(4))
def test_all_losses_and_failures_counted_are_infinite_in_the_whole_windows_series(pattern, seed):
    nodes, messages = sent_and_received(seed, pattern)
    counts = delivery.tallied(Messages.of(messages), flows_of(nodes), LATE_NS).counts
    lost = counts["failed"] + counts["lost"]
    rows = deliveries(messages, flows_of(nodes))
    assert lost > 0
    assert rows["latency_us"].is_infinite().sum() == lost
    assert len(rows) == counts["expected"] + counts["duplicates"]


@pytest.mark.parametrize("pattern", PAIRS)
@pytest.mark.parametrize("seed", range(4))
def test_latencies_do_not_depend_on_the_clocks_of_the_hosts(pattern, seed):
    nodes, messages = sent_and_received(seed, pattern)
    document, far = on_two_hosts(nodes, pattern)
    shift_ns = pl.lit(far.offset_ns(0))
    own = {name: pl.col(name) + shift_ns for name in ("intended_ns", "begin_ns", "end_ns")}
    is_far = pl.col("node") == (1 if pattern == "topic" else 0)
    is_carried = (pl.col("kind") == "message") & (pl.col("sender") != pl.col("node"))
    moved = messages.with_columns(
        pl.when(is_far & ~is_carried if name == "begin_ns" else is_far).then(time).otherwise(name)
        for name, time in own.items()
    )  # fmt: skip

    clocks = clocks_of_run(document)
    flows = flows_of(nodes)
    tallied = delivery.tallied(Messages.of(moved).on_one_clock(clocks), flows, LATE_NS)
    assert tallied == delivery.tallied(Messages.of(messages), flows, LATE_NS)
    series = series_of(Messages.of(moved), document, 0)
    assert np.array_equal(
        series.values_us, series_of(Messages.of(messages), {**document, "hosts": {}}, 0).values_us
    )
    if pattern == "topic":
        uncorrected = series_of(Messages.of(moved), {**document, "hosts": {}}, 0)
        assert not np.array_equal(uncorrected.values_us, series.values_us)


def on_two_hosts(nodes, pattern):
    """Return the document of a run whose last receiver is on a host with another clock."""
    far = ClockRelation("far", (Knot(0, 1_000 * 10**9, 70_000),))
    hosts = {"local": ClockRelation("near"), "edge": far}
    entries = [{"node": n.node, "role": n.role, "process": f"node-{n.node}"} for n in nodes]
    deployment = deployment_of_nodes(entries).to_json()
    deployment["hosts"] = tuple(hosts)
    deployment["processes"][1 if pattern == "topic" else 0]["host"] = "edge"
    stored = {name: {"clock": relation.to_json()} for name, relation in hosts.items()}
    return {"nodes": entries, "deployment": deployment, "hosts": stored}, far
