"""Test the throughput of flows against closed-form cases."""

import polars as pl
import pytest

from wattwire.model.deployment import Flow
from wattwire.model.ledger import deliveries
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_TIMEOUT
from wattwire.run.results.throughput import ThroughputTally

SCHEMA = {"node": pl.UInt16, "sender": pl.UInt16, "counter": pl.UInt64, "kind": pl.String,
          "end_ns": pl.Int64, "bytes": pl.UInt32, "flags": pl.UInt8}  # fmt: skip
SECOND = 10**9


def part(*rows):
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return frame.with_columns(begin_ns=pl.lit(0, pl.Int64))


def throughput(parts, flows, begin_ns, end_ns):
    tally = ThroughputTally(flows, (begin_ns, end_ns))
    for records in parts:
        tally.add(deliveries(records, flows))
    return tally.summary()


def arrivals(node, count, flags=0, sender=0):
    """Return arrivals of 100-byte messages, ten per second from second 1."""
    return [(node, sender, n, "message", SECOND + n * SECOND // 10, 100, flags)
            for n in range(count)]  # fmt: skip


def test_only_arrivals_in_the_span_count_once_for_each_receiver():
    flow = Flow("publisher-0", 0, (1, 2))
    records = part(*arrivals(1, 40), *arrivals(2, 40), *arrivals(0, 40))
    assert throughput([records], [flow], SECOND, 3 * SECOND) == {
        "throughput_bytes_per_s": pytest.approx(2 * 20 * 100 / 2),
        "rate_hz_delivered": pytest.approx(2 * 20 / 2),
    }


def test_duplicates_and_corrupt_payloads_add_nothing():
    flow = Flow("publisher-0", 0, (1,))
    late = [(1, 0, 0, "message", SECOND + 5, 100, 0)]
    corrupt = [(1, 0, 90, "message", SECOND + 7, 100, FLAG_CORRUPT)]
    records = part(*arrivals(1, 10), *late, *corrupt)
    assert throughput([records], [flow], SECOND, 2 * SECOND)["throughput_bytes_per_s"] == 1000


def test_calls_count_at_their_reply():
    flows = [Flow(f"client-{n}", n, (9,), result="call") for n in (1, 2)]
    records = part(
        (1, 1, 0, "call", SECOND, 50, 0),
        (1, 1, 1, "call", None, 50, FLAG_TIMEOUT),
        (2, 2, 0, "call", SECOND, 70, 0),
        (9, 2, 0, "call", SECOND, 70, 0),
    )
    halves = [records.filter(pl.col("counter") == counter) for counter in (0, 1)]
    assert throughput(halves, flows, 0, 2 * SECOND) == {
        "throughput_bytes_per_s": 60,
        "rate_hz_delivered": 1,
    }


def test_a_window_without_length_has_no_throughput():
    assert throughput([part()], [Flow("publisher-0", 0, (1,))], SECOND, SECOND) == {}
