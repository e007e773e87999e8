"""An exhausted php-fpm pool, with the real nginx and php-fpm: the result of each call is reported.

The pool has one process. In one case the process is stopped and its backlog is full, so nginx has
no process for a request. In the other case more clients call it than it can answer in time.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.group import Group, pair
from contract.conformance.process import NodeProcess
from tests.end_to_end.conftest import Cli, marked_processes, tokens_below

HANG_S = 120.0
CELLS = ("rest/php", "rpc/php")
ANSWERED, FAILED, TIMEOUT = 0, 2, 4
# A long timeout, because the test itself sends STOP.
CALLS = {
    "loop": "open", "period_ns": 20_000_000, "duration_ns": 600_000_000_000, "count": 0,
    "outstanding_max": 1, "settings.server_workers": 1, "record.capacity": 40_000,
    "payload.encoding": "text", "payload.bytes": 64,
}  # fmt: skip
STUDY = """
title = "More clients than a pool of one process can answer in time"
[factors]
clients = [6]
[fixed]
middleware = "{middleware}"
language = "php"
pattern = "service"
payload_encoding = "record"
payload_bytes = 65536
reply = "ack"
rate_hz = 100
timeout_ms = 1
settings.server_workers = 1
[plan]
blocks = 1
controls = false
duration_s = 1.0
baseline_s = 0.1
linger_ms = 500
quiet_ms = 50
retries = 0
quiet_wait_s = 0.0
ready_timeout_s = 120
[validity]
other_load_max = 1.0
steal_max = 1.0
missed_ticks_max = 1.0
stall_max_ms = 60000.0
"""


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def until(true: Any, what: str) -> None:
    end = time.monotonic() + HANG_S
    while not true():
        assert time.monotonic() < end, f"not within {HANG_S:.0f} s: {what}"
        time.sleep(0.01)


def pool_socket(server: NodeProcess) -> Path:
    """Return the pool's socket, which is outside the node's folder if the folder's path is long."""
    found = re.search(r"^listen = (.+)$", (server.out / "php-fpm.conf").read_text(), re.MULTILINE)
    assert found
    return Path(found[1].strip())


@contextlib.contextmanager
def exhausted(server: NodeProcess) -> Iterator[None]:
    """Stop the pool's only process, and fill its backlog."""
    (worker,) = children(int((server.out / "php-fpm.pid").read_text()))
    os.kill(worker, signal.SIGSTOP)
    waiting: list[socket.socket] = []
    try:
        with contextlib.suppress(BlockingIOError):
            while True:
                waiting.append(socket.socket(socket.AF_UNIX))
                waiting[-1].setblocking(False)
                waiting[-1].connect(str(pool_socket(server)))
        yield
    finally:
        for connection in waiting:
            connection.close()
        os.kill(worker, signal.SIGCONT)


def status(url: str) -> int:
    """Return the status of a GET, which the application answers with 405."""
    try:
        return int(urllib.request.urlopen(url, timeout=HANG_S).status)
    except urllib.error.HTTPError as error:
        return error.code


def log(node: NodeProcess) -> str:
    return (node.folder / "stderr").read_text(errors="replace")


@pytest.mark.parametrize("cell", CELLS, indirect=True)
def test_a_full_backlog_is_reported_by_its_status(cell: CellUnderTest, tmp_path: Path) -> None:
    with Group(tmp_path, "service", pair(cell, cell, "service", CALLS), []) as group:
        group.start()
        client, server = group.node("client"), group.node("server")
        url = server.fields("LISTENING")["endpoints"][0]
        ours = {int((server.out / f"{name}.pid").read_text()) for name in ("php-fpm", "nginx")}
        ours |= {child for pid in ours for child in children(pid)}
        with exhausted(server):
            assert status(url) == 502
            told = log(server).count("Resource temporarily unavailable")
            group.go()
            until(lambda: log(server).count("Resource temporarily unavailable") > told + 5, "502")
        until(lambda: status(url) == 405, "an answer of the pool")
        time.sleep(2.0)  # the pool answers the client's calls again
        group.finish()
        records, done = group.samples(client).records, client.fields("DONE")
        said, left = log(client), pool_socket(server).exists()
    flags = [record.flags for record in records]
    failed = flags.count(FAILED)
    assert set(flags) <= {ANSWERED, FAILED, TIMEOUT}
    assert failed > 5
    assert flags.count(ANSWERED) > 0
    assert flags.count(TIMEOUT) <= 1, "only the call that STOP found open"
    assert done["sent"] == len(flags) == done["received"] + failed + flags.count(TIMEOUT)
    assert done["corrupt"] == 0
    assert f"HTTP status 502 instead of 200: {failed} responses" in said
    assert not [pid for pid in ours if Path(f"/proc/{pid}").exists()]
    assert not left, "the pool's socket"


@pytest.mark.parametrize("name", CELLS)
def test_calls_that_the_pool_cannot_answer_are_lost_or_failed_and_counted(
    name: str, tmp_path: Path
) -> None:
    cli = Cli(tmp_path)
    built = cli("build", name)
    if built.code == 3:
        pytest.skip(built.err)
    study = tmp_path / "pool.toml"
    study.write_text(STUDY.format(middleware=name.partition("/")[0]))
    ran = cli("run", str(study), "--campaign", str(tmp_path / "c"), "--plain", "--no-report")
    assert "lost" in ran.out, ran.out + ran.err
    (folder,) = (tmp_path / "c" / "runs").iterdir()
    summary = json.loads((folder / "summary.json").read_text())
    messages = pl.read_parquet(folder / "messages.parquet", glob=False)
    assert summary["verdict"] == "valid", ran.out
    assert summary["outcome"] in ("completed", "saturated"), ran.out
    by_flag = {flag: len(messages.filter(pl.col("flags") == flag)) for flag in (FAILED, TIMEOUT)}
    assert (summary["failed"], summary["lost"]) == (by_flag[FAILED], by_flag[TIMEOUT])
    unanswered = summary["failed"] + summary["lost"]
    assert summary["sent"] == summary["received_unique"] + unanswered == len(messages)
    assert unanswered > 0
    assert messages["flags"].is_in([ANSWERED, FAILED, TIMEOUT]).all()
    assert marked_processes(tokens_below(tmp_path)) == []
