"""Test that a run processed in parts gives bit-identical results to a run processed at once."""

import random
import struct
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from wattwire.analysis.latency import series_of
from wattwire.model import records
from wattwire.model.latencies import latency_summary
from wattwire.model.ledger import Drain, deliveries
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_TIMEOUT, FLAG_WARM_UP, UNKNOWN_NS
from wattwire.model.tests.deployments import deployment_of_nodes, run_of_nodes
from wattwire.run.results import convert, delivery, node_checks
from wattwire.run.tests.test_one_latency import PAIRS, flows_of, node, sent_and_received
from wattwire.store import Messages
from wattwire.store import messages as parts_of_runs

LATE_NS = 60_000_000
SPEC = {"payload.encoding": "binary", "payload.literal": "", "payload.bytes": 64, "reply": "echo",
        "payload.seed": 7, "record.capacity": 1000}  # fmt: skip


def adversarial(seed, pattern):
    """Return records in the order of a run table, with equal times and some unsent counters."""
    nodes, messages = sent_and_received(seed, pattern, count=90, nodes_beside=3)
    roll = random.Random(seed)
    # Records of several senders have equal times, so only the order of identities separates them.
    ties = pl.col("begin_ns") - pl.col("begin_ns") % roll.choice([1, 3_000_000, 50_000_000])
    some = messages[roll.sample(range(len(messages)), 12)]
    far = [roll.choice([5, 2**20 + 7, 2**47 + roll.randrange(9)]) for _ in range(12)]
    garbage = some.with_columns(
        counter=pl.Series(far, dtype=pl.UInt64), flags=pl.lit(FLAG_CORRUPT, pl.UInt8),
        begin_ns=pl.lit(None, pl.Int64),
    )  # fmt: skip
    late = garbage if pattern == "topic" else garbage.clear()
    late = late.filter(pl.col("node") != 0)  # only arrivals: senders know their messages
    every = pl.concat([messages.with_columns(begin_ns=ties), some, late])
    return nodes, every.sort("node", "end_ns", "counter", nulls_last=True)


def reordered_in(expected):
    """Return the messages that arrive after a later message of the same stream (RFC 4737)."""
    streams = {}
    for row in expected.filter(pl.col("end_ns").is_not_null()).iter_rows(named=True):
        streams.setdefault((row["sender"], row["node"]), []).append((row["counter"], row["end_ns"]))
    return sum(
        any(other > counter and other_ns < end_ns for other, other_ns in stream)
        for stream in streams.values()
        for counter, end_ns in stream
    )


@pytest.mark.parametrize("pattern", PAIRS)
@pytest.mark.parametrize("seed", range(8))
def test_counts_latencies_and_their_order_do_not_depend_on_the_parts(monkeypatch, pattern, seed):
    monkeypatch.setattr(parts_of_runs, "COUNTERS_PER_BUCKET", 4)
    nodes, frame = adversarial(seed, pattern)
    whole, cut = Messages.of(frame), Messages.of(frame, part_records=50)
    assert len(list(whole.parts())) == 1 < len(list(cut.parts()))
    assert sum(len(part) for part in cut.parts()) == len(frame) == cut.count

    flows = flows_of(nodes)
    expected = deliveries(frame, flows)
    for drain in (Drain(0), None):  # every receiver was still receiving, or no receiver was
        tallied = delivery.tallied(cut, flows, LATE_NS, drain=drain)
        assert tallied == delivery.tallied(whole, flows, LATE_NS, drain=drain)
    if not flows[0].result:
        assert tallied.columns["reordered"] == reordered_in(expected)
    after_warmup = {} if flows[0].result else {"undelivered_after_warmup": 0}
    assert tallied.latency == {**latency_summary(expected), **after_warmup}
    for closed in (False, True):
        window = (flows, 0, 7_000_000, closed)
        start_ns = delivery.cost_window_start_ns([frame], *window)
        assert delivery.cost_window_start_ns(cut.parts(), *window) == start_ns
        sent = delivery.sent_within([frame], flows, (start_ns, None))
        assert delivery.sent_within(cut.parts(), flows, (start_ns, None)) == sent

    document = run_of_nodes({n.node: n.role for n in nodes})
    for with_warm_up in (False, True):
        lost = tallied.counts["lost"] + tallied.counts["failed"] + 3
        found = series_of(cut, document, lost, with_warm_up)
        known = expected if with_warm_up else expected.filter(~pl.col("warm_up"))
        in_order = known["latency_us"].drop_nulls().to_numpy()
        assert found.loose == 3
        np.testing.assert_array_equal(found.values_us[:-3], in_order)
        warm_up = expected.clear() if with_warm_up else expected.filter("warm_up")
        warm_up_us = warm_up["latency_us"].drop_nulls().to_numpy()
        np.testing.assert_array_equal(np.sort(found.warm_up_us), np.sort(warm_up_us))


