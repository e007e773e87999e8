"""Test that a planted delay of 5 ms and a loss of 1 % are recovered, and controls show neither.

The true values come from the log of the proxy: how long datagrams stayed in it, from the kernel's
time stamp of their arrival. For each seed, three blocks run, each with a planted, two clean and one
direct run (without a proxy) as neighbours.

wattwire measures the delay plus the path around it: into the proxy's socket, and from its send to a
receiver that wakes up. The latency of a clean run exceeds this path, because it also includes a
wake-up of the proxy. It may be less if the machine is still awake for the second hop; the latency
of a direct run more than compensates for this. The delay is therefore between the planted latency
minus the clean and direct latencies, and the planted latency itself. A control consists of two
clean runs: the t interval of their three paired differences must contain 0. The full test uses
WATTWIRE_PLANTED_SEEDS=20.

Every seed must give the lost sequence numbers and satisfy the upper bound, which is valid for each
message. The lower bound, the width of the bounds and the controls require an undisturbed machine,
because a host may take the CPU for 100 ms only between the proxy and the receiver. A seed with such
a disturbance, by evidence that is independent of latency, is excluded from these checks and
replaced by the next seed. If the first SEEDS do not pass, twice as many must, because a control
raises a false alarm in one of twenty cases.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

pytestmark = pytest.mark.quiet

SEEDS = int(os.environ.get("WATTWIRE_PLANTED_SEEDS", "4"))
TRIES_MAX = 2 * SEEDS
PASSING_SHARE = 17 / 20
DISTURBED = {"steal_share": 0.02, "stalled_ms": 5.0, "other_load_share": 0.4}
"""Disturbance of the window above which a seed is excluded; other load includes the proxy."""
DELAY_MS, LOSS = 5.0, 0.01
WIDTH_MAX_US = DELAY_MS * 1000 / 10
"""The bounds are as far apart as the latency of two hops without the delay, which is that of this
machine: a bar of 0.2 ms failed on a slower one."""
BLOCKS = 3
STUDY = """
title = "Planted truth"
[factors]
"settings.endpoint_override" = [{endpoints}]
[fixed]
middleware = "udp"
language = "cpp"
pattern = "topic"
rate_hz = 400
payload_bytes = 64
settings.bind_port = {port}
[plan]
blocks = {blocks}
controls = false
seed = {seed}
primary = "settings.endpoint_override"
duration_s = 0.5
baseline_s = 0.05
quiet_ms = 80
linger_ms = 600
quiet_wait_s = 0.0
retries = 0
[validity]
other_load_max = 1.0
steal_max = 1.0
missed_ticks_max = 1.0
stall_max_ms = 60000.0
"""
HERE = Path(__file__).parent


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Proxy:
    """The proxy as a separate process. `close` returns its log."""

    def __init__(self, target: int, delay_ms: float, loss: float, seed: int, log: Path) -> None:
        self.port = free_port()
        self._log = log
        arguments = [self.port, target, delay_ms, loss, seed, log]
        self._process = subprocess.Popen(
            [sys.executable, HERE / "proxy.py", *map(str, arguments)], stdin=subprocess.PIPE
        )

    def close(self) -> dict[str, list[int]]:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            assert self._process.wait(60) == 0
        finally:
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGKILL)
                self._process.wait()
        return json.loads(self._log.read_text())


def run_seed(cli, folder: Path, seed: int) -> dict:
    """Run three blocks of one seed; return the block means and the logs of the proxies."""
    port = free_port()
    legs = {"planted": (DELAY_MS, LOSS), "clean a": (0.0, 0.0), "clean b": (0.0, 0.0)}
    proxies = {
        leg: Proxy(port, delay, loss, seed, folder / f"{leg}.json")
        for leg, (delay, loss) in legs.items()
    }
    endpoints = {leg: f"127.0.0.1:{proxy.port}" for leg, proxy in proxies.items()}
    endpoints["direct"] = f"127.0.0.1:{port}"
    study = folder / "planted.toml"
    quoted = ", ".join(f'"{e}"' for e in endpoints.values())
    study.write_text(STUDY.format(endpoints=quoted, port=port, blocks=BLOCKS, seed=seed))
    result = cli("run", study, "--campaign", folder / "c", "--plain", "--no-report")
    logs = {leg: proxy.close() for leg, proxy in proxies.items()}
    assert result.code == 0, result.err + result.out
    rows = pl.read_parquet(folder / "c" / "summary.parquet", glob=False).sort("block").to_dicts()
    factor = "factor.settings.endpoint_override"
    return {
        leg: {
            "rows": [row for row in rows if row[factor] == endpoint],
            "log": logs.get(leg),
            "campaign": folder / "c",
        }
        for leg, endpoint in endpoints.items()
    }


def lost_sequences(leg: dict) -> list[int]:
    """Return the sequence numbers that wattwire reports as lost, over all runs in order."""
    lost: list[int] = []
    for row in leg["rows"]:
        folder = leg["campaign"] / "runs" / f"{row['run']}-{row['attempt']}"
        messages = pl.read_parquet(folder / "messages.parquet", glob=False)
        sent = set(messages.filter(pl.col("node") == 0)["counter"])
        received = set(messages.filter(pl.col("node") == 1)["counter"])
        assert row["lost"] == len(sent - received)
        assert row["received_unique"] + row["lost"] == row["sent"] == 200
        lost += sorted(sent - received)
    return lost


def bounds_us(planted: dict, hops: list[dict]) -> tuple[float, float]:
    """Return the bounds of the mean delay (µs); blocks are weighted by their arrived messages."""
    arrived = [row["received_unique"] for row in planted["rows"]]
    whole = np.average([row["since_send_mean_us"] for row in planted["rows"]], weights=arrived)
    way = sum(np.mean([row["since_send_mean_us"] for row in leg["rows"]]) for leg in hops)
    return whole - way, whole


def interval_us(first: dict, second: dict) -> tuple[float, float]:
    """Return the 95 % t interval of the paired differences of means, first − second (µs)."""
    means = (
        np.array([row["since_send_mean_us"] for row in leg["rows"]]) for leg in (first, second)
    )
    differences = np.subtract(*means)
    half = stats.t.ppf(0.975, BLOCKS - 1) * differences.std(ddof=1) / np.sqrt(BLOCKS)
    return differences.mean() - half, differences.mean() + half


def disturbance(legs: dict) -> str:
    """Return the evidence of a disturbance of a seed's runs as text; "" without evidence."""
    rows = [row for leg in legs.values() for row in leg["rows"]]
    worst = {name: max(row[name] or 0.0 for row in rows) for name in DISTURBED}
    over = [f"{name} {value:.3g}" for name, value in worst.items() if value > DISTURBED[name]]
    return f"; excluded: {', '.join(over)}" if over else ""


