"""The record of each delivery, and the treatments whose layers cannot be recorded."""

from __future__ import annotations

import polars as pl

from wattwire.run.layers.profiling import with_records


def messages(*rows: tuple[int, int, int, int, int | None]) -> pl.DataFrame:
    names = ("node", "sender", "counter", "hop", "end_ns")
    return pl.DataFrame(dict(zip(names, zip(*rows, strict=True), strict=True)))


def test_a_delivery_has_the_counter_of_the_record_that_ends_before_the_next_delivery() -> None:
    deliveries = pl.DataFrame({"receiver_pid": [70, 80, 70], "end_ns": [100, 150, 200]})
    records = messages((7, 1, 0, 2, 101), (7, 1, 1, 2, 230), (8, 1, 0, 1, 160), (9, 1, 5, 1, 102))
    result = with_records(deliveries, records, {70: 7, 80: 8})
    assert result["end_ns"].to_list() == [100, 150, 200]
    assert result["counter"].to_list() == [0, 0, 1]
    assert result["hop"].to_list() == [2, 1, 2]
    assert result["sender_number"].to_list() == [1, 1, 1]


def test_an_ambiguous_delivery_and_one_of_an_unknown_process_have_no_counter() -> None:
    deliveries = pl.DataFrame({"receiver_pid": [70, 70, 60], "end_ns": [100, 200, 100]})
    records = messages((7, 1, 0, 1, 110), (7, 1, 1, 1, 120), (7, 1, 2, 1, 90), (7, 1, 3, 1, None))
    result = with_records(deliveries, records, {70: 7})
    assert result["counter"].to_list() == [None, None, None]
    assert with_records(deliveries, records, {})["counter"].to_list() == [None, None, None]
