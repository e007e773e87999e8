"""Compute the rows of a run without nodes, per process and in total, from the readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import polars as pl

from wattwire.model.deployment import COMMAND, PROBE, Request
from wattwire.run.exec.command_run import UNSEEN_MIN_NS, CommandRecord
from wattwire.run.exec.naming import process_name
from wattwire.run.exec.watched_topics import cpu_per_message
from wattwire.run.node_specs import SECOND_NS
from wattwire.run.results import power
from wattwire.run.results.resources import (
    CPU_TIME,
    Readings,
    attributed_energy,
    column,
    energy_estimates,
    life_costs,
    total,
    wire_costs,
)
from wattwire.run.results.summary import Collected
from wattwire.store.campaign import PROCESSES_TABLE, frame_of
from wattwire.store.files import write_table

UNSEEN = "(outside the scans)"
"""CPU time of processes after their last scan, and of processes that no scan saw."""
TEARDOWN = "(end of the processes)"
"""CPU time that the kernel's records of ended processes lack: the part of a clock tick before the
record, and the time in which they freed their memory."""
SHORT_NS = 100_000_000
"""CPU time below which a tick of the clock is more than a tenth of it."""
BIRTH_STEP_NS = 20_000_000
"""Uncertainty of a process's start: it is in clock ticks, converted with readings of two clocks."""
CPU_IS_BOUND, SWITCHES_ARE_BOUND = "cpu_is_bound", "switches_are_bound"
ENERGIES = ("energy_j", "energy_estimate_low_j", "energy_estimate_high_j")


