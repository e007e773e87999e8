"""Measure the resident memory of the bridge of rosbridge over time.

A robot (rospy) calls a client in Python through the bridge over WebSocket, so that each message
passes the bridge twice, in JSON with base64.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from bench.campaigns import run_study
from bench.rigs.bridges import FILLING_S, Soak, memory_of, print_memory
from wattwire.store import Campaign

MEMORY_MIB_MAX = 100.0
BYTES, HZ = 65536, 50
SERVICE = "bridge"
STUDY = """
title = "Memory of the bridge of rosbridge"
[factors]
payload_bytes = [{payload_bytes}]
[fixed]
middleware = "rosbridge"
cell = "rosbridge/rospy"
server_cell = "rosbridge/python"
language = "python"
pattern = "pingpong"
rate_hz = {rate_hz}
[plan]
blocks = 1
controls = false
duration_s = {duration_s}
warmup_s = 0.5
baseline_s = 0.1
quiet_ms = 200
linger_ms = 2000
retries = 0
quiet_wait_s = 0.0
"""


def soaks(seconds: float) -> Iterator[tuple[str, Soak]]:
    """Yield (middleware, memory) of the bridge."""
    with tempfile.TemporaryDirectory(prefix="wattwire-bench-") as folder:
        duration_s = FILLING_S + seconds
        study = STUDY.format(payload_bytes=BYTES, rate_hz=HZ, duration_s=duration_s)
        stored = Campaign(run_study(Path(folder), study, output=sys.stderr))
        try:
            (row,) = stored.rows()
            run = stored.run(row["run"])
            readings = pl.read_parquet(stored.folder(row["run"]) / "quantities.parquet", glob=False)
        finally:
            stored.close()
    print(f"  {row['outcome']}, {row['received_unique']} of {row['sent']} calls", flush=True)
    yield from (("rosbridge", soak) for soak in memory_of(readings, run["window"], SERVICE))


def report(seconds: float) -> None:
    """Print the memory of the bridge over a soak."""
    print(f"\n## Memory of the bridge at {BYTES >> 10} KiB and {HZ} Hz, {seconds:g} s\n")
    print_memory(soaks(seconds), MEMORY_MIB_MAX)
