"""Compute the summary row of a run: every response, with its unit and kind."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.design import UNSAMPLED, PlannedRun
from wattwire.model.deployment import BRIDGE, service_of
from wattwire.model.flows import flow_parts
from wattwire.model.hosts.clocks import ONE_CLOCK
from wattwire.model.ledger import Drain
from wattwire.model.records import SampleFileError, Samples
from wattwire.model.study import Study
from wattwire.model.verdict import COMPLETE, Outcome, Reason, Verdict, worst
from wattwire.model.warm_up import SETTLING
from wattwire.model.words import number, plural
from wattwire.run.layers.profiling import with_records
from wattwire.run.layers.recorder import unjoined, without_window
from wattwire.run.node_specs import MILLISECOND_NS, SECOND_NS, RunNode, warm_up_calls
from wattwire.run.proof.result import Proof, proof_of
from wattwire.run.record import HostRecord, OpenAttempt, RunRecord
from wattwire.run.results import (
    carrying,
    cores,
    delivery,
    evidence,
    node_checks,
    resources,
    syscalls,
)
from wattwire.run.results.convert import (
    MESSAGE_SCHEMA,
    QUANTITY_SCHEMA,
    message_batches,
    open_all_samples,
    quantities_frame,
)
from wattwire.run.results.costs import costs_of_hosts
from wattwire.run.results.driving import DriveTally
from wattwire.run.results.flows import FlowFacts, FlowTallies
from wattwire.run.results.saturation import Schedule, Waits, backlog_growth, is_held_up
from wattwire.run.results.uncounted_calls import counted_calls, first_counted_ns, flag_calls
from wattwire.run.services import COUNTER_METRIC
from wattwire.store import Messages
from wattwire.store.files import discard, write_batches, write_new, write_table


class Collected:
    """All results of one attempt. `write` stores them in the attempt's folder.

    Messages are written earlier, because they may not fit in memory.
    """

    def __init__(
        self,
        attempt: OpenAttempt,
        record: RunRecord,
        before: dict[str, Any],
        models: Mapping[str, dict[str, float] | None],
    ) -> None:
        """Compute all results. `models` maps each host to its energy model.

        `before` has the conditions of the machines before the attempt.
        """
        self.attempt, self.record, self.before = attempt, record, before
        self._without_records: list[int] = []
        self._backlogs: dict[int, tuple[int, ...]] = {}
        self._waits: dict[int, Waits] = {}
        self._goals_without_result = 0
        self._drive = self._drive_tally()
        self.messages, file_reasons = self._messages()
        self.quantities = self._quantities()
        self.readings = self._read()
        if record.window.get("end_ns"):
            begin_ns = self._cost_window_start_ns()
            for host in record.hosts.values():
                host.window["cost_begin_ns"] = begin_ns + host.offset_ns - record.offset_ns
        states = record.processes.states
        done = [s.lines["DONE"] for s in states.values() if "DONE" in s.lines]
        validity = attempt.study.validity
        reasons, figures = evidence.judge(record, self.readings, validity, done)
        on_wire, wire_figures = carrying.judge(record, self.readings, self._messages_path, validity)
        figures |= wire_figures
        self.reasons: list[Reason] = [*file_reasons, *reasons, *on_wire]
        self.calls = self._system_calls()
        self.layers, layer_reasons = self._layers()
        self.reasons += layer_reasons
        self.row = {**self._responses(models), **figures}
        self.drive = self._drive.document() if self._drive else {}
        cores_row, self.cores, cores_reasons = cores.where_it_ran(
            record, self.readings, self.row.get("sent_in_cost_window")
        )
        self.row |= cores_row
        self.reasons += cores_reasons
        self._judge_saturation()
        per_process = self.calls.get("processes", {})
        self.row |= syscalls.responses(per_process, self.calls.get("messages", 0))
        self.proof = self._proof()
        self.row |= self.proof.columns if self.proof else {}
        if not file_reasons:  # without records there are no sums to check
            self.reasons += self._check_sums(done)
        self.verdict = worst(self.reasons)
        self.row = {**self._identity(), **self.row}

    @classmethod
    def failed(
        cls, attempt: OpenAttempt, record: RunRecord, before: dict[str, Any], reason: Reason
    ) -> Collected:
        """Return the results of an attempt that ended in an exception: identity and reason."""
        collected = cls.__new__(cls)
        collected.attempt, collected.record, collected.before = attempt, record, before
        empty = pl.DataFrame(schema=MESSAGE_SCHEMA)
        collected.messages = Messages.of(empty)
        write_table(empty, collected._messages_path)
        collected.quantities = pl.DataFrame(schema=QUANTITY_SCHEMA)
        collected.calls, collected.cores, collected.layers = {}, {}, {}
        collected.proof = None
        collected.drive = {}
        if record.recorder is not None:
            record.recorder.discard()
        collected.reasons = [*record.reasons, reason]
        collected.verdict = worst(collected.reasons)
        collected.row = collected._identity()
        return collected

    @property
    def planned(self) -> PlannedRun:
        return self.attempt.planned

    @property
    def study(self) -> Study:
        return self.attempt.study

    @property
    def folder(self) -> Path:
        """Return the folder of the attempt."""
        return self.attempt.folder

    # -- reading -----------------------------------------------------------------------------

    def _messages(self) -> tuple[Messages, list[Reason]]:
        """Check the nodes' records and write them in batches to one table.

        Return the messages and the reasons against the run.
        """
        record, reasons = self.record, []
        samples: dict[int, list[Samples]] = {}
        try:
            samples = open_all_samples(self.folder, record.nodes)
        except SampleFileError as error:
            text = str(error).replace(f"{self.folder}/", "")
            reasons.append(Reason(Verdict.FAILED, "sample_file", text))
        faults = list(self._faults(samples))
        if faults:  # nothing is computed from impossible records
            samples = {}
            reasons += [Reason(Verdict.FAILED, "contract", text) for text in faults]
        for node in record.nodes:
            state = record.state_of(node)
            if state and "DONE" in state.lines and node.node not in samples and not reasons:
                text = f"{node.process} broke C-24: it printed DONE but left no samples.bin"
                reasons.append(Reason(Verdict.FAILED, "sample_file", text))
        self._without_records = [n.node for n in record.nodes if n.node not in samples]
        write_batches(self._batches(samples), pl.Schema(MESSAGE_SCHEMA), self._messages_path)
        messages = Messages.at(self._messages_path)
        return messages.on_one_clock(record.clocks_of_nodes() or ONE_CLOCK), reasons

    @property
    def _messages_path(self) -> Path:
        return self.folder / "messages.parquet"

    def _batches(self, samples: dict[int, list[Samples]]) -> Iterator[pl.DataFrame]:
        """Return all records in order, in batches. Calls outside the counted window are flagged."""
        nodes, warm_up, end_ns = self.record.nodes, self._warm_up_calls(), self._counted_end_ns()
        identity = self.planned.run, self.record.deployment
        batches = message_batches(*identity, samples)
        if (not warm_up and end_ns is None) or not any(node.sends for node in nodes):
            return batches
        sender_samples = {node.node: samples.get(node.node, []) for node in nodes if node.sends}
        clocks = self.record.clocks_of_nodes() or ONE_CLOCK
        counted = counted_calls(
            lambda: map(clocks.converted, message_batches(*identity, sender_samples)),
            nodes,
            warm_up,
            end_ns,
        )
        return (flag_calls(batch, counted) for batch in batches)

    def _counted_end_ns(self) -> int | None:
        """Return the end (ns) of the counted window if clients call after it (C-11), else None."""
        goes_on = any(node.sends and node.spec["count_beyond"] for node in self.record.nodes)
        return (self.record.window.get("end_ns") or None) if goes_on else None

    def _warm_up_calls(self) -> int:
        """Return each client's warm-up calls in a closed loop; 0 for a settling run."""
        if self.planned.control == SETTLING:
            return 0
        return warm_up_calls(self.planned.treatment, self.study.plan)

    def _faults(self, samples: dict[int, list[Samples]]) -> Iterator[str]:
        """Yield a sentence for each impossible line or record of the nodes."""
        record, states = self.record, self.record.processes.states
        present = [node for node in record.nodes if node.process in states]
        clocks = record.clocks_of_nodes() or ONE_CLOCK
        spawned = [clocks.reference_ns(n.node, states[n.process].spawned_ns) for n in present]
        first_ns = min(spawned, default=0)
        for node in present:
            state, node_samples = record.state_of(node), samples.get(node.node, [])
            assert state is not None
            host = record.host_of(node.process)
            relation = record.clock_relations.get(host.name)
            # The error of STOP on the host's clock makes no DONE early.
            stop_ns = max(0, host.stop_ns - (relation.band_ns if relation else 0))
            window_ns = host.window.get("start_ns", 0), stop_ns
            faults = list(node_checks.line_faults(node, state, *window_ns))
            faults += node_checks.count_faults(state.lines.get("DONE"), node_samples)
            last_ns = (state.exit or {}).get("t_ns") or time.monotonic_ns() + host.offset_ns
            last_ns = clocks.reference_ns(node.node, last_ns)
            for file_samples in node_samples:
                faults += node_checks.record_faults(node, file_samples, first_ns, last_ns, clocks)
            yield from (f"{node.process} broke {fault}" for fault in faults)
        yield from node_checks.sequence_faults(record.nodes, samples)

    def _quantities(self) -> pl.DataFrame:
        frames = [
            quantities_frame(
                self.planned.run,
                self.record.deployment,
                self.folder / host.readings,
                host.sampling.get("series", []),
                host.name,
            )
            for host in self.record.hosts.values()
        ]
        return pl.concat(frames) if len(frames) > 1 else frames[0]

    def _read(self) -> dict[str, resources.Readings]:
        """Return the readings of each host."""
        if not self.record.others:
            return {self.record.name: resources.Readings(self.quantities)}
        return {
            name: resources.Readings(self.quantities.filter(pl.col("host") == name))
            for name in self.record.hosts
        }

    # -- responses ---------------------------------------------------------------------------

    def _identity(self) -> dict[str, Any]:
        planned, record = self.planned, self.record
        tables = [node.program.emulated for node in record.nodes]
        devices = dict.fromkeys(str(table["device"]) for table in tables if table)
        return {
            "run": planned.run,
            "attempt": self.attempt.number,
            "block": planned.block,
            "position": planned.position,
            "verdict": self.verdict.value,
            "outcome": record.outcome.value,
            "treatment": planned.treatment.key,
            "control": planned.control,
            **{f"factor.{k}": v for k, v in planned.treatment.varied},
            "cell": record.nodes[-1].cell if record.nodes else "",
            **({"emulated_device": ", ".join(devices)} if devices else {}),
        }

    def _responses(self, models: Mapping[str, dict[str, float] | None]) -> dict[str, Any]:
        record, window = self.record, self.record.window
        late_after_ns = record.stop_ns + self.study.plan.linger_ms * 500_000
        one_way = not any(flow.result for flow in record.deployment.flows)
        has_one_period = one_way and len(flow_parts(self.planned.treatment)) == 1
        schedules = self._schedules()
        of_flows = self._flow_tallies(schedules)
        tally = delivery.tallied(
            self.messages,
            record.deployment.flows,
            late_after_ns,
            self.record.nodes[0].spec["period_ns"] if has_one_period else 0,
            self._without_records,
            record.clocks_of_nodes(),
            [of_flows, *([self._drive] if self._drive else [])],
            self._drain(),
            schedules,
            self._rates_span_ns() if window.get("end_ns") else (0, 0),
        )
        self._backlogs, self._waits = tally.backlogs, tally.waits
        self._goals_without_result = tally.goals_without_result
        counts: dict[str, int | None] = {**tally.counts}
        of_window = {**tally.columns, **tally.latency}
        if self._sent_is_unknown():
            counts |= dict.fromkeys(delivery.RESTING_ON_SENT)
            of_window |= dict.fromkeys(of_window.keys() & set(delivery.RESTING_ON_SENT))
            of_window |= dict.fromkeys(delivery.AFTER_WARMUP)
        row: dict[str, Any] = {**counts, **tally.hops}
        if schedules:
            row["unsent"] = None if row["expected"] is None else tally.unsent
            row["backlog_growth"] = backlog_growth(tally.backlogs)
        states = [record.state_of(node) for node in record.nodes]
        done = [s.lines["DONE"] for s in states if s and "DONE" in s.lines]
        clocks = record.clocks_of_nodes()
        row |= of_flows.summary(self._without_records, clocks)
        row["foreign"] = sum(int(d.get("foreign") or 0) for d in done)
        ready = [s.lines["READY"] for s in states if s and "READY" in s.lines]
        row["skipped"] = sum(
            int(s.lines["SENT"]["skipped"]) for s in states if s and "SENT" in s.lines
        )
        row |= {
            f"{COUNTER_METRIC}.{service_of(process)}.{name}": grown
            for process, service in record.services.items()
            for name, grown in service.counted.items()
        } | _instructions(ready)
        row["startup_s_max"] = _maximum_s([r.get("startup_ns") for r in ready])
        row["discovery_s_max"] = _maximum_s([r.get("discovery_ns") for r in ready])
        if not window.get("end_ns"):
            return row
        row |= of_window | tally.lateness | tally.between_clocks
        row |= self._drive.summary() if self._drive else {}
        flows, counted_span_ns = record.deployment.flows, self._counted_span_ns()
        sent = None if self._sent_is_unknown() else self._sent_in_cost_window(row)
        row |= self._rates(sent)
        row["warmup_calls"] = self._warm_up_calls()
        if self.planned.treatment["loop"] == "closed":
            parts = self.messages.parts()
            active = delivery.clients_active_mean(parts, flows, counted_span_ns)
            row["clients_active_mean"] = active
        if self.planned.control == UNSAMPLED and row["warmup_calls"]:
            # Without periodic readings, there is no reading at the end of the warm-up.
            return row
        return row | costs_of_hosts(record, self.readings, sent, models)

    def _counted_span_ns(self) -> delivery.Span:
        return self.record.window["cost_begin_ns"], self._counted_end_ns()

    def _sent_in_cost_window(self, row: Mapping[str, Any]) -> int:
        """Return the number of messages sent after the warm-up, from the counts in `row`."""
        flows, span_ns = self.record.deployment.flows, self._counted_span_ns()
        if span_ns[1]:  # clients call until STOP, and later calls are flagged as warm-up
            return int(row["expected_after_warmup"])
        if span_ns[0] > self.record.window["start_ns"]:
            return delivery.sent_within(self.messages.parts(), flows, span_ns)
        return int(row["sent"])

    def _rates(self, sent: int | None) -> dict[str, float | None]:
        """Return the lengths of the window and the rates; `sent` messages follow the warm-up."""
        record, window = self.record, self.record.window
        begin_ns, end_ns = self._rates_span_ns()
        row: dict[str, float | None] = {
            "window_s": (window["end_ns"] - window["start_ns"]) / SECOND_NS,
            "cost_window_s": max(0.0, (window["end_ns"] - window["cost_begin_ns"]) / SECOND_NS),
            "rate_window_s": (end_ns - begin_ns) / SECOND_NS,
            "sent_in_cost_window": sent,
        }
        if sent and end_ns > begin_ns:
            row["rate_hz_achieved"] = sent * SECOND_NS / (end_ns - begin_ns)
        periods_ns = [node.spec["period_ns"] for node in record.nodes if node.sends]
        if periods_ns and all(periods_ns):
            row["rate_hz_offered"] = sum(SECOND_NS / period_ns for period_ns in periods_ns)
        return row

    def _flow_tallies(self, schedules: Mapping[int, Schedule]) -> FlowTallies:
        """Return the tallies of the flows that the study names, without any parts."""
        record = self.record
        named = {part.name for part in flow_parts(self.planned.treatment)}
        specs = {node.node: node.spec for node in record.nodes}
        facts = []
        for flow in record.deployment.flows:
            spec = specs[flow.sender]
            if flow.name in named:
                facts.append(
                    FlowFacts(
                        flow,
                        int(spec["period_ns"]),
                        self._rates_span_ns(flow.sender),
                        {n: s for n, s in schedules.items() if n == flow.sender},
                    )
                )
        return FlowTallies(facts)

    def _drive_tally(self) -> DriveTally | None:
        """Return the tally of the robot's commands, without any parts; None if no robot drives."""
        drive, plan = self.study.drive, self.study.plan
        if drive is None:
            return None
        flows = self.record.deployment.flows
        flow = next((flow for flow in flows if drive.flow in ("", flow.name)), None)
        if flow is None:  # the factor `flows` omits the commands in some treatments
            return None
        specs = {node.node: node.spec for node in self.record.nodes}
        clocks = self.record.clocks_of_nodes() or ONE_CLOCK
        band_ns = clocks.band_ns(flow.sender, flow.receivers[0])
        period_ns = int(specs[flow.sender]["period_ns"])
        return DriveTally(drive, flow, period_ns, plan.duration_s, band_ns)

    def _drain(self) -> Drain | None:
        """Return the time from STOP to the end of `linger_ms` (C-15), None without STOP."""
        stop_ns = self.record.receivers_stop_ns
        if not stop_ns:
            return None
        spec = self.record.nodes[0].spec
        linger_ms, quiet_ms = int(spec["linger_ms"]), int(spec["quiet_ms"])
        patience_ms = max(0, linger_ms - quiet_ms)
        end_ns = stop_ns + linger_ms * MILLISECOND_NS
        is_whole = quiet_ms >= linger_ms
        return Drain(stop_ns + patience_ms * MILLISECOND_NS, end_ns if is_whole else None)

    def _sent_is_unknown(self) -> bool:
        """Return whether a sender received GO but left no records of its messages."""
        silent = [n for n in self.record.nodes if n.sends and n.node in self._without_records]
        return bool(self.record.window.get("start_ns") and silent)

    def _cost_window_start_ns(self) -> int:
        """Return the time (ns) at which the warm-up ends; costs count from this time."""
        if self._warm_up_calls():
            counted_ns = first_counted_ns(self.messages.parts(), self.record.nodes)
            if counted_ns is not None:
                return counted_ns
        return delivery.cost_window_start_ns(
            self.messages.parts(),
            self.record.deployment.flows,
            self.record.window["start_ns"],
            int(self.record.nodes[0].spec["warmup_ns"]),
            closed=self.planned.treatment["loop"] == "closed",
        )

    def _system_calls(self) -> dict[str, Any]:
        """Return `syscalls` of run.json: the counting method and the counts per process tree."""
        record = self.record
        way, nodes = record.tracing, record.node_processes
        if way is None:
            return {}
        processes: dict[str, Any] = {}
        span_ns: delivery.Span = 0, None  # strace counts all messages of the process
        if way.name == syscalls.TRACER:
            processes = syscalls.from_tables(self.folder, nodes)
        elif way.meter and record.window.get("end_ns"):
            trees = [*nodes, *record.services]
            # Count from before GO, because the first messages have been sent when the mark is read.
            begin_ns, end_ns = record.baselines["silent"]["end_ns"], record.window["end_ns"]
            if self._warm_up_calls():
                counted_ns = (record.window["cost_begin_ns"], end_ns)
                begin_ns = (
                    syscalls.first_reading(self.quantities, way.meter, counted_ns) or begin_ns
                )
            span = begin_ns, end_ns
            processes = syscalls.from_readings(self.quantities, way.meter, span, trees)
            span_ns = begin_ns, self._counted_end_ns()
        messages = delivery.sent_within(self.messages.parts(), record.deployment.flows, span_ns)
        return {
            "way": way.name, "because": way.because, "processes": processes, "messages": messages,
        }  # fmt: skip

    def _layers(self) -> tuple[dict[str, Any], list[Reason]]:
        """Write the layers of the messages after the warm-up; return `layers` of run.json.

        Return the reasons against the run, too. There are none if the run records no layers.
        """
        record = self.record
        if record.recorder is None:
            return {}, []
        if not record.window.get("end_ns"):
            record.recorder.discard()
            return {}, [without_window()]
        states = record.processes.states
        pids = {n.node: s.pid for n in record.nodes if (s := states.get(n.process)) and s.pid}
        nodes = {pid: node for node, pid in pids.items() if list(pids.values()).count(pid) == 1}
        messages = pl.read_parquet(self._messages_path, glob=False)
        span = record.window["cost_begin_ns"], record.window["end_ns"]
        document, reasons = record.recorder.collect(
            span, lambda frame: with_records(frame, messages, nodes)
        )
        return document, [*reasons, *unjoined(document)]

    def _proof(self) -> Proof | None:
        """Return the result of a run that proves security; None for other runs.

        A run that ended before the uninvited nodes were stopped has no result.
        """
        record, network = self.record, self.record.network
        capture, log = (network.capture, network.log) if network else (None, None)
        if record.uninvited is None:
            if capture is not None:
                discard(capture)
            return None
        specs = [node.spec for node in record.nodes]
        return proof_of(record.uninvited, int(self.row["foreign"]), capture, log, specs)

    def _judge_saturation(self) -> None:
        """Set the outcome if messages remained in a queue, or if the backlog grew without end.

        The load was then above the capacity, and the latency depends on the length of the run.
        """
        row, record = self.row, self.record
        may_be_held = record.outcome in COMPLETE and not row.get("undelivered")
        if may_be_held and (held := self._held_up()):
            record.outcome, record.outcome_detail = Outcome.HELD_UP, held
            return
        if record.outcome is not Outcome.COMPLETED:
            return
        if row.get("undelivered"):
            hops = [
                f" ({count} at hop {name.rpartition('.')[2]})"
                for name, count in row.items()
                if name.startswith("undelivered.hop.") and count
            ]
            cause = (
                f"{plural(row['undelivered'], 'message')} had not arrived at the end of linger_ms"
                f"{''.join(hops)}"
            )
        elif self._backlogs:
            sender, backlogs = next(iter(self._backlogs.items()))
            flow = record.deployment.flow_names.get(sender, "")
            cause = (
                f"the messages that were due and had not arrived{f' ({flow})' if flow else ''} "
                f"increased to {', '.join(map(str, backlogs))} at the half, "
                "three quarters and the end of the schedule"
            )
        else:
            return
        record.outcome = Outcome.SATURATED
        growth = row.get("latency_growth_us_per_s")
        rates = [
            f"{name} {number(row.get(f'rate_hz_{key}') or 0)} Hz"
            for key, name in (
                ("offered", "offered rate"),
                ("achieved", "achieved rate"),
                ("delivered", "rate of delivery"),
            )
        ]
        record.outcome_detail = f"{cause}; {', '.join(rates)}" + (
            f", growth of latency {number(growth)} µs/s" if growth is not None else ""
        )

    def _held_up(self) -> str:
        """Return which calls without a reply held up the senders; "" if they are not the cause."""
        if not self._waits:  # no calls, as in the window of a command
            return ""
        record, schedules, details = self.record, self._schedules(), []
        nodes = [node for node in record.nodes if node.node in schedules]
        for node in nodes if not self._sent_is_unknown() else ():
            waits = self._waits.get(node.node, Waits())
            scheduled, backlogs = schedules[node.node].scheduled, self._backlogs.get(node.node)
            unsent = scheduled - waits.sent if node.node in self._waits else 0
            late = max(unsent, backlogs[-1] - backlogs[0] if backlogs else 0)
            if not self._fell_behind(node) and not backlogs:
                continue
            if not is_held_up(node.spec, waits, late):
                return ""
            name = record.deployment.flow_names.get(node.node, node.process)
            flow = "" if name == node.process else name
            effect = (
                f"it sent {waits.sent} of {plural(scheduled, 'scheduled message')}"
                if unsent > 0
                else "its later messages were late"
            )
            details.append(
                f"{plural(waits.timed_out, 'call')} without a reply held "
                f"{f'the sender of flow {flow}' if flow else 'a sender'} for "
                f"{number(int(node.spec['timeout_ns']) / SECOND_NS)} s each (timeout_ms), so "
                f"{effect}"
            )
        return details[0] if details else ""

    def _fell_behind(self, node: RunNode) -> bool:
        """Return whether a sender left out more messages than it reported as skipped slots."""
        state = self.record.state_of(node)
        sent = state.lines.get("SENT") if state else None
        return sent is not None and bool(sent["scheduled"] - sent["sent"] > sent["skipped"])

    def _rates_span_ns(self, sender: int | None = None) -> tuple[int, int]:
        """Return the begin and the end (ns) of the span of a run's rates, or of one sender's.

        It begins after the warm-up. In an open loop, it ends with the schedule, or with the last
        send if a sender was late. In a closed loop, it ends with the last counted call.
        """
        record, window = self.record, self.record.window
        begin_ns, firsts_ns, lasts_ns = window.get("cost_begin_ns", 0), [], []
        clocks = record.clocks_of_nodes() or ONE_CLOCK
        for node in record.nodes:
            state = record.state_of(node)
            line = state.lines.get("SENT", {}) if state else {}
            if line.get("sent") and sender in (None, node.node):
                firsts_ns.append(clocks.reference_ns(node.node, line["begin_ns"]))
                lasts_ns.append(clocks.reference_ns(node.node, line["end_ns"]))
        end_ns = max(lasts_ns, default=0)
        if self.planned.treatment["loop"] == "closed":
            begin_ns = max(begin_ns, min(firsts_ns, default=0))
            end_ns = self._counted_end_ns() or end_ns
        else:
            duration_ns = int(record.nodes[0].spec["duration_ns"])
            end_ns = max(window.get("start_ns", 0) + duration_ns, end_ns)
        return begin_ns, max(begin_ns, min(end_ns, window.get("end_ns", 0)))

    def _schedules(self) -> dict[int, Schedule]:
        """Return sender → schedule of an open loop; empty if the run ended before its window.

        The schedule remains when a node dies: messages that were due later were never sent.
        """
        record, is_open = self.record, self.planned.treatment["loop"] == "open"
        start_ns = record.window.get("start_ns", 0)
        ended_early = record.outcome not in COMPLETE and not start_ns
        if not is_open or ended_early or self._sent_is_unknown():
            return {}
        return {
            node.node: Schedule.of(node.spec, start_ns)
            for node in record.nodes
            if node.sends and node.spec["period_ns"]
        }

    def _check_sums(self, done: list[dict[str, Any]]) -> list[Reason]:
        """Return a reason for each difference between a node's counts and its files."""
        record, row, reasons = self.record, self.row, []
        if self._sent_is_unknown():
            return []
        if evidence.is_complete(record.outcome):
            recorded = sum(int(d["recorded"]) for d in done)
            if recorded != self.messages.count:
                text = f"nodes reported {recorded} records; their files have {self.messages.count}"
                reasons.append(Reason(Verdict.INVALID, "sums", text))
            sent = sum(
                int(s.lines["SENT"]["sent"])
                for s in record.processes.states.values()
                if "SENT" in s.lines
            )
            # A settling run ends by time, so its clients need not report the number of sent
            # messages.
            recorded = row["sent"] - self._goals_without_result
            if sent != recorded and self.planned.control != SETTLING:
                text = f"senders reported {sent} sent messages; their records have {recorded}"
                reasons.append(Reason(Verdict.INVALID, "sums", text))
        return reasons

    # -- writing -----------------------------------------------------------------------------

    def write(self) -> None:
        """Write quantities, events, run.json and summary.json, and delete the raw files."""
        write_table(self.quantities, self.folder / "quantities.parquet")
        write_table(self._events(), self.folder / "events.parquet")
        if any(self.record.clock_exchanges.values()):
            write_table(self._clock_exchanges(), self.folder / "clocks.parquet")
        document = json.dumps(self.document(), indent=1, allow_nan=False)
        write_new(self.folder / "run.json", document)
        deployment = json.dumps(self.record.deployment.to_json(), indent=1)
        write_new(self.folder / "deployment.json", deployment)
        write_new(self.folder / "summary.json", json.dumps(self.row, allow_nan=False))
        outs = [path for path in self.folder.glob("out/*") if not path.is_symlink()]
        raw = [path for out in outs for path in out.glob("samples*.bin")]
        readings = [self.folder / host.readings for host in self.record.hosts.values()]
        for path in [*raw, *readings]:
            discard(path)

    def _events(self) -> pl.DataFrame:
        rows = [
            {
                "process": name,
                "keyword": keyword,
                "t_ns": body.get("seen_ns"),
                "body": json.dumps(body),
            }
            for name, state in self.record.processes.states.items()
            for keyword, body in state.lines.items()
        ]
        schema = {"process": pl.String, "keyword": pl.String, "t_ns": pl.Int64, "body": pl.String}
        return pl.DataFrame(rows, schema=schema)

    def _clock_exchanges(self) -> pl.DataFrame:
        """Return the exchanges of four timestamps (ns) with each host, a row each."""
        rows = [
            (host, *times) for host, known in self.record.clock_exchanges.items() for times in known
        ]
        names = ("sent_ns", "arrived_ns", "replied_ns", "received_ns")
        schema = {"host": pl.String, **dict.fromkeys(names, pl.Int64)}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def _hosts_document(self) -> dict[str, dict[str, Any]]:
        """Return the times, readings and conditions of each host of a rig, on its own clock."""
        return {
            name: {
                "machine": host.machine,
                "clock": self.record.clock_relations[name].to_json(),
                **_host_document(host),
                **({"management": host.management} if host.management else {}),
                **({"ssh_sent": sent} if (sent := _ssh_document(host)) else {}),
            }
            for name, host in self.record.hosts.items()
        }

    def document(self) -> dict[str, Any]:
        """Return the content of run.json: the treatment, the events and the verdict."""
        planned, record = self.planned, self.record
        states = record.processes.states
        bridges = {p.name for p in record.deployment.processes if p.kind == BRIDGE}
        nodes = []
        for node in record.nodes:
            state = record.state_of(node)
            nodes.append(
                {
                    "node": node.node,
                    "role": node.role,
                    "index": node.index,
                    "cell": node.cell,
                    "language": node.program.language,
                    **({"emulated": node.program.emulated} if node.program.emulated else {}),
                    "hop": node.hop,
                    "host": record.deployment.by_process[node.process].host,
                    "process": node.process,
                    **{
                        k.lower(): (state.lines.get(k) if state else None)
                        for k in ("READY", "SENT", "DONE", "ERROR")
                    },
                    "exit": state.exit if state else None,
                }
            )
        return {
            "run": planned.run,
            "attempt": self.attempt.number,
            "block": planned.block,
            "position": planned.position,
            "predecessor": planned.predecessor,
            "control": planned.control,
            "treatment": dict(planned.treatment.varied),
            "levels": dict(planned.treatment.levels),
            "cells": {n.role: n.cell for n in record.nodes if n.process not in bridges}
            | ({BRIDGE: record.nodes[-1].cell} if bridges else {}),
            "token": record.token,
            "nodes": nodes,
            "services": [
                {"process": process, "exit": states[process].exit, **service.to_json()}
                for process, service in record.services.items()
            ],
            "outcome": record.outcome.value,
            "outcome_detail": record.outcome_detail,
            "verdict": self.verdict.value,
            "reasons": [r.to_json() for r in self.reasons],
            "conditions_before": self.before,
            "resolution": evidence.resolution(record),
            "seconds": record.seconds,
            "syscalls": self.calls or None,
            **({"layers": self.layers} if self.layers else {}),
            **({"proof": self.proof.document} if self.proof else {}),
            **({"drive": self.drive} if self.drive else {}),
            "cores": self.cores or None,
            **_host_document(record),
            **({"hosts": self._hosts_document()} if record.clock_relations else {}),
            **({"link_scheduler": record.link_scheduler} if record.link_scheduler else {}),
            "commands": {name: state.argv for name, state in states.items()},
            "environments": {name: state.env for name, state in states.items()},
        }