def test_a_publishers_records_in_another_part_still_count_as_its_own(monkeypatch):
    """An arrival with an unsent counter is not expected if its publisher left any record."""
    monkeypatch.setattr(parts_of_runs, "COUNTERS_PER_BUCKET", 1)
    base = {"sender": 0, "kind": "message", "begin_ns": 5, "end_ns": 9, "flags": 0}
    rows = [{**base, "node": n, "counter": c} for n in (0, 1) for c in range(3)]
    rows.append({**base, "node": 1, "counter": 99, "flags": FLAG_CORRUPT})
    frame = pl.DataFrame([{**row, "intended_ns": None} for row in rows])
    run = run_of_nodes({0: "publisher", 1: "subscriber"})
    cut = Messages.of(frame, part_records=1)
    assert len(list(cut.parts())) == 4
    flows = flows_of([node(0, "publisher"), node(1, "subscriber")])
    for messages in (cut, Messages.of(frame)):
        assert series_of(messages, run, 0).values_us.size == 3
        assert delivery.tallied(messages, flows, 0).latency["expected_after_warmup"] == 3


def test_what_is_due_at_the_same_time_is_ordered_by_who_sent_it_whatever_its_part(monkeypatch):
    monkeypatch.setattr(parts_of_runs, "COUNTERS_PER_BUCKET", 1)
    run = run_of_nodes({0: "publisher", 1: "subscriber", 2: "publisher"})
    base = {"kind": "message", "begin_ns": 1000, "flags": 0}
    rows = [
        {**base, "node": at, "sender": sender, "counter": counter, "end_ns": 1000 + took_ns}
        for sender, counter, took_ns in ((0, 5, 300), (0, 7, 100), (2, 1, 200), (2, 6, 400))
        for at in (sender, 1)
    ]
    for part_records in (1, 100):
        found = series_of(Messages.of(pl.DataFrame(rows), part_records), run, 0)
        assert found.values_us.tolist() == [0.3, 0.1, 0.2, 0.4]


DEPLOYMENT = deployment_of_nodes([{"node": 0, "role": "pong"}, {"node": 1, "role": "ping"}])


def sample_file(path, role, node, rows):
    header = (b"WATTWIRE", 1, 64, 40, records.ROLES.index(role), 1, node, 0, 0, len(rows), 0, 7)
    data = struct.pack("<8sHHHBBHHIQQQ16x", *header)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data + b"".join(struct.pack("<QqqqIHBB", *row) for row in rows))


def plans():
    return [
        replace(node(number, role), index=0, spec={**SPEC, "peers.nodes": [1 - number]})
        for number, role in enumerate(("pong", "ping"))
    ]


def files(folder, seed, strange=0):
    """Return the unsorted files of two nodes; the server's files come from several processes.

    `strange` is the number of records of unsent messages.
    """
    roll = random.Random(seed)
    pong, ping = plans()
    calls = [
        (1 << 48 | c, UNKNOWN_NS, 1000 + c, UNKNOWN_NS if c % 17 == 3 else 2000 + 10 * (c // 3),
         64, 0, 1, FLAG_TIMEOUT if c % 17 == 3 else FLAG_WARM_UP if c < 9 else 0)
        for c in range(120)
    ]  # fmt: skip
    served = [(*call[:3], 1500 + 10 * (c // 4), 64, 65535, 1, 0) for c, call in enumerate(calls)]
    served += [(1 << 48 | 500 + n, *served[0][1:]) for n in range(strange)]
    roll.shuffle(calls)
    roll.shuffle(served)
    sample_file(folder / "out" / ping.process / "samples.bin", "ping", 1, calls)
    for part in range(3):
        name = f"samples-{part}.bin"
        sample_file(folder / "out" / pong.process / name, "pong", 0, served[part::3])
    return [pong, ping]


def converted(folder, nodes):
    samples = convert.open_all_samples(folder, nodes)
    faults = [
        fault
        for one in nodes
        for part in samples[one.node]
        for fault in node_checks.record_faults(one, part, 0, 1500)
    ]
    faults += node_checks.sequence_faults(nodes, samples)
    return convert.messages_frame("r", DEPLOYMENT, samples), faults


@pytest.mark.parametrize("seed", range(4))
def test_files_read_in_pieces_give_the_same_table_and_the_same_faults(tmp_path, monkeypatch, seed):
    nodes = files(tmp_path, seed, strange=4)
    whole, faults = converted(tmp_path, nodes)
    assert len(whole) == 244
    by = ("node", "end_ns", "counter")
    assert whole.equals(whole.sort(*by, nulls_last=True, maintain_order=True))
    assert any("C-21" in fault for fault in faults)
    assert any("outside the lifetime" in fault for fault in faults)
    monkeypatch.setattr(records, "CHUNK_RECORDS", 7)
    monkeypatch.setattr(convert, "CHUNK_RECORDS", 7)
    pieces, faults_of_pieces = converted(tmp_path, nodes)
    assert pieces.equals(whole)
    assert faults_of_pieces == faults


def test_a_file_that_changes_between_two_readings_is_refused(tmp_path):
    nodes = files(tmp_path, 1)
    samples = convert.open_all_samples(tmp_path, nodes)
    path = samples[1][0].path
    data = bytearray(path.read_bytes())
    data[64 + 38] = 99
    path.write_bytes(data)
    with pytest.raises(records.SampleFileError, match="a record with kind = 99"):
        list(convert.message_batches("r", DEPLOYMENT, samples))
    path.write_bytes(data[:-1])
    with pytest.raises(records.SampleFileError, match="changed while it was read"):
        list(convert.message_batches("r", DEPLOYMENT, samples))
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(records.SampleFileError, match="cannot be opened"):
        list(convert.message_batches("r", DEPLOYMENT, samples))