def is_whole(legs: dict) -> bool:
    """Return whether no run failed. A run fails if its node receives GO too late."""
    return all(row["verdict"] != "failed" for leg in legs.values() for row in leg["rows"])


def enough(found: list[bool]) -> bool:
    return sum(found) >= round(len(found) * PASSING_SHARE)


@pytest.mark.slow
def test_a_planted_delay_and_loss_come_out_and_controls_stay_quiet(cli, tmp_path):
    held, narrow, quiet, told = [], [], [], []
    for seed in range(1, TRIES_MAX + 1):
        folder = tmp_path / f"seed{seed}"
        folder.mkdir()
        legs = run_seed(cli, folder, seed)
        order = sorted(legs["planted"]["rows"], key=lambda row: row["run"])
        assert [row["block"] for row in order] == list(range(1, BLOCKS + 1))
        against = disturbance(legs)
        if against and not is_whole(legs):
            told.append(f"seed {seed}: a run could not begin{against}")
            continue
        assert lost_sequences(legs["planted"]) == legs["planted"]["log"]["dropped"]
        for leg in ("clean a", "clean b", "direct"):
            assert lost_sequences(legs[leg]) == []
        truth = np.mean(legs["planted"]["log"]["stayed_ns"]) / 1000
        low, high = bounds_us(legs["planted"], [legs["clean a"], legs["direct"]])
        control = interval_us(legs["clean a"], legs["clean b"])
        assert truth <= high, f"seed {seed}: at most {high:.1f} µs, truth {truth:.1f}{against}"
        if not against:
            held.append(low <= truth <= high)
            narrow.append(high - low <= WIDTH_MAX_US)
            quiet.append(control[0] <= 0.0 <= control[1])
        told.append(f"seed {seed}: [{low:.1f}, {high:.1f}] µs, truth {truth:.1f}; "
                    f"control [{control[0]:.1f}, {control[1]:.1f}]{against}")  # fmt: skip
        passing = len(held) == SEEDS and all(map(enough, (held, narrow, quiet)))
        if passing or (seed >= SEEDS and not held):
            break
    print("\n".join(told))
    print(f"holds {sum(held)}, narrow {sum(narrow)}, quiet {sum(quiet)} of {len(held)}")
    assert enough(held), told
    if len(held) < SEEDS:
        pytest.skip(
            f"what was lost came out in every whole seed; the delay was judged in {len(held)}, "
            f"as this machine was taken away in {len(told) - len(held)} of {len(told)}"
        )
    assert enough(narrow) and enough(quiet), told
