"""Compute the rows of a repeat, per process and in total, from the sampler's readings."""

from __future__ import annotations

from typing import Any

import polars as pl

from wattwire.run.exec.measure import COMMAND, Repeat, Request, attached_name
from wattwire.run.exec.naming import process_name
from wattwire.run.node_specs import SECOND_NS
from wattwire.run.results import power
from wattwire.run.results.resources import (
    CPU_TIME,
    Readings,
    attributed_energy,
    column,
    energy_estimates,
    total,
)

UNSEEN = "(ended between two scans)"
UNSEEN_MIN_NS = 1_000_000
BIRTH_STEP_NS = 20_000_000
"""Uncertainty of a process's start: it is in clock ticks, converted with readings of two clocks."""

COLUMNS: dict[str, tuple[str, str, str]] = {
    "repeat": ("", "identity", "repeat, from 1"),
    "subject": ("", "identity", "command, or attached0, attached1, … in their order"),
    "process": ("", "identity", "node's name, script or program"),
    "pid": ("", "identity", "process id"),
    "parent": ("", "identity", "process id of the parent at first sight"),
    "argv": ("", "identity", "arguments as last seen"),
    "began_s": ("s", "measured", "birth, from the window's begin"),
    "ended_s": ("s", "measured", "end, from the window's begin; empty: lived at its end"),
    "window_s": ("s", "measured", "length of the window"),
    "ended_by": ("", "measured", "what ended the window"),
    "exit_code": ("", "measured", "the command's exit code"),
    "exit_signal": ("", "measured", "the signal that ended the command"),
    "cpu_s": ("s", "measured", "CPU time in the window, including ended threads"),
    "cpu_user_s": ("s", "measured", "of it in user space, split by the kernel's ticks"),
    "cpu_system_s": ("s", "measured", "of it in the kernel, split by the kernel's ticks"),
    "cpu_share": ("cores", "measured", "cores used: CPU time per second of the window"),
    "memory_mean_kib": ("KiB", "measured", "resident memory, mean of readings once a second"),
    "memory_peak_kib": ("KiB", "measured", "resident memory, highest"),
    "pss_mean_kib": ("KiB", "measured", "proportional memory, mean over marks (every 10 s)"),
    "pss_peak_kib": ("KiB", "measured", "proportional memory, highest at a mark"),
    "threads_max": ("threads", "measured", "highest number of threads at a reading"),
    "voluntary_switches": ("", "measured", "voluntary context switches of threads seen alive"),
    "involuntary_switches": ("", "measured", "involuntary context switches of threads seen alive"),
    "energy_j": ("J", "measured", "energy above the machine's baseline, by CPU time above it"),
    "energy_estimate_low_j": ("J", "estimate", "low end of a model of CPU time"),
    "energy_estimate_high_j": ("J", "estimate", "high end of a model of CPU time"),
    "power_baseline_w": ("W", "measured", "power without the command, before and after"),
    "power_window_w": ("W", "measured", "power in the window"),
    "baseline_s": ("s", "measured", "length of both baselines together"),
    "messages": ("messages", "given", "as given or counted in the output"),
    "messages_per_s": ("1/s", "measured", "from the first to the last running total"),
    "messages_per_s_resolution_share": ("", "bound", "largest relative error of that rate"),
    "messages_span_s": ("s", "measured", "from the first running total to the last"),
    "messages_uncounted_s": ("s", "measured", "from the last running total to the window's end"),
    "cpu_us_per_message": ("µs", "measured", "CPU time of all measured processes, per message"),
    "energy_j_per_message": ("J", "measured", "energy of all measured processes, per message"),
    "energy_estimate_low_j_per_message": ("J", "estimate", "low end of a model, per message"),
    "energy_estimate_high_j_per_message": ("J", "estimate", "high end of a model, per message"),
    "processes": ("", "measured", "processes seen"),
    "unfollowed": ("", "measured", "readings of processes beyond the largest number of rows"),
    "other_load_cores": (
        "cores",
        "measured",
        ("CPU used by all other processes, including the kernel"),
    ),
    "harness_cpu_share": ("cores", "measured", "cores that the agent used while sampling"),
}


def describe_columns() -> dict[str, dict[str, str]]:
    """Return the unit, kind and summary of each column of both tables."""
    return {
        name: {"unit": unit, "kind": kind, "summary": summary}
        for name, (unit, kind, summary) in COLUMNS.items()
    }


