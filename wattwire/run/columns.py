"""What each column of the summary means: unit, kind, words. Columns with a node end in .ROLE.N."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

COLUMNS: dict[str, tuple[str, str, str]] = {
    "run": ("", "identity", "planned run"),
    "attempt": ("", "identity", "attempt, from 1"),
    "block": ("", "identity", "block, from 1"),
    "position": ("", "identity", "place in the block, from 1"),
    "verdict": ("", "verdict", "ok, unknown or failed"),
    "outcome": ("", "measured", "completed, saturated, timed_out or died"),
    "treatment": ("", "identity", "hash of all levels"),
    "control": (
        "",
        "identity",
        "control run: a and b are the same; unsampled; syscalls counts system calls",
    ),
    "cell": ("", "identity", "cell that was measured"),
    "used": ("", "verdict", "whether the study's answers use this attempt (controls never)"),
    "factor": ("", "identity", "level of a factor"),
    "sent": ("messages", "measured", "messages sent; calls made, taken or not"),
    "expected": ("messages", "measured", "sent, once for each receiver"),
    "received_unique": ("messages", "measured", "receptions without duplicates; calls answered"),
    "lost": ("messages", "measured", "gaps in the receivers' sequence numbers; calls unanswered"),
    "skipped": ("messages", "measured", "slots that a native timer passed over"),
    "duplicates": ("messages", "measured", "receptions beyond the first"),
    "late": ("messages", "measured", "receptions in the second half of the drain"),
    "corrupt": ("messages", "measured", "receptions with a wrong payload"),
    "foreign": ("messages", "measured", "messages of another run"),
    "rate_hz_achieved": ("Hz", "measured", "messages sent per second, all senders together"),
    "latency_samples": ("messages", "measured", "receptions that the run's latency rests on"),
    "latency_p50_us": ("µs", "measured", "median latency of the run; lost counts as infinite"),
    "latency_p90_us": ("µs", "measured", "90th percentile of the run's latency"),
    "latency_p99_us": ("µs", "measured", "99th percentile of the run's latency"),
    "latency_mean_us": ("µs", "measured", "mean latency of what arrived"),
    "response_p50_us": ("µs", "measured", "median time from the due time to the reply"),
    "schedule_late_p50_us": ("µs", "measured", "median lateness of senders against the schedule"),
    "schedule_late_p99_us": ("µs", "measured", "99th percentile of the senders' lateness"),
    "startup_s_max": ("s", "measured", "process start to READY, slowest node"),
    "discovery_s_max": ("s", "measured", "endpoint made to peers matched, slowest node"),
    "window_s": ("s", "measured", "length of the window"),
    "cpu_us_per_message": ("µs", "measured", "CPU time of nodes and services per message sent"),
    "cpu_us_per_message_above_silent": ("µs", "measured", "the same above the silent baseline"),
    "cpu_silent_share": ("cores", "measured", "CPU of the connected, silent nodes and services"),
    "cpu_share": ("cores", "measured", "CPU time per second of the window"),
    "wire_bytes_per_message": ("bytes", "measured", "bytes sent by all interfaces, per message"),
    "memory_kib": ("KiB", "measured", "resident memory, mean over the window"),
    "memory_kib_total": ("KiB", "measured", "resident memory of nodes and services"),
    "memory_max_kib": ("KiB", "measured", "largest resident memory of any one process of the node"),
    "faults_minor": ("", "measured", "minor page faults of the node's whole life"),
    "switches_voluntary": ("", "measured", "voluntary context switches of the node's whole life"),
    "energy_source": ("", "identity", "meter and quantity that power and energy are from"),
    "power_machine_w": ("W", "measured", "power before any process of the run"),
    "power_silent_w": ("W", "measured", "power with nodes connected and silent"),
    "power_window_w": ("W", "measured", "power in the window"),
    "energy_standing_j": ("J", "measured", "(silent − machine) power × window"),
    "energy_message_j": ("J", "measured", "(window − silent) power × window"),
    "energy_total_j": ("J", "measured", "standing + message energy"),
    "run_s": ("s", "measured", "machine baseline's end to the last process's end"),
    "power_run_w": ("W", "measured", "power over run_s"),
    "power_idle_w": ("W", "measured", "mean of power_machine_w over all the campaign's runs"),
    "energy_idle_subtracted_j": (
        "J",
        "measured",
        "(run − idle) power × run_s: start, silence and end of the nodes included",
    ),
    "energy_j": ("J", "measured", "message energy shared by CPU time above silent"),
    "energy_estimate_low_j": ("J", "estimate", "low end of a model of CPU time"),
    "energy_estimate_high_j": ("J", "estimate", "high end of a model of CPU time"),
    "syscalls_per_message": ("", "measured", "system calls of the process tree per message"),
    "syscall_working_us_per_message": ("µs", "measured", "time in calls that work, per message"),
    "syscall_waiting_us_per_message": ("µs", "measured", "time in wait-like calls, per message"),
    "syscall_waiting_share": ("", "measured", "wait-like calls' share of the time in calls"),
    "kernel_us_per_message": ("µs", "measured", "CPU time in the kernel per message"),
    "kernel_share": ("", "measured", "share of the tree's CPU time spent in the kernel"),
    "steal_share": ("cores", "measured", "share of all cores that the hypervisor took"),
    "temperature_celsius": ("°C", "measured", "mean temperature of the hottest zone in the window"),
    "stall_ms_max": ("ms", "measured", "longest time the machine stood still in the window"),
    "stalled_ms": ("ms", "measured", "all times of 1 ms and more that it stood still, summed"),
    "clock_step_ms": ("ms", "measured", "by how much the wall clock was set during the run"),
    "datagrams_dropped": (
        "",
        "measured",
        "datagrams dropped at full socket buffers",
    ),
    "harness_cpu_share": ("cores", "measured", "CPU of the agent while sampling"),
    "other_load_share": ("cores", "measured", "share of all cores used by other processes"),
}


def describe(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Unit, kind and summary of each named column."""
    described = {}
    for name in names:
        stem = name.split(".")[0]
        if stem in COLUMNS:
            unit, kind, summary = COLUMNS[stem]
            described[name] = {"unit": unit, "kind": kind, "summary": summary}
    return described


