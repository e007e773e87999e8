"""Test that latencies of campaigns of earlier versions are computed again from the due times."""

from pathlib import Path

import polars as pl
import pytest

from wattwire.model.derived import with_derived
from wattwire.model.errors import UsageError
from wattwire.store import Messages
from wattwire.store.rereading import Reread, from_due_time

MS, DUE_NS = 1_000_000, 10**9
LATE_NS, CALL_NS = 30 * MS, 2 * MS
NODES = [
    {"node": 0, "role": "server"},
    {"node": 1, "role": "client", "sent": {"scheduled": 100, "sent": 100, "skipped": 0}},
]
RECORDS = pl.DataFrame([
    {"node": 1, "sender": 1, "counter": n, "kind": "call", "intended_ns": DUE_NS + n * MS,
     "begin_ns": DUE_NS + n * MS + LATE_NS, "end_ns": DUE_NS + n * MS + LATE_NS + CALL_NS,
     "flags": 0, "bytes": 64}
    for n in range(100)
])  # fmt: skip


class Reader:
    def __init__(self, path, nodes=NODES, records=RECORDS):
        self.path, self._nodes, self._records = Path(path), nodes, records

    def run(self, run_id):
        return {"nodes": self._nodes, "outcome": "completed", "levels": {"loop": "open"}}

    def recorded(self, run_id):
        if self._records is None:
            raise UsageError(f"{run_id}: no records")
        return Messages.of(self._records)


def stored(**columns):
    row = {
        "run": "b1-p1",
        "attempt": 1,
        "window_s": 1.0,
        "latency_p50_us": 2000.0,
        "expected_after_warmup": 100,
        "lost_after_warmup": 0,
        "cpu_us_per_message": 7.0,
    }
    return pl.DataFrame([{**row, **columns}])  # fmt: skip


def test_an_older_summary_counts_from_the_due_time_after_reading_again():
    summary, reread = from_due_time(Reader("older"), stored())
    assert reread == Reread(1, 0)
    row = summary.to_dicts()[0]
    assert (row["latency_p50_us"], row["latency_max_us"]) == (32_000, 32_000)
    assert (row["since_send_p50_us"], row["since_send_p99_us"]) == (2000, 2000)
    assert (row["expected_after_warmup"], row["cpu_us_per_message"]) == (100, 7.0)


def test_messages_that_an_older_sender_never_sent_are_infinitely_late():
    sent = {"scheduled": 160, "sent": 100, "skipped": 0}
    nodes = [NODES[0], {**NODES[1], "sent": sent}]
    summary, _ = from_due_time(Reader("unsent", nodes), stored())
    row = with_derived(summary).to_dicts()[0]
    assert (row["latency_p50_us"], row["latency_p90_us"]) == (32_000, float("inf"))
    assert row["since_send_p90_us"] == 2000


@pytest.mark.parametrize(
    ("reader", "columns", "reread"),
    [
        (Reader("now"), {"rate_window_s": 1.0, "since_send_p50_us": 9.0}, None),
        (Reader("gone", records=None), {}, Reread(0, 1)),
        (Reader("died"), {"window_s": None}, None),
    ],
)
def test_a_summary_of_this_version_and_one_without_records_keep_their_numbers(
    reader, columns, reread
):
    summary, result = from_due_time(reader, stored(**columns))
    assert result == reread
    assert summary["latency_p50_us"].to_list() == [2000.0]