class ExecRows:
    """The rows of one repeat, computed from its readings."""

    def __init__(
        self,
        number: int,
        request: Request,
        repeat: Repeat,
        quantities: pl.DataFrame,
        model: dict[str, float] | None,
    ) -> None:
        self._number, self._request, self._repeat = number, request, repeat
        self._model = model
        self._readings = Readings(_with_births(quantities, repeat))
        self._frame = quantities
        self._energy = self._subject_energies()
        subject_rows = [self._subject_rows(name) for name in request.subjects]
        self.processes = [row for rows in subject_rows for row in rows]
        self.summary = self._summary()

    # -- sums of a subject -------------------------------------------------------------------

    def cpu_ns(self, subject: str) -> float | None:
        """Return the CPU time (ns) that a subject, or one of its processes, used in the window."""
        return self._readings.increase(CPU_TIME, "process", subject, *self._repeat.window)

    def _power(self) -> tuple[float | None, float | None]:
        """Return the machine's mean power (W) in the baselines and in the window.

        Each baseline is weighted by its length. Both values are None if either is unknown.
        """
        spans = [*self._repeat.baselines, self._repeat.window]
        series = self._repeat.sampling.get("series", [])
        source = power.choose(self._readings, series, spans)
        joules, seconds = 0.0, 0.0
        for begin_ns, end_ns in self._repeat.baselines:
            watts = power.mean_w(self._readings, source, (begin_ns, end_ns))
            if watts is None:
                return None, None
            joules += watts * (end_ns - begin_ns) / SECOND_NS
            seconds += (end_ns - begin_ns) / SECOND_NS
        base_w = joules / seconds if seconds else None
        return base_w, power.mean_w(self._readings, source, self._repeat.window)

    def _subject_energies(self) -> dict[str, float | None]:
        """Return measured energy and the energy model's range (J), by column.

        Energy is measured only for a command that this measurement started, because attached
        systems have no baseline.
        """
        repeat, names = self._repeat, self._request.subjects
        energies = energy_estimates(self._readings, names, repeat.window, self._model)
        base_w, window_w = self._power()
        if base_w is None or window_w is None or not repeat.baselines or self._request.targets:
            return energies
        dynamic_j = (window_w - base_w) * repeat.window_s
        longest_baseline = max(repeat.baselines, key=lambda baseline: baseline[1] - baseline[0])
        return energies | attributed_energy(
            self._readings, names, repeat.window, longest_baseline, dynamic_j
        )

    def _energy_share(self, stem: str, subject: str, cpu_ns: float | None) -> float | None:
        """Return a process's part of its subject's energy (J), in proportion to its CPU time."""
        subject_j, subject_ns = self._energy.get(column(stem, subject)), self.cpu_ns(subject)
        if subject_j is None or cpu_ns is None or not subject_ns:
            return 0.0 if subject_j is not None and cpu_ns == 0 else None
        return subject_j * cpu_ns / subject_ns

    # -- rows --------------------------------------------------------------------------------

    def _subject_rows(self, subject: str) -> list[dict[str, Any]]:
        members = self._repeat.after[subject]["members"]
        begin_ns, end_ns = self._repeat.window
        in_window = [
            member
            for member in members
            if member["born_ns"] < end_ns
            and (member["ended_ns"] is None or member["ended_ns"] > begin_ns)
        ]
        rows = [self._row(subject, member) for member in in_window]
        subject_ns = self.cpu_ns(subject)
        seen_ns = sum(row["cpu_s"] or 0.0 for row in rows) * SECOND_NS
        if subject_ns is not None and subject_ns - seen_ns > UNSEEN_MIN_NS:
            rows.append(self._unseen_row(subject, subject_ns - seen_ns))
        return rows

    def _row(self, subject: str, member: dict[str, Any]) -> dict[str, Any]:
        name = member["subject"]
        at_begin = self._member_before(subject, name)
        user_ns = member["user_ns"] - at_begin.get("user_ns", 0)
        system_ns = member["system_ns"] - at_begin.get("system_ns", 0)
        metered_ns = self.cpu_ns(name)
        cpu_ns = metered_ns if metered_ns is not None else float(user_ns + system_ns)
        if not at_begin:
            # Tick counts are truncated, so over a whole lifetime they never exceed the CPU time.
            # They can include the end of a process, which the last reading misses. Over a part of
            # the lifetime, two rounding errors would add up.
            cpu_ns = max(cpu_ns, float(user_ns + system_ns))
        user_share = user_ns / (user_ns + system_ns) if user_ns + system_ns else None
        begin_ns = self._repeat.window[0]
        ended_ns = member["ended_ns"]
        row: dict[str, Any] = {
            "repeat": self._number,
            "subject": subject,
            "process": process_name(member["argv"], member["command"]),
            "pid": member["pid"],
            "parent": member["parent"],
            "argv": " ".join(member["argv"]),
            "began_s": (member["born_ns"] - begin_ns) / SECOND_NS,
            "ended_s": None if ended_ns is None else (ended_ns - begin_ns) / SECOND_NS,
            **self._cpu_columns(cpu_ns, user_share),
            **self._memory(name, member if not at_begin else None),
            "threads_max": member["threads_max"],
        }
        for key in ("voluntary_switches", "involuntary_switches"):
            row[key] = member[key] - at_begin.get(key, 0)
        return row | self._energy_columns(subject, cpu_ns)

    def _member_before(self, subject: str, name: str) -> dict[str, Any]:
        members = self._repeat.before.get(subject, {}).get("members", [])
        return next((member for member in members if member["subject"] == name), {})

    def _cpu_columns(self, cpu_ns: float, user_share: float | None) -> dict[str, float | None]:
        cpu_s = cpu_ns / SECOND_NS
        return {
            "cpu_s": cpu_s,
            "cpu_user_s": None if user_share is None else cpu_s * user_share,
            "cpu_system_s": None if user_share is None else cpu_s * (1 - user_share),
            "cpu_share": cpu_s / self._repeat.window_s if self._repeat.window_s else None,
        }

    def _energy_columns(self, subject: str, cpu_ns: float) -> dict[str, float | None]:
        stems = ("energy_j", "energy_estimate_low_j", "energy_estimate_high_j")
        return {stem: self._energy_share(stem, subject, cpu_ns) for stem in stems}

    def _memory(self, name: str, member: dict[str, Any] | None) -> dict[str, float | None]:
        """Return the resident and the proportional memory of a process, in KiB.

        `member` is given only for a process that started in the window. The kernel's peak value
        then also counts. The peak of an older process may precede the window.
        """
        begin_ns, end_ns = self._repeat.window
        columns: dict[str, float | None] = {}
        for quantity, stem in (("rss", "memory"), ("pss", "pss")):
            in_window = self._frame.filter(
                pl.col("quantity") == quantity,
                pl.col("subject") == name,
                pl.col("t_ns").is_between(begin_ns, end_ns),
                pl.col("value") > 0,
            )
            values = in_window["value"].to_numpy() / 1024
            is_known = len(values) > 0
            columns[f"{stem}_mean_kib"] = float(values.mean()) if is_known else None
            columns[f"{stem}_peak_kib"] = float(values.max()) if is_known else None
        if member is not None and member["rss_peak_bytes"]:
            own_kib = member["rss_peak_bytes"] / 1024
            columns["memory_peak_kib"] = max(columns["memory_peak_kib"] or 0.0, own_kib)
        return columns

    def _unseen_row(self, subject: str, cpu_ns: float) -> dict[str, Any]:
        return {
            "repeat": self._number,
            "subject": subject,
            "process": UNSEEN,
            **self._cpu_columns(cpu_ns, None),
            **self._energy_columns(subject, cpu_ns),
        }

    def _summary(self) -> dict[str, Any]:
        repeat, names = self._repeat, self._request.subjects
        cpu_ns = total(self.cpu_ns(name) for name in names)
        base_w, window_w = self._power()
        exit_status = repeat.exit or {}
        row: dict[str, Any] = {
            "repeat": self._number,
            "window_s": repeat.window_s,
            "ended_by": repeat.ended_by,
            "exit_code": exit_status.get("code"),
            "exit_signal": exit_status.get("signal"),
            **self._cpu_columns(cpu_ns or 0.0, self._user_share()),
            **self._total_memory(),
            "processes": sum(1 for row in self.processes if row.get("pid")),
            "unfollowed": sum(int(table.get("unfollowed", 0)) for table in repeat.after.values()),
            "power_baseline_w": base_w,
            "power_window_w": window_w,
            "baseline_s": sum(end_ns - begin_ns for begin_ns, end_ns in repeat.baselines)
            / SECOND_NS,
            "messages": repeat.messages,
            **self._rate(),
            **self._machine_load(cpu_ns),
        }
        if cpu_ns is None:
            row |= dict.fromkeys(("cpu_s", "cpu_user_s", "cpu_system_s", "cpu_share"))
        for stem in ("energy_j", "energy_estimate_low_j", "energy_estimate_high_j"):
            energies = [self._energy.get(column(stem, name)) for name in names]
            row[stem] = total(energies) if energies else None
            row[f"{stem}_per_message"] = _per(row[stem], repeat.messages)
        row["cpu_us_per_message"] = _per(row["cpu_s"], repeat.messages, 1e6)
        return row

    def _rate(self) -> dict[str, float]:
        """Return the rate of messages between the first and the last running total, if any."""
        totals = self._repeat.totals
        if totals is None or totals.per_s is None or totals.resolution_share is None:
            return {}
        end_s = self._repeat.window[1] / SECOND_NS
        return {
            "messages_per_s": totals.per_s,
            "messages_per_s_resolution_share": totals.resolution_share,
            "messages_span_s": totals.span_s,
            "messages_uncounted_s": max(0.0, end_s - totals.last[0]),
        }

    def _user_share(self) -> float | None:
        """Return the share of CPU time in user space, over all subjects.

        The value comes from the resource usage that the guard reports, or else from the rows.
        """
        usage = (self._repeat.exit or {}).get("rusage")
        if usage and self._request.subjects == [COMMAND]:
            total_ns = usage["user_ns"] + usage["system_ns"]
            return usage["user_ns"] / total_ns if total_ns else None
        user_s = sum(row.get("cpu_user_s") or 0.0 for row in self.processes)
        system_s = sum(row.get("cpu_system_s") or 0.0 for row in self.processes)
        return user_s / (user_s + system_s) if user_s + system_s else None

    def _total_memory(self) -> dict[str, float | None]:
        """Return the total memory (KiB) of all subjects; None if any is unknown."""
        memories = [self._memory(name, None) for name in self._request.subjects]
        return {key: total(memory[key] for memory in memories) for key in memories[0]}

    def _machine_load(self, cpu_ns: float | None) -> dict[str, float | None]:
        window = self._repeat.window
        seconds = self._repeat.window_s
        busy_ns = self._readings.increase("busy_time", "machine", "machine", *window)
        harness_ns = self._readings.increase(CPU_TIME, "harness", "agent", *window)
        other_cores = None
        if busy_ns is not None and cpu_ns is not None and seconds:
            other_cores = max(0.0, busy_ns - cpu_ns - (harness_ns or 0.0)) / SECOND_NS / seconds
        harness_share = (
            None if harness_ns is None or not seconds else harness_ns / SECOND_NS / seconds
        )
        return {"other_load_cores": other_cores, "harness_cpu_share": harness_share}