def pool_baselines(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add standing, message and total energy, with the machine's power pooled over a block.

    One run's machine baseline is short; all of a block's together are at least as long as a
    window, and they bracket every run of the block. Beside them stands the energy of the whole
    run less one idle power of the campaign, for comparison with papers that subtract so.
    """
    pooled: list[dict[str, Any]] = []
    for row in subtract_idle(rows):
        machine = [
            r["power_machine_w"]
            for r in rows
            if r["block"] == row["block"]
            and r.get("energy_source") == row.get("energy_source")
            and r.get("power_machine_w") is not None
        ]
        silent, window_w = row.get("power_silent_w"), row.get("power_window_w")
        if not machine or silent is None or window_w is None:
            pooled.append(row)
            continue
        base_w = sum(machine) / len(machine)
        standing = (silent - base_w) * row["window_s"]
        message = (window_w - silent) * row["window_s"]
        energy = {
            "energy_standing_j": standing,
            "energy_message_j": message,
            "energy_total_j": standing + message,
        }
        pooled.append({**row, **energy})
    return pooled


def subtract_idle(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the energy of each whole run less one idle power, the same for the whole campaign.

    What: energy above idle as papers with a meter at the mains take it, start-up included. What
    it misses: drift of the machine's own power, and what nodes use while they are silent is not
    told apart from what messages use. Never an answer's only energy.
    """
    idle: dict[Any, list[float]] = {}
    for row in rows:
        if row.get("power_machine_w") is not None:
            idle.setdefault(row.get("energy_source"), []).append(row["power_machine_w"])
    told = []
    for row in rows:
        known, run_w = idle.get(row.get("energy_source")), row.get("power_run_w")
        if known and run_w is not None and row.get("run_s"):
            idle_w = sum(known) / len(known)
            energy_j = (run_w - idle_w) * row["run_s"]
            told.append({**row, "power_idle_w": idle_w, "energy_idle_subtracted_j": energy_j})
        else:
            told.append(row)
    return told
