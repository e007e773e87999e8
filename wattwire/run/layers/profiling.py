"""Assign the deliveries of a profiled run to the records of its nodes."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

RECORD = ("sender_number", "counter", "hop")


def with_records(
    deliveries: pl.DataFrame, messages: pl.DataFrame, nodes: Mapping[int, int]
) -> pl.DataFrame:
    """Return the deliveries with the sender, counter and hop of the receiver's record (RECORD).

    `nodes` maps the pid of a process to its only node. A receiver sets the time of a record after
    the end of its delivery and before the end of the next one. Deliveries without exactly one such
    record have nulls.
    """
    placed = deliveries.with_row_index("place")
    frames = []
    for pid, node in nodes.items():
        taken = placed.filter(pl.col("receiver_pid") == pid).sort("end_ns")
        records = (
            messages.filter(pl.col("node") == node)
            .select(
                pl.col("sender").cast(pl.Int64).alias("sender_number"),
                pl.col("counter").cast(pl.Int64),
                pl.col("hop").cast(pl.Int64),
                pl.col("end_ns").alias("recorded_ns"),
            )
            .drop_nulls()
            .sort("recorded_ns")
        )
        # A record belongs to the latest delivery before it, and only the first one does.
        owned = records.join_asof(
            taken.select("place", "end_ns"), left_on="recorded_ns", right_on="end_ns"
        ).drop_nulls("place")
        frames.append(owned.unique("place", keep="none").select("place", *RECORD))
    if not frames:
        return deliveries.with_columns(pl.lit(None, pl.Int64).alias(name) for name in RECORD)
    assigned = placed.join(pl.concat(frames), on="place", how="left", maintain_order="left")
    return assigned.drop("place")