def _per(value: float | None, messages: float | None, factor: float = 1.0) -> float | None:
    return value * factor / messages if value is not None and messages else None


def _with_births(quantities: pl.DataFrame, repeat: Repeat) -> pl.DataFrame:
    """Add a reading of 0 at the start of each process that started in the window.

    The CPU time is 0 at that time, but the sampler takes no reading then.
    """
    begin_ns, end_ns = repeat.window
    births = {
        member["subject"]: member["born_ns"]
        for table in repeat.after.values()
        for member in table["members"]
        if begin_ns - BIRTH_STEP_NS <= member["born_ns"] <= end_ns
    }
    if COMMAND in repeat.after:
        births[COMMAND] = begin_ns
    cpu_readings = quantities.filter(
        pl.col("quantity") == CPU_TIME, pl.col("subject").is_in(list(births))
    )
    first_readings = cpu_readings.sort("t_ns").unique(subset=["subject", "meter"], keep="first")
    if first_readings.is_empty():
        return quantities
    zeros = first_readings.with_columns(
        pl.min_horizontal(
            pl.col("t_ns") - 1,
            pl.max_horizontal(
                pl.lit(begin_ns), pl.col("subject").replace_strict(births, return_dtype=pl.Int64)
            ),
        ).alias("t_ns"),
        pl.lit(0.0).alias("value"),
    )
    return pl.concat([quantities, zeros.select(quantities.columns)])


__all__ = ["ExecRows", "UNSEEN", "attached_name", "describe_columns"]