class CommandResults(Collected):
    """The results of a run without nodes: its summary row, and a row per process of the trees."""

    record: CommandRecord
    processes: tuple[dict[str, Any], ...] = ()

    # -- differences from a run with nodes ---------------------------------------------------

    def _identity(self) -> dict[str, Any]:
        identity = super()._identity()
        return {**identity, "cell": " and ".join(self._labels[name] for name in self._summed)}

    @property
    def _request(self) -> Request:
        request = self.study.request_of(self.planned.treatment)
        assert request is not None
        return request

    @property
    def _labels(self) -> dict[str, str]:
        return self._request.labels

    @property
    def _summed(self) -> list[str]:
        """Return the subjects whose costs the totals add."""
        return list(self._request.summed)

    def _warm_up_calls(self) -> int:
        return 0

    def _cost_window_start_ns(self) -> int:
        return self.record.window["start_ns"]

    def _check_sums(self, done: list[dict[str, Any]]) -> list[Any]:
        return []

    def _read(self) -> dict[str, Readings]:
        return {self.record.name: Readings(_with_births(self.quantities, self.record))}

    @property
    def _readings(self) -> Readings:
        return self.readings[self.record.name]

    def write(self) -> None:
        """Write the files of a run, and the table of the processes."""
        if self.processes:
            write_table(frame_of(self.processes), self.folder / f"{PROCESSES_TABLE}.parquet")
        super().write()

    def document(self) -> dict[str, Any]:
        """Return the content of run.json, with the processes and the end of the window."""
        record, own = self.record, {"id", "ok", "members"}
        tables = record.after.items()
        return {
            **super().document(),
            "cells": self._labels,
            "ended_by": record.ended_by,
            "exit": record.exit,
            "messages": record.messages,
            "notes": record.notes,
            **({"layers": record.layers} if record.layers is not None else {}),
            **({"topics": record.topics} if record.topics is not None else {}),
            "members": {name: table["members"] for name, table in tables},
            "looking": {
                name: {k: v for k, v in table.items() if k not in own} for name, table in tables
            },
        }

    # -- sums of a subject -------------------------------------------------------------------

    @property
    def _window_s(self) -> float:
        begin_ns, end_ns = self.record.span
        return (end_ns - begin_ns) / SECOND_NS

    def _cpu_ns(self, subject: str) -> float | None:
        """Return the CPU time (ns) that a subject, or one of its processes, used in the window."""
        return self._readings.increase(CPU_TIME, "process", subject, *self.record.cost_span)

    @cached_property
    def _powers(self) -> dict[str, Any]:
        """Return the machine's mean power (W) in the baselines and in the window.

        Each baseline is weighted by its length. The power is None if one of them is unknown.
        """
        spans = [(b["begin_ns"], b["end_ns"]) for b in self.record.baselines.values()]
        series = self.record.sampling.get("series", [])
        window = self.record.span
        source, of_window = power.window_powers(self._readings, series, [*spans, window], window)
        seconds = [(end_ns - begin_ns) / SECOND_NS for begin_ns, end_ns in spans]
        powers_w = [power.mean_w(self._readings, source, span) for span in spans]
        energies_j = [
            None if watts is None else watts * length
            for watts, length in zip(powers_w, seconds, strict=True)
        ]
        joules = total(energies_j) if sum(seconds) else None
        base_w = None if joules is None else joules / sum(seconds)
        return {
            "power_machine_w": base_w,
            # No node is ever silent, so all energy above the baseline is the energy of messages.
            "power_silent_w": base_w,
            **of_window,
            "baseline_s": sum(seconds),
        }

    @cached_property
    def _energies(self) -> dict[str, float | None]:
        """Return measured energy and the energy model's range (J), by column.

        Energy is measured only for a command that this measurement started, because attached
        systems have no baseline.
        """
        names, window = list(self._labels), self.record.cost_span
        energies = energy_estimates(self._readings, names, window, self._model)
        base_w, window_w = self._powers["power_machine_w"], self._powers["power_window_w"]
        if base_w is None or window_w is None or self._summed != [COMMAND]:
            return energies
        spans = [(b["begin_ns"], b["end_ns"]) for b in self.record.baselines.values()]
        longest_baseline = max(spans, key=lambda span: span[1] - span[0])
        spans_of_window = window, longest_baseline
        dynamic_j = (window_w - base_w) * self._window_s
        return energies | attributed_energy(
            self._readings, names, spans_of_window, self._readings, spans_of_window, dynamic_j
        )

    def _energy_share(self, stem: str, subject: str, cpu_ns: float | None) -> float | None:
        """Return a process's part of its subject's energy (J), in proportion to its CPU time."""
        subject_j, subject_ns = self._energies.get(column(stem, subject)), self._cpu_ns(subject)
        if subject_j is None or cpu_ns is None or not subject_ns:
            return 0.0 if subject_j is not None and cpu_ns == 0 else None
        return subject_j * cpu_ns / subject_ns

    # -- rows --------------------------------------------------------------------------------

    def _subject_rows(self, subject: str) -> list[dict[str, Any]]:
        members = members_in_window(self.record.after[subject]["members"], self.record.span)
        rows = [self._row(subject, member, len(members) == 1) for member in members]
        subject_ns = self._cpu_ns(subject)
        seen_ns = sum(row["cpu_s"] or 0.0 for row in rows) * SECOND_NS
        if subject_ns is not None and subject_ns - seen_ns > UNSEEN_MIN_NS:
            all_known = self.record.after[subject].get("exit_records_missing") is None
            # The readings of a subject and of its processes are taken one after the other.
            if not all_known or any(member["ended_ns"] for member in members):
                name = TEARDOWN if all_known else UNSEEN
                rows.append(self._process_row(subject, name, subject_ns - seen_ns, None))
        return rows

    def _process_row(
        self, subject: str, process: str, cpu_ns: float, user_share: float | None
    ) -> dict[str, Any]:
        return {
            "run": self.planned.run,
            "attempt": self.attempt.number,
            **{f"factor.{k}": v for k, v in self.planned.treatment.varied},
            "subject": subject,
            "process": process,
            **self._cpu_columns(cpu_ns, user_share),
            "cpu_share": cpu_ns / SECOND_NS / self._window_s if self._window_s else None,
            **{stem: self._energy_share(stem, subject, cpu_ns) for stem in ENERGIES},
        }

    def _row(self, subject: str, member: Mapping[str, Any], is_only: bool) -> dict[str, Any]:
        name = member["subject"]
        at_begin = self._member_before(subject, name)
        user_ns, system_ns = _ticks_ns(member, at_begin)
        cpu_ns = self._member_cpu_ns(member, at_begin, float(user_ns + system_ns))
        subject_ns = self._cpu_ns(subject)
        if subject_ns is not None:  # two clocks of the kernel differ by a few microseconds
            cpu_ns = min(cpu_ns, subject_ns)
        # A few ticks tell no shares: those of one process could exceed those of all.
        has_shares = user_ns + system_ns >= (1 if is_only else SHORT_NS)
        user_share = user_ns / (user_ns + system_ns) if has_shares else None
        begin_ns, ended_ns = self.record.span[0], member["ended_ns"]
        process = process_name(member["argv"], member["command"])
        return {
            **self._process_row(subject, process, cpu_ns, user_share),
            CPU_IS_BOUND: _is_cpu_bound(member, cpu_ns),
            "pid": member["pid"],
            "parent": member["parent"],
            "argv": " ".join(member["argv"]),
            "began_s": (member["born_ns"] - begin_ns) / SECOND_NS,
            "ended_s": None if ended_ns is None else (ended_ns - begin_ns) / SECOND_NS,
            **self._member_memory(name, member, at_begin),
            "threads_max": member["threads_max"],
            **_switches(member, at_begin),
        }

    def _member_cpu_ns(
        self, member: Mapping[str, Any], at_begin: Mapping[str, Any], ticks_ns: float
    ) -> float:
        """Return a process's CPU time (ns) in the window; `ticks_ns` has the tick's resolution."""
        name, final_ns = member["subject"], member.get("cpu_ns")
        if final_ns is not None:
            if not at_begin:
                return float(final_ns)
            begin_ns = self.record.span[0]
            before_ns = self._readings.value_at(CPU_TIME, "process", name, begin_ns)
            if before_ns is not None:
                return max(0.0, final_ns - before_ns)
        metered_ns = self._cpu_ns(name)
        if metered_ns is None:
            return ticks_ns
        # Tick counts are truncated, so over a whole lifetime they never exceed the CPU time.
        # They can include the end of a process, which the last reading misses. Over a part of
        # the lifetime, two rounding errors would add up. Those of a running process are read
        # after the window.
        is_of_part = at_begin or member["ended_ns"] is None
        return metered_ns if is_of_part else max(metered_ns, ticks_ns)

    def _member_before(self, subject: str, name: str) -> dict[str, Any]:
        members = self.record.before.get(subject, {}).get("members", [])
        return next((member for member in members if member["subject"] == name), {})

    @staticmethod
    def _cpu_columns(cpu_ns: float | None, user_share: float | None) -> dict[str, float | None]:
        cpu_s = None if cpu_ns is None else cpu_ns / SECOND_NS
        if cpu_s is None or user_share is None:
            return {"cpu_s": cpu_s, "cpu_user_s": None, "cpu_system_s": None}
        user_s = cpu_s * user_share
        return {"cpu_s": cpu_s, "cpu_user_s": user_s, "cpu_system_s": cpu_s - user_s}

    def _memory(self, name: str) -> dict[str, float | None]:
        """Return the resident and the proportional memory of a subject, in KiB, from readings."""
        columns: dict[str, float | None] = {}
        for quantity, stem in (("rss", "memory"), ("pss", "pss")):
            in_window = self.quantities.filter(
                pl.col("quantity") == quantity,
                pl.col("subject") == name,
                pl.col("t_ns").is_between(*self.record.span),
                pl.col("value") > 0,
            )
            values = in_window["value"].to_numpy() / 1024
            is_known = len(values) > 0
            columns[f"{stem}_mean_kib"] = float(values.mean()) if is_known else None
            columns[f"{stem}_peak_kib"] = float(values.max()) if is_known else None
        return columns

    def _member_memory(
        self, name: str, member: Mapping[str, Any], at_begin: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the memory of a process, in KiB, and whether its peak is only a lower bound.

        The kernel's peak is of the whole life. It is that of the window if the process started in
        the window, or if the peak rose there.
        """
        columns: dict[str, Any] = self._memory(name)
        peak_bytes, earlier_bytes = member["rss_peak_bytes"], at_begin.get("rss_peak_bytes", 0)
        is_exact = member["is_final"] or member["ended_ns"] is None
        if peak_bytes > earlier_bytes:
            columns["memory_peak_kib"] = max(columns["memory_peak_kib"] or 0.0, peak_bytes / 1024)
        else:
            is_exact = False
        columns["memory_peak_is_bound"] = not is_exact
        return columns

    def _responses(self, models: Mapping[str, dict[str, float] | None]) -> dict[str, Any]:
        record, names = self.record, list(self._labels)
        if not record.window.get("end_ns"):
            return {}
        self._model = models.get(self.record.name)
        self.processes = tuple(row for name in names for row in self._subject_rows(name))
        cpu_ns = {name: self._cpu_ns(name) for name in names}
        used_ns = total(cpu_ns[name] for name in self._summed)
        exit_status = record.exit or {}
        window, messages = record.span, record.messages
        shares = {
            column("cpu_share", name): None if ns is None else ns / SECOND_NS / self._window_s
            for name, ns in cpu_ns.items()
        }
        per_message = None if used_ns is None or not messages else used_ns / 1000 / messages
        printed = {**record.values}
        if record.topics is not None:
            of_processes = cpu_per_message(record.topics, self.processes)
            for name in of_processes.keys() & printed.keys():
                record.notes.append(
                    f"{name}: the value that the command printed is kept, so the "
                    "CPU time per message of the process is not stored"
                )
            printed = of_processes | printed
        return {
            "window_s": self._window_s,
            "cost_window_s": self._window_s,
            "ended_by": record.ended_by,
            **self._attached_ends(),
            "exit_code": exit_status.get("code"),
            "exit_signal": exit_status.get("signal"),
            **{f"value.{name}": value for name, value in printed.items()},
            "messages": messages,
            "sent_in_cost_window": messages,
            **self._message_rate(),
            **self._cpu_columns(used_ns, self._user_share()),
            "cpu_us_per_message": per_message,
            **shares,
            **self._total_memory(),
            **wire_costs(self._readings, window, messages),
            **life_costs(self._readings, [COMMAND] if COMMAND in names else []),
            **self._energies,
            "energy_attributed_j": total(
                self._energies.get(column("energy_j", name)) for name in self._summed
            ),
            **self._powers,
            "processes": sum(1 for row in self.processes if row.get("pid")),
            "unfollowed": sum(int(table.get("unfollowed", 0)) for table in record.after.values()),
        }

    def _attached_ends(self) -> dict[str, float]:
        """Return the time (s) from the window's begin to the end of each target that ended in it.

        The children of a process can outlive it; a group of processes ends with its last one.
        """
        names = [name for name in self._labels if name not in (COMMAND, PROBE)]
        ends_s = {}
        for name, target in zip(names, self._request.attached, strict=True):
            members = self.record.after[name]["members"]
            roots = [m for m in members if target.cgroup is not None or m["pid"] == target.pid]
            ends_ns = [m["ended_ns"] for m in roots]
            if ends_ns and None not in ends_ns:
                ends_s[column("ended_s", name)] = (max(ends_ns) - self.record.span[0]) / SECOND_NS
        return ends_s

    def _message_rate(self) -> dict[str, float]:
        """Return the rate of messages between the first and the last running total, if any."""
        totals = self.record.totals
        if totals is None or totals.per_s is None or totals.resolution_share is None:
            return {}
        end_s = self.record.span[1] / SECOND_NS
        return {
            "messages_per_s": totals.per_s,
            "messages_per_s_resolution_share": totals.resolution_share,
            "messages_span_s": totals.span_s,
            "messages_uncounted_s": max(0.0, end_s - totals.last[0]),
            "messages_totals": totals.readings,
        }

    def _user_share(self) -> float | None:
        """Return the share of CPU time in user space, over all subjects.

        The value comes from the resource usage that the guard reports, or else from the processes.
        """
        usage = (self.record.exit or {}).get("rusage")
        is_of_window = COMMAND not in self.record.before
        if usage and is_of_window and self._summed == [COMMAND]:
            total_ns = usage["user_ns"] + usage["system_ns"]
            return usage["user_ns"] / total_ns if total_ns else None
        ticks = [
            _ticks_ns(member, self._member_before(subject, member["subject"]))
            for subject in self._summed
            for member in members_in_window(self.record.after[subject]["members"], self.record.span)
        ]
        used_ns = sum(user_ns + system_ns for user_ns, system_ns in ticks)
        return sum(user_ns for user_ns, _ in ticks) / used_ns if used_ns else None

    def _total_memory(self) -> dict[str, float | None]:
        """Return the memory (KiB) of each subject, and the sums; None if any is unknown."""
        memories = {name: self._memory(name) for name in self._labels}
        sums: dict[str, Any] = {
            key: total(memories[name][key] for name in self._summed)
            for key in next(iter(memories.values()))
        }
        return {
            **{column("memory_kib", name): m["memory_mean_kib"] for name, m in memories.items()},
            "memory_kib_total": sums.pop("memory_mean_kib"),
            **sums,
            **self._highest_memory(sums["memory_peak_kib"]),
        }

    def _highest_memory(self, summed_kib: float | None) -> dict[str, Any]:
        """Return the highest memory (KiB) of all processes together, and whether it is a bound.

        The sum of several processes is known at readings only, and is at least the highest of one
        process. `wait4` knows that of a command that ended in the window.
        """
        exit_status = self.record.exit or {}
        usage = exit_status.get("rusage") if self.record.ended_by == "itself" else None
        in_window = usage is not None and not self.record.before.get(COMMAND)
        processes = [row for row in self.processes if row["subject"] in self._summed]
        peaks_kib = [row.get("memory_peak_kib") for row in processes]
        if in_window and usage is not None and COMMAND in self._summed:
            peaks_kib.append(usage["maxrss_bytes"] / 1024)
        known_kib = [kib for kib in (summed_kib, *peaks_kib) if kib is not None]
        is_alone = len(processes) == 1 and not processes[0].get("memory_peak_is_bound")
        return {
            "memory_peak_kib": max(known_kib, default=None),
            "memory_peak_is_bound": not is_alone,
        }


def _ticks_ns(member: Mapping[str, Any], at_begin: Mapping[str, Any]) -> tuple[int, int]:
    """Return the user and the system time (ns) of a process in the window, in clock ticks."""
    return (
        member["user_ns"] - at_begin.get("user_ns", 0),
        member["system_ns"] - at_begin.get("system_ns", 0),
    )


def _is_cpu_bound(member: Mapping[str, Any], cpu_ns: float) -> bool:
    """Return whether the CPU time of an ended process is only a lower bound.

    It is that of the last scan without final figures. The kernel's record of the end lacks up to a
    clock tick, which matters for a short process.
    """
    if member["ended_ns"] is None or member.get("is_reaped"):
        return False
    return member.get("cpu_ns") is None or cpu_ns < SHORT_NS


def _switches(member: Mapping[str, Any], at_begin: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context switches of a process, and whether they are only a lower bound.

    The kernel shows no count of a thread that has ended, until the process ends. So the counts of a
    process with threads at two times cannot be subtracted if only the later one is final.
    """
    kinds = ("voluntary_switches", "involuntary_switches")
    has_threads, is_final = member["threads_max"] > 1, member["is_final"]
    if at_begin and is_final and has_threads:
        return {**dict.fromkeys(kinds), SWITCHES_ARE_BOUND: None}
    is_complete = is_final or (member["ended_ns"] is None and not has_threads)
    counts = {kind: member[kind] - at_begin.get(kind, 0) for kind in kinds}
    return {**counts, SWITCHES_ARE_BOUND: not is_complete}


def members_in_window(
    members: Iterable[Mapping[str, Any]], span: tuple[int, int]
) -> list[Mapping[str, Any]]:
    """Return the processes that lived in the span (begin and end, ns).

    The start of a process is uncertain by BIRTH_STEP_NS, so the start of a command that ends at
    once can appear to follow the window's end.
    """
    begin_ns, end_ns = span
    return [
        member
        for member in members
        if member["born_ns"] < end_ns + BIRTH_STEP_NS
        and (member["ended_ns"] is None or member["ended_ns"] > begin_ns)
    ]


def _with_births(quantities: pl.DataFrame, record: CommandRecord) -> pl.DataFrame:
    """Add a reading of 0 at the start of each process that started in the window.

    The CPU time is 0 at that time, but the sampler takes no reading then.
    """
    if not record.window.get("end_ns"):
        return quantities
    begin_ns, end_ns = record.span
    births = {
        member["subject"]: member["born_ns"]
        for table in record.after.values()
        for member in table["members"]
        if begin_ns - BIRTH_STEP_NS <= member["born_ns"] <= end_ns
    }
    if COMMAND in record.after and COMMAND not in record.before:
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
