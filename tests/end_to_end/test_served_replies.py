"""Test that a server records no reply that its middleware refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import polars as pl
import pytest

from wattwire.store import Campaign

pytestmark = pytest.mark.slow

REFUSALS = """
#define _GNU_SOURCE
#include <dlfcn.h>

int rcl_send_response(void* service, void* header, void* reply) {
  static unsigned count;
  static int (*send)(void*, void*, void*);
  if (send == 0) send = dlsym(RTLD_NEXT, "rcl_send_response");
  return count++ % 2 == 0 ? send(service, header, reply) : 1;
}
"""
"""A library that refuses every second reply."""
STUDY = """
title = "Refused replies"
[factors]
cell = ["CELL"]
[fixed]
pattern = "service"
rate_hz = 10
timeout_ms = 100
[plan]
blocks = 1
controls = false
duration_s = 2.0
baseline_s = 0.05
retries = 0
quiet_wait_s = 0.0
"""


@pytest.mark.parametrize("cell", ["ros2/cpp-rcl", "ros2/cpp"])
def test_a_reply_that_the_middleware_refused_is_not_recorded_as_handed_over(
    cli, tmp_path: Path, cell: str
) -> None:
    source, library = tmp_path / "refusals.c", tmp_path / "librefusals.so"
    source.write_text(REFUSALS)
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True)
    study, folder = tmp_path / "study.toml", tmp_path / "campaign"
    study.write_text(STUDY.replace("CELL", cell))
    result = cli(
        "run", study, "--look", "--plain", "--no-report", "--campaign", folder,
        LD_PRELOAD=str(library),
    )  # fmt: skip
    if not (folder / "journal.sqlite").exists():
        pytest.skip(f"this machine lacks {cell}: {result.err}")
    campaign = Campaign(folder)
    try:
        (row,) = campaign.rows()
        messages = campaign.messages(row["run"])
    finally:
        campaign.close()
    calls = messages.filter(pl.col("node") == pl.col("sender"))
    served = messages.filter(pl.col("node") != pl.col("sender"))
    # A slow machine sends fewer calls or misses a reply, but every second reply is refused.
    assert calls.height >= 2 and served.height == (calls.height + 1) // 2
