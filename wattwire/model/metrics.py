"""Registry of the metrics of runs with name, unit, kind and synonyms.

A metric of a run is a column of the summary. A metric of a node has a column per node,
`NAME.ROLE.INDEX`, and per service process, `NAME.SERVICE`. A metric of a counter has a column per
counter of a service, `NAME.SERVICE.COUNTER`. In a study with flows, the metrics in `OF_FLOWS` also
have a column per flow, `NAME.flow.FLOW`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from wattwire.model.deployment import ROLES
from wattwire.model.errors import UsageError, nearest
from wattwire.model.flows import COLUMN

RUN, NODE, COUNTER, PRINTED = "run", "node", "counter", "printed"
LOWER, HIGHER = "lower", "higher"
OFFERED, FIGURES, EVIDENCE, HARNESS = "offered", "figures", "evidence", "harness"
"""Lists of metrics.

OFFERED contains the responses that a page offers without a question. FIGURES contains the main
results of a run, EVIDENCE the evidence for a verdict, and HARNESS the cost and disturbance of the
harness.
"""
ENERGY = "an energy counter"
SYSTEM_CALLS = "runs that count system calls (plan.syscall_runs)"
SYSTEM_CALLS_COUNTED = "syscall_calls"
"""Quantity of a meter that counts system calls."""
NUMERIC_KINDS = ("measured", "estimate")


@dataclass(frozen=True)
class Metric:
    """A number or a text that each run has.

    - `summary` describes its computation.
    - `title` and `verb` name it in a sentence: "A {verb} 0.5 times the {title} of B".
    - `direction` is the better direction, LOWER or HIGHER.
    - `is_share` is true for shares, which are compared by differences instead of ratios.
    - `also` is a regular expression for its synonyms.
    - `of` is RUN, NODE, COUNTER or PRINTED.
    - `needs` is its requirement: ENERGY, SYSTEM_CALLS, the name of a quantity that a meter reads,
      or "" for none.
    - `lists` contains its lists (OFFERED, FIGURES, EVIDENCE, HARNESS), with its position in each.
    """

    name: str
    unit: str
    kind: str
    summary: str = ""
    of: str = RUN
    needs: str = ""
    also: str = ""
    title: str = ""
    verb: str = "had"
    direction: str = LOWER
    is_share: bool = False
    lists: tuple[tuple[str, int], ...] = ()

    @property
    def is_number(self) -> bool:
        """Return whether the metric can be a response. Identities and verdicts cannot."""
        return self.kind in NUMERIC_KINDS and self.name != "outcome"

    @property
    def words(self) -> str:
        """Return the title, or the name with spaces if there is no title."""
        return self.title or self.name.replace("_", " ")

    @property
    def is_read(self) -> bool:
        """Return whether the metric requires a quantity that a meter reads."""
        return self.needs not in ("", ENERGY, SYSTEM_CALLS)


_REGISTRY: tuple[Metric, ...] = (
    Metric("run", "", "identity", "planned run"),
    Metric("attempt", "", "identity", "attempt, from 1"),
    Metric("block", "", "identity", "block, from 1; settling runs have 0"),
    Metric("position", "", "identity", "place in the block, from 1"),
    Metric("verdict", "", "verdict", "valid, invalid or failed"),
    Metric("outcome", "", "measured", "completed, saturated, held_up, timed_out or died"),
    Metric("treatment", "", "identity", "hash of all levels"),
    Metric(
        "control",
        "",
        "identity",
        "control run: a and b are the same; unsampled; syscalls counts them; settling: no answer",
    ),
    Metric("cell", "", "identity", "cell that was measured"),
    Metric(
        "emulated_device", "", "identity", "device that an emulator executed; its times are void"
    ),
    Metric(
        "instructions_per_block",
        "",
        "measured",
        "instructions of the device per block of AES-128, counted before READY",
        title="instructions per block",
    ),
    Metric("used", "", "verdict", "whether the study's answers use this attempt (controls never)"),
    Metric("factor", "", "identity", "level of a factor"),
    Metric(
        "sent",
        "messages",
        "measured",
        "messages sent; calls made, with any result",
        title="messages sent, or calls made",
        lists=((FIGURES, 10),),
    ),
    Metric("expected", "messages", "measured", "sent, once for each receiver"),
    Metric(
        "received_unique",
        "messages",
        "measured",
        "deliveries without duplicates; calls answered",
        direction=HIGHER,
    ),
    Metric(
        "failed",
        "messages",
        "measured",
        "calls that ended with an error before their timeout",
        title="calls failed",
        lists=((FIGURES, 20),),
    ),
    Metric(
        "lost",
        "messages",
        "measured",
        "gaps in the receivers' sequence numbers; calls timed out",
        title="messages lost, or calls timed out",
        lists=((FIGURES, 30),),
    ),
    Metric(
        "undelivered",
        "messages",
        "measured",
        "messages still in the queue of a saturated hop when linger_ms ended; not lost",
        title="messages undelivered",
        lists=((FIGURES, 35),),
    ),
    Metric(
        "unsent",
        "messages",
        "measured",
        "deliveries of messages that were due in an open loop and never sent; infinitely late",
        title="messages due and never sent",
        lists=((FIGURES, 36),),
    ),
    Metric("skipped", "messages", "measured", "slots that a native timer skipped"),
    Metric(
        "reordered",
        "messages",
        "measured",
        "first arrivals after a message that was sent later to the same receiver (RFC 4737)",
        title="messages reordered",
        lists=((FIGURES, 45),),
    ),
    Metric(
        "duplicates",
        "messages",
        "measured",
        "deliveries beyond the first",
        title="duplicates",
        lists=((FIGURES, 50),),
    ),
    Metric(
        "late",
        "messages",
        "measured",
        "deliveries in the second half of the drain",
        title="messages late",
        lists=((FIGURES, 40),),
    ),
    Metric("corrupt", "messages", "measured", "deliveries with a wrong payload"),
    Metric("foreign", "messages", "measured", "messages of another run"),
    Metric(
        "rate_hz_achieved",
        "Hz",
        "measured",
        "messages sent per second of rate_window_s, all senders",
        title="achieved rate",
        direction=HIGHER,
        lists=((FIGURES, 100),),
    ),
    Metric(
        "rate_hz_offered",
        "Hz",
        "measured",
        "messages per second that the schedule of an open loop requests, all senders",
    ),
    Metric(
        "rate_hz_delivered",
        "Hz",
        "measured",
        "messages that arrived per second of rate_window_s, once per receiver; calls answered",
        title="rate of delivery",
        direction=HIGHER,
    ),
    Metric(
        "latency_growth_us_per_s",
        "µs/s",
        "measured",
        "slope of latency over the due time, least squares, in an open loop",
        title="growth of latency",
    ),
    Metric(
        "backlog_growth",
        "messages",
        "measured",
        "growth of the backlog from the half of the schedule to its end, if it grew until the end "
        "(saturation); else 0",
    ),
    Metric(
        "throughput_bytes_per_s",
        "B/s",
        "measured",
        "payload delivered per second of rate_window_s, once per receiver",
        also=r"throughput(_bytes_per_s)?",
        title="throughput of payload",
        direction=HIGHER,
        lists=((OFFERED, 85),),
    ),
    Metric(
        "latency_samples", "messages", "measured", "latencies after the warm-up, of first arrivals"
    ),
    Metric("warmup_calls", "calls", "measured", "warm-up of each client, in closed loop"),
    Metric(
        "clients_active_mean",
        "clients",
        "measured",
        "concurrently active callers of a closed loop, mean, after the warm-up",
    ),
    Metric("expected_after_warmup", "messages", "measured", "expected, without the warm-up"),
    Metric(
        "failed_after_warmup",
        "messages",
        "measured",
        "failed after the warm-up: infinite in quantiles",
    ),
    Metric(
        "lost_after_warmup",
        "messages",
        "measured",
        "lost after the warm-up: infinite in latency quantiles",
    ),
    Metric(
        "undelivered_after_warmup",
        "messages",
        "measured",
        "undelivered after the warm-up: infinite in latency quantiles",
    ),
    Metric(
        "unsent_after_warmup",
        "messages",
        "measured",
        "unsent after the warm-up: infinite in latency quantiles",
    ),
    Metric(
        "latency_p50_us",
        "µs",
        "measured",
        "median time from the due time (closed loop: the call); messages without arrival: infinite",
        also=r"latency(_p50)?(_[nu]s)?",
        title="median latency",
        lists=(
            (OFFERED, 40),
            (FIGURES, 60),
        ),
    ),
    Metric(
        "latency_p90_us",
        "µs",
        "measured",
        "90th percentile of the run's latency from the due time",
        also=r"latency_p90(_[nu]s)?",
        title="90th percentile of latency",
        lists=(
            (OFFERED, 50),
            (FIGURES, 70),
        ),
    ),
    Metric(
        "latency_p95_us",
        "µs",
        "measured",
        "95th percentile of the run's latency from the due time",
        also=r"latency_p95(_[nu]s)?",
        title="95th percentile of latency",
        lists=((OFFERED, 55),),
    ),
    Metric(
        "latency_p99_us",
        "µs",
        "measured",
        "99th percentile of the run's latency from the due time",
        also=r"latency_p99(_[nu]s)?",
        title="99th percentile of latency",
        lists=(
            (OFFERED, 60),
            (FIGURES, 80),
        ),
    ),
    Metric(
        "latency_p999_us",
        "µs",
        "measured",
        "99.9th percentile of the run's latency from the due time",
        also=r"latency_p99\.?9(_[nu]s)?",
        title="99.9th percentile of latency",
        lists=((OFFERED, 62),),
    ),
    Metric(
        "latency_max_us",
        "µs",
        "measured",
        "largest latency of the run; it grows with the number of messages",
        also=r"(latency_)?max(imum)?(_[nu]s)?",
        title="maximum latency",
        lists=((OFFERED, 64),),
    ),
    Metric(
        "latency_mean_us",
        "µs",
        "measured",
        "mean latency of arrived deliveries from the due time",
        also=r"latency_mean(_[nu]s)?",
        title="mean latency",
        lists=((OFFERED, 70),),
    ),
    Metric(
        "delay_variation_p50_us",
        "µs",
        "measured",
        "median of the time since the send call minus the stream's smallest in the run (RFC 5481)",
        also=r"delay_variation_p50(_[nu]s)?",
        title="median delay variation",
        lists=((OFFERED, 72),),
    ),
    Metric(
        "delay_variation_p99_us",
        "µs",
        "measured",
        "99th percentile of time since the send call minus the stream's smallest (RFC 5481)",
        also=r"(delay_variation(_p99)?|jitter)(_[nu]s)?",
        title="99th percentile of delay variation",
        lists=((OFFERED, 74),),
    ),
    Metric(
        "clock_band_us",
        "µs",
        "bound",
        "largest error of one-way latencies: the bands of both hosts' clocks; 0 on one clock",
    ),
    *(
        Metric(
            f"since_send_{name}_us",
            "µs",
            "measured",
            f"{title} time from the send call, without the lateness of the sender",
            also=rf"since_send_{name}(_[nu]s)?",
            title=f"{title} time since the send call",
            lists=((OFFERED, place),) if place else (),
        )
        for name, title, place in (
            ("p50", "median", 75),
            ("p90", "90th percentile of", 0),
            ("p95", "95th percentile of", 0),
            ("p99", "99th percentile of", 76),
            ("p999", "99.9th percentile of", 0),
            ("max", "maximum", 0),
            ("mean", "mean", 0),
        )
    ),
    Metric(
        "schedule_late_p50_us", "µs", "measured", "median lateness of senders against the schedule"
    ),
    Metric(
        "schedule_late_p99_us",
        "µs",
        "measured",
        "99th percentile of the senders' lateness",
        title="lateness of sending, 99th percentile of a run",
        lists=(
            (FIGURES, 90),
            (HARNESS, 50),
        ),
    ),
    Metric(
        "startup_s_max",
        "s",
        "measured",
        "process start to READY, slowest node",
        also=r"startup(_s_max|_[nmu]?s)?",
        title="slowest node's start",
        lists=(
            (OFFERED, 140),
            (FIGURES, 140),
        ),
    ),
    Metric(
        "discovery_s_max",
        "s",
        "measured",
        "endpoint made to peers matched, slowest node",
        also=r"discovery(_s_max|_[nmu]?s)?",
        title="slowest discovery",
        lists=((OFFERED, 150),),
    ),
    Metric("window_s", "s", "measured", "length of the window, warm-up included"),
    Metric(
        "cost_window_s", "s", "measured", "the window without its warm-up, to which costs refer"
    ),
    Metric("sent_in_cost_window", "messages", "measured", "messages sent in cost_window_s"),
    Metric(
        "rate_window_s",
        "s",
        "measured",
        "span of all rates: from the warm-up's end to the schedule's end or a later last send; in "
        "closed loop to the last counted call",
    ),
    Metric(
        "cpu_us_per_message",
        "µs",
        "measured",
        "CPU time of nodes and services in cost_window_s, per message",
        also=r"cpu(_[nu]s)?(_per_message)?",
        needs="cpu_time",
        title="CPU time per message",
        verb="used",
        lists=(
            (OFFERED, 10),
            (FIGURES, 110),
        ),
    ),
    Metric(
        "cpu_us_per_message_above_silent",
        "µs",
        "measured",
        "the same above the silent baseline",
        needs="cpu_time",
    ),
    Metric(
        "cpu_silent_share",
        "cores",
        "measured",
        "cores that the connected, silent nodes and services used",
        needs="cpu_time",
    ),
    Metric(
        "cpu_share",
        "cores",
        "measured",
        "cores used: CPU time per second of cost_window_s",
        of=NODE,
        needs="cpu_time",
    ),
    Metric(
        "wire_bytes_per_message",
        "bytes",
        "measured",
        "bytes sent by all interfaces, per message",
        also=r"wire_bytes(_per_message)?",
        needs="tx_bytes",
        title="bytes on the wire per message",
        verb="sent",
        lists=((OFFERED, 30),),
    ),
    Metric(
        "memory_kib",
        "KiB",
        "measured",
        "resident memory, mean over cost_window_s",
        of=NODE,
        needs="rss",
    ),
    Metric(
        "memory_kib_total",
        "KiB",
        "measured",
        "resident memory of nodes and services",
        needs="rss",
        title="memory of all nodes",
        lists=((FIGURES, 120),),
    ),
    Metric(
        "memory_max_kib",
        "KiB",
        "measured",
        "largest resident memory of any one process of the node",
        of=NODE,
        needs="max_rss",
        title="largest memory",
        verb="held",
    ),
    Metric(
        "faults_minor",
        "",
        "measured",
        "minor page faults of the node's whole life",
        of=NODE,
        needs="minor_faults",
        title="minor page faults",
    ),
    Metric(
        "switches_voluntary",
        "",
        "measured",
        "voluntary context switches of the node's whole life",
        of=NODE,
        needs="voluntary_switches",
        title="voluntary context switches",
    ),
    Metric(
        "run_delay_us_per_message",
        "µs",
        "measured",
        "time for which runnable threads of the nodes waited for a CPU, per message",
        needs="run_delay",
        title="wait for a CPU per message",
    ),
    Metric(
        "migrations_per_message",
        "",
        "measured",
        "moves of the nodes' threads to another CPU, per message",
        needs="migrations",
        title="migrations per message",
    ),
    Metric(
        "switches_voluntary_per_message",
        "",
        "measured",
        "context switches of the nodes' threads to wait for an event, per message",
        needs="thread_switches_voluntary",
        title="voluntary context switches per message",
    ),
    Metric(
        "switches_involuntary_per_message",
        "",
        "measured",
        "context switches of the nodes' threads by preemption, per message",
        needs="thread_switches_involuntary",
        title="involuntary context switches per message",
    ),
    Metric(
        "ran_on_same_cpu",
        "",
        "measured",
        "share of the time on one CPU, mean over the connected pairs of nodes of a machine",
        needs="run_time_on",
        title="share of the time on one CPU",
        is_share=True,
    ),
    Metric(
        "ran_on_siblings",
        "",
        "measured",
        "share of the time on hardware threads of one core",
        needs="run_time_on",
        title="share of the time on hardware threads of one core",
        is_share=True,
    ),
    Metric(
        "ran_on_shared_cache",
        "",
        "measured",
        "share of the time on cores under one last-level cache",
        needs="run_time_on",
        title="share of the time on cores under one cache",
        is_share=True,
    ),
    Metric(
        "ran_on_further",
        "",
        "measured",
        "share of the time on cores without a common cache",
        needs="run_time_on",
        title="share of the time on cores without a common cache",
        is_share=True,
    ),
    Metric("energy_source", "", "identity", "meter and quantity that power and energy are from"),
    Metric("power_machine_w", "W", "measured", "power before any process of the run", needs=ENERGY),
    Metric(
        "power_silent_w", "W", "measured", "power with nodes connected and silent", needs=ENERGY
    ),
    Metric(
        "power_window_w",
        "W",
        "measured",
        "power in cost_window_s",
        needs=ENERGY,
        title="power in the window",
        verb="drew",
        lists=((FIGURES, 130),),
    ),
    Metric(
        "energy_standing_j",
        "J",
        "measured",
        "(silent − machine) power × cost_window_s",
        needs=ENERGY,
    ),
    Metric(
        "energy_message_j", "J", "measured", "(window − silent) power × cost_window_s", needs=ENERGY
    ),
    Metric("energy_total_j", "J", "measured", "standing + message energy", needs=ENERGY),
    Metric("run_s", "s", "measured", "machine baseline's end to the last process's end"),
    Metric("power_run_w", "W", "measured", "power over run_s", needs=ENERGY),
    Metric(
        "power_idle_w",
        "W",
        "measured",
        "mean of power_machine_w over the valid runs with the same conditions",
        needs=ENERGY,
    ),
    Metric(
        "energy_idle_subtracted_j",
        "J",
        "measured",
        "(run − idle) power × run_s: start, silence and end of the nodes included",
        needs=ENERGY,
    ),
    Metric(
        "energy_j",
        "J",
        "measured",
        "message energy shared by CPU time above silent",
        of=NODE,
        needs=ENERGY,
    ),
    Metric("energy_estimate_low_j", "J", "estimate", "low end of a model of CPU time", of=NODE),
    Metric("energy_estimate_high_j", "J", "estimate", "high end of a model of CPU time", of=NODE),
    Metric(
        "syscalls_per_message",
        "",
        "measured",
        "system calls of the process tree per message; after the warm-up where the kernel counts",
        of=NODE,
        needs=SYSTEM_CALLS,
        title="system calls per message",
    ),
    Metric(
        "syscall_working_us_per_message",
        "µs",
        "measured",
        "time in calls that work, per message",
        of=NODE,
        needs=SYSTEM_CALLS,
        title="time in system calls that work",
    ),
    Metric(
        "syscall_waiting_us_per_message",
        "µs",
        "measured",
        "time in wait-like calls, per message",
        of=NODE,
        needs=SYSTEM_CALLS,
        title="time in system calls that wait",
    ),
    Metric(
        "syscall_waiting_share",
        "",
        "measured",
        "wait-like calls' share of the time in calls",
        of=NODE,
        needs=SYSTEM_CALLS,
    ),
    Metric(
        "kernel_us_per_message",
        "µs",
        "measured",
        "CPU time in the kernel per message",
        of=NODE,
        needs=SYSTEM_CALLS,
    ),
    Metric(
        "kernel_share",
        "",
        "measured",
        "share of the tree's CPU time spent in the kernel",
        of=NODE,
        needs=SYSTEM_CALLS,
    ),
    Metric(
        "steal_share",
        "",
        "measured",
        "share of all cores' time that the hypervisor took",
        title="CPU taken by other virtual machines",
        lists=(
            (EVIDENCE, 30),
            (HARNESS, 20),
        ),
    ),
    Metric(
        "temperature_celsius",
        "°C",
        "measured",
        "mean temperature of the hottest zone in the window",
    ),
    Metric("stall_ms_max", "ms", "measured", "longest stall of the machine in cost_window_s"),
    Metric("stalled_ms", "ms", "measured", "sum of all stalls of 1 ms and more"),
    Metric("clock_step_ms", "ms", "measured", "step of the wall clock during the run"),
    Metric("datagrams_dropped", "", "measured", "datagrams dropped at full socket buffers"),
    Metric(
        "datagrams_unassembled",
        "",
        "measured",
        "datagrams discarded because not all of their fragments could be kept",
    ),
    Metric(
        "service_counter",
        "",
        "measured",
        "growth of a service's own counter, from the ready nodes to their end",
        of=COUNTER,
    ),
    Metric(
        "link_late_p99_ms",
        "ms",
        "measured",
        "99th percentile of the link emulator's lateness in the window, minus stalls",
        title="lateness of the link emulator",
        lists=(
            (EVIDENCE, 50),
            (HARNESS, 60),
        ),
    ),
    Metric(
        "link_queue_full_share",
        "",
        "measured",
        "share of a run's frames that the link emulator dropped because its queue was full",
        title="share of frames dropped by the link's queue",
        is_share=True,
        lists=((EVIDENCE, 51),),
    ),
    Metric(
        "link_lost_share",
        "",
        "measured",
        "share of a run's frames that the link emulator lost at random",
        title="share of frames lost by the link",
        is_share=True,
        lists=((EVIDENCE, 52),),
    ),
    Metric(
        "inner_frames",
        "",
        "measured",
        "frames of the middleware inside the hosts that bypassed the bridge",
        title="frames that bypassed the bridge",
        lists=((EVIDENCE, 55),),
    ),
    Metric(
        "emulator_cpu_share",
        "cores",
        "measured",
        "cores that the link emulator used in the window",
        title="CPU of the link emulator",
        lists=((HARNESS, 15),),
    ),
    Metric(
        "harness_cpu_share",
        "cores",
        "measured",
        "cores that the agent used while sampling",
        title="CPU of agent and recorder",
        lists=(
            (EVIDENCE, 40),
            (HARNESS, 10),
        ),
    ),
    Metric(
        "other_load_share",
        "",
        "measured",
        "share of all cores' time that other processes wanted, weighted as the scheduler does",
        title="load of other processes, weighted",
        lists=(
            (EVIDENCE, 10),
            (HARNESS, 30),
        ),
    ),
    Metric(
        "other_cpu_share",
        "",
        "measured",
        "share of all cores' time that other processes used, at any priority",
        title="CPU of other processes, any priority",
        lists=(
            (EVIDENCE, 20),
            (HARNESS, 40),
        ),
    ),
    Metric(
        "memory_kib_per_node",
        "KiB",
        "measured",
        "resident memory, mean over the nodes",
        also=r"memory(_bytes|_kib|_kib_per_node)?",
        needs="rss",
        title="memory per node",
        verb="held",
        lists=((OFFERED, 20),),
    ),
    Metric(
        "loss_share",
        "",
        "measured",
        "share of the expected messages that were lost",
        also=r"loss(_share)?|lost",
        title="share of messages lost",
        is_share=True,
        lists=((OFFERED, 120),),
    ),
    Metric(
        "reordered_share",
        "",
        "measured",
        "share of the received messages that were reordered (RFC 4737)",
        also=r"reorder(ing|ed(_share)?)|ordering",
        title="share of messages reordered",
        is_share=True,
        lists=((OFFERED, 125),),
    ),
    Metric(
        "soft_deadline_missed_share",
        "",
        "measured",
        "share of the due messages that arrived later than 20 % of the period, at most 5 ms, or "
        "never",
        also=r"soft_deadline(_missed)?(_share)?",
        title="share of messages that missed the soft deadline",
        is_share=True,
        lists=((OFFERED, 132),),
    ),
    Metric(
        "hard_deadline_missed_share",
        "",
        "measured",
        "share of the due messages that arrived later than the period, at most 50 ms, or never",
        also=r"hard_deadline(_missed)?(_share)?",
        title="share of messages that missed the hard deadline",
        is_share=True,
        lists=((OFFERED, 134),),
    ),
    Metric(
        "relay_time_p50_us",
        "µs",
        "measured",
        "median time from the entry of a relay's callback to the entry of its send call",
    ),
    Metric(
        "failed_share",
        "",
        "measured",
        "share of expected calls that ended with an error before their timeout",
        also=r"failed(_share)?",
        title="share of calls that failed",
        is_share=True,
        lists=((OFFERED, 130),),
    ),
    Metric(
        "time_us_per_message",
        "µs",
        "measured",
        "time per message at the rate achieved",
        also=r"time(_[nu]s)?(_per_message)?",
        title="time per message",
        verb="took",
        lists=((OFFERED, 80),),
    ),
    Metric(
        "energy_uj_per_message",
        "µJ",
        "measured",
        "message energy per message sent",
        needs=ENERGY,
        also=r"energy(_message_j|_[um]?j_per_message)?",
        title="energy per message",
        verb="used",
        lists=((OFFERED, 100),),
    ),
    Metric(
        "energy_idle_subtracted_uj_per_message",
        "µJ",
        "measured",
        "energy of the run less idle power, per message",
        needs=ENERGY,
        also=r"energy_idle_subtracted(_[um]?j_per_message)?",
        title="energy per message by idle subtraction",
        verb="used",
        lists=((OFFERED, 90),),
    ),
    Metric(
        "power_above_machine_w",
        "W",
        "measured",
        "power in the window less power before any process",
        needs=ENERGY,
        also=r"power(_[um]?w)?",
        title="power above the machine's own",
        verb="drew",
        lists=((OFFERED, 110),),
    ),
    Metric(
        "cpu_s",
        "s",
        "measured",
        "CPU time of all measured processes in the window, including ended threads",
        needs="cpu_time",
        title="CPU time",
        verb="used",
        lists=(
            (OFFERED, 5),
            (FIGURES, 105),
        ),
    ),
    Metric("cpu_user_s", "s", "measured", "of it in user space, split by the kernel's ticks"),
    Metric("cpu_system_s", "s", "measured", "of it in the kernel, split by the kernel's ticks"),
    Metric(
        "memory_peak_kib",
        "KiB",
        "measured",
        "highest resident memory of the measured processes",
        title="peak memory",
        lists=((FIGURES, 125),),
    ),
    Metric(
        "memory_peak_is_bound",
        "",
        "bound",
        "whether memory_peak_kib is only a lower bound of the peak",
    ),
    Metric("pss_mean_kib", "KiB", "measured", "proportional memory, mean over marks (every 10 s)"),
    Metric("pss_peak_kib", "KiB", "measured", "proportional memory, highest at a mark"),
    Metric(
        "messages",
        "messages",
        "given",
        "messages of a command, as given or counted in its output",
        title="messages, given or counted",
        lists=((FIGURES, 12),),
    ),
    Metric(
        "messages_per_s",
        "1/s",
        "measured",
        "from the first to the last running total in the output",
        direction=HIGHER,
    ),
    Metric("messages_per_s_resolution_share", "", "bound", "largest relative error of that rate"),
    Metric("messages_span_s", "s", "measured", "from the first running total to the last"),
    Metric(
        "messages_uncounted_s", "s", "measured", "from the last running total to the window's end"
    ),
    Metric("messages_totals", "", "measured", "running totals of messages in the output"),
    Metric(
        "value",
        "",
        "measured",
        "last value of a figure that a command printed, in the unit of the figure's name",
        of=PRINTED,
    ),
    Metric("baseline_s", "s", "measured", "length of all baselines of a command together"),
    Metric(
        "ended_by", "", "identity", "cause of the window's end: itself, time (of --for) or Ctrl-C"
    ),
    Metric("exit_code", "", "identity", "the command's exit code"),
    Metric("exit_signal", "", "identity", "the signal that ended the command"),
    Metric("processes", "", "measured", "processes seen in the trees of a command"),
    Metric("unfollowed", "", "measured", "readings of processes beyond the largest number of rows"),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _REGISTRY}
OF_FLOWS = frozenset(
    {"sent", "expected", "received_unique", "lost", "undelivered", "late", "duplicates",
     "rate_hz_achieved", "undelivered_after_warmup", "unsent_after_warmup", "reordered",
     "backlog_growth",
     "throughput_bytes_per_s", "latency_samples", "expected_after_warmup", "lost_after_warmup",
     "delay_variation_p50_us", "delay_variation_p99_us", "clock_band_us", "loss_share",
     "soft_deadline_missed_share", "hard_deadline_missed_share", "reordered_share",
     *(f"{stem}_{name}_us" for stem in ("latency", "since_send")
       for name in ("p50", "p90", "p95", "p99", "p999", "max", "mean"))}
)  # fmt: skip
"""Names of the metrics that each flow has in a study with flows."""


_COUNTER = re.compile(r"[A-Za-z][\w-]*\.[A-Za-z][\w-]*", re.ASCII)
"""SERVICE.COUNTER at the end of a column."""


def metrics_in(name: str) -> tuple[str, ...]:
    """Return the names of the metrics in a list (OFFERED, FIGURES, …), in the order of the list."""
    places = {
        metric.name: place
        for metric in _REGISTRY
        for list_name, place in metric.lists
        if list_name == name
    }
    return tuple(sorted(places, key=lambda metric_name: places[metric_name]))


_PRINTED_UNITS = {
    "ns": "ns", "us": "µs", "ms": "ms", "s": "s", "min": "min", "bytes": "B", "kb": "kB",
    "mb": "MB", "gb": "GB", "kib": "KiB", "mib": "MiB", "gib": "GiB", "percent": "%", "pct": "%",
    "hz": "Hz", "per_s": "1/s", "rps": "1/s", "w": "W", "mw": "mW", "j": "J", "mj": "mJ",
    "uj": "µJ", "celsius": "°C",
}  # fmt: skip
"""Ends of the names of printed figures, after an underscore, and their units."""


def is_printed(stem: str) -> bool:
    """Return whether a column with this stem contains a figure that a command printed."""
    metric = METRICS.get(stem)
    return metric is not None and metric.of == PRINTED


def printed(name: str) -> Metric | None:
    """Return the metric of a figure that a command prints; None if it has no valid name.

    The end of the name gives the unit, as in "p50_ms". A lower value is better, except for figures
    such as rates; see `direction_of`.
    """
    if not name.isidentifier():
        return None
    end = _printed_end(name)
    unit = _PRINTED_UNITS.get(end, "")
    title = name[: len(name) - len(end)].replace("_", " ").strip() if end else name
    direction = direction_of(name, unit) or METRICS["value"].direction
    return replace(METRICS["value"], unit=unit, title=title, direction=direction)


def _printed_end(name: str) -> str:
    """Return the end of a name, after an underscore, that names a unit; "" if there is none."""
    ends = [end for end in _PRINTED_UNITS if name.casefold().endswith(f"_{end}")]
    return max(ends, key=len, default="")


_LESS_UNITS = re.compile(
    r"[nuµμm]?s|secs?|seconds?|min|minutes?|h|hours?|[nuµμmk]?j|[mk]?wh|[nuµμmk]?w"
    r"|[kmg]?i?b|bytes?",
    re.IGNORECASE,
)
"""Units of times, energies, powers and sizes in memory, of which less is better."""
_RATES = re.compile(
    r"/\s?(ns|[uµμ]s|ms|s|sec|second|min|h)(?![a-z])"
    r"|(^|[\W_])per[\W_]*(ns|us|ms|s|sec|seconds?|min|minutes?|h|hours?)$"
    r"|(^|[\W_])([kmg]?hz|[rqtf]ps|iops|[kmg]?i?b(it)?ps)$|s(\^?-|⁻)[1¹]$",
    re.IGNORECASE,
)
"""Ends of names, and units, of rates."""
_LESS_WORDS = frozenset(
    "lat latency latencies time times runtime duration elapsed took rtt delay jitter memory mem "
    "rss pss heap cpu".split()
)
_HARM_WORDS = frozenset(
    "error errors lost loss losses drop drops dropped fail fails failed failure failures miss "
    "misses missed retry retries retransmits retransmissions timeouts faults switches interrupts "
    "energy power joules watts".split()
)
"""Words of quantities of which less is better, also as a rate."""
_MORE_WORDS = frozenset("throughput goodput bandwidth rps qps tps iops fps".split())
_AMBIGUOUS_WORDS = frozenset(
    "uptime lifetime life mtbf mttf until interval period free available idle received sent "
    "delivered transferred written saved".split()
)
"""Words of times and sizes of which more may be better."""


def direction_of(name: str, unit: str) -> str:
    """Return LOWER or HIGHER for a figure that wattwire did not define, by its name and unit.

    The result is "" if they do not tell what is better, as for a score.
    """
    words = set(re.split(r"[\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold()))
    if words & _HARM_WORDS or unit.casefold().startswith(("j/", "w/")):
        return LOWER
    if words & _MORE_WORDS or _RATES.search(name) or _RATES.search(unit):
        return HIGHER
    if words & _AMBIGUOUS_WORDS:
        return ""
    known_unit = unit or _PRINTED_UNITS.get(_printed_end(name) or name.casefold(), "")
    is_percentile = any(re.fullmatch(r"p\d{2,}", word) for word in words)
    is_less = _LESS_UNITS.fullmatch(known_unit) or words & _LESS_WORDS or is_percentile
    return LOWER if is_less else ""


def find(name: str) -> Metric | None:
    """Return the metric with a name, synonym, or column of a node or flow; None if it is unknown.

    Synonyms take precedence. For example, "memory_kib" is the memory per node, although nodes have
    columns with this name.
    """
    for metric in _REGISTRY:
        if metric.also and re.fullmatch(metric.also, name):
            return metric
    of_flow = COLUMN.fullmatch(name)
    if of_flow:
        return METRICS[of_flow["stem"]] if of_flow["stem"] in OF_FLOWS else None
    stem, dot, node = name.partition(".")
    metric_of_column = METRICS.get(stem)
    if metric_of_column is None or not metric_of_column.is_number:
        return None
    if not dot:
        return metric_of_column
    if metric_of_column.of == COUNTER:
        return metric_of_column if _COUNTER.fullmatch(node) else None
    if metric_of_column.of == PRINTED:
        return printed(node)
    return metric_of_column if metric_of_column.of == NODE and _is_node(node) else None


def _is_node(suffix: str) -> bool:
    """Return whether `suffix` is `ROLE.INDEX` or the name of a service process."""
    role, dot, index = suffix.partition(".")
    if dot:
        return role in ROLES and index.isdecimal()
    return role not in ROLES and re.fullmatch(r"[A-Za-z][\w-]*", role) is not None


def check_response(name: str, place: str) -> Metric:
    """Return the metric of a response, which has one number per run.

    Raises UsageError for an unknown name, for a metric of system calls, and for a metric of nodes
    without a node, because a run has several numbers for it.
    """
    metric = check_name(name, place)
    if metric.needs == SYSTEM_CALLS:
        raise UsageError(
            f"{place}: only {SYSTEM_CALLS} measure {name}, and answers do not use these runs. "
            f"Put {name} in a question's `beside` or in a [[table]]."
        )
    if metric.of == COUNTER and "." not in name:
        raise UsageError(
            f"{place}: {name} has a value per counter of a service, not per run. Add both, for "
            f"example {name}.SERVICE.COUNTER; the page lists the names."
        )
    if metric.of == PRINTED and "." not in name:
        raise UsageError(f"{place}: name the figure, for example {name}.p50_ms")
    if metric.of == NODE and "." not in name:
        raise UsageError(
            f"{place}: {name} has a value per node, not per run. Add the node, for example "
            f"{name}.{next(iter(ROLES))}.0. To use the sum over the nodes, put {name} in a "
            "question's `beside` or in a [[table]]."
        )
    return metric


def check_name(name: str, place: str) -> Metric:
    """Return the metric `name`. Raises UsageError with the most similar known name."""
    metric = find(name)
    if metric is None and ".hop." in name:
        raise UsageError(
            f"{place}: {name} is a column of one hop, which only a [[figure]] of the kind "
            "“stacked” can show. The page has a table of the latency and losses of each hop."
        )
    if metric is None:
        # A list of sixty names is hard to read, so it is printed only without a similar name.
        similar = _suggested_column(name) or suggestion(name)
        hint = similar or f" Known: {', '.join(sorted(known_names()))}."
        raise UsageError(f'{place}: unknown response "{name}".{hint}')
    return metric


def _suggested_column(name: str) -> str:
    """Return ` Did you mean "x"?` for a column of a flow or a node with a misspelt metric."""
    stem, dot, rest = name.partition(".")
    is_flow = bool(COLUMN.fullmatch(name))
    known = OF_FLOWS if is_flow else [metric.name for metric in _REGISTRY if metric.of == NODE]
    if not dot or not stem:
        return ""
    longer = next((known_name for known_name in sorted(known) if known_name.startswith(stem)), "")
    similar = f' Did you mean "{longer}"?' if longer else suggestion(stem, known)
    return similar.replace('"?', f'.{rest}"?')


def known_names() -> list[str]:
    """Return the names of the metrics that can be responses, in the order of the registry."""
    return [metric.name for metric in _REGISTRY if metric.is_number]


def suggestion(name: str, known: Iterable[str] = ()) -> str:
    """Return ` Did you mean "x"?` for the most similar known name.

    If no name is similar, suggest the first name that contains `name` as a part (p99). The result
    is "" if there is no such name.
    """
    names = list(known) or known_names()
    close = nearest(name, names)
    if close:
        return close
    names_with_part = [known_name for known_name in names if name.lower() in known_name.split("_")]
    return f' Did you mean "{names_with_part[0]}"?' if names_with_part else ""