def _instructions(ready: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the instructions per block that the devices counted, from the nodes' READY lines."""
    effective = [line.get("effective") or {} for line in ready]
    counts = [(e.get("counted_instructions"), e.get("counted_blocks")) for e in effective]
    known = [
        (instructions, blocks)
        for instructions, blocks in counts
        if _is_positive(instructions) and _is_positive(blocks)
    ]
    if not known:
        return {}
    instructions, blocks = (sum(numbers) for numbers in zip(*known, strict=True))
    return {"instructions_per_block": instructions / blocks}


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _ssh_document(host: HostRecord) -> dict[str, dict[str, Any]]:
    """Return what the ssh server of a host sent, by phase."""
    return {phase: asdict(sent) for phase, sent in host.ssh_sent.items()}


def _host_document(host: HostRecord) -> dict[str, Any]:
    return {
        "window": host.window,
        "stop_ns": host.stop_ns,
        "baselines": host.baselines,
        "clocks": host.clocks,
        "clock_adjustments": host.clock_adjustments,
        "cpu_latency": host.cpu_latency or None,
        "sampling": {k: v for k, v in host.sampling.items() if k not in {"id", "ok"}},
    }


def _maximum_s(values: list[int | None]) -> float | None:
    """Return the highest known value (ns), in seconds; None if no value is known."""
    known = [v for v in values if v is not None]
    return max(known) / SECOND_NS if known else None
