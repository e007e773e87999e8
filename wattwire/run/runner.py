"""Execute a run, from the start of its first process to the end of its last process."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wattwire.design import UNSAMPLED, PlannedRun
from wattwire.model.deployment import Deployment
from wattwire.model.hosts.clocks import ClockRelation, NodeClocks
from wattwire.model.setting_purposes import TLS
from wattwire.model.study import TRACED, Study
from wattwire.model.verdict import Outcome, Reason, Verdict
from wattwire.model.warm_up import SETTLING, SETTLING_S
from wattwire.model.words import plural
from wattwire.rig import AgentClient, CellBuild
from wattwire.rig.agent import AgentError
from wattwire.rig.host import TICK_NS
from wattwire.run.certificates import make_certificates
from wattwire.run.crash import crash_point
from wattwire.run.lines import printable
from wattwire.run.node_specs import SECOND_NS, NodePlan, check_spec, period_ns
from wattwire.run.processes import BrokenContractError, NodeEndedError, RunProcesses, start_service
from wattwire.run.progress import Progress
from wattwire.run.results import syscalls
from wattwire.store.files import discard, write_new

GO_LEAD_NS = 50_000_000
GO_LEAD_PER_NODE_NS = 5_000_000
EXIT_PATIENCE_S = 5.0
REASON_PATIENCE_S = 5.0
SKIPPED_SHARE_MAX = 0.02
"""Number of slots that a native timer may skip. With more, the run is saturated."""
REFUSED = 2
CLOSED_WINDOW_MAX_S = 600.0


@dataclass
class RunRecord:
    """Record of one attempt. Later stages use only this record and the attempt's files."""

    token: str
    deployment: Deployment
    nodes: list[NodePlan]
    processes: RunProcesses
    services: list[str] = field(default_factory=list)
    window: dict[str, int] = field(default_factory=dict)
    baselines: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    outcome: Outcome = Outcome.COMPLETED
    outcome_detail: str = ""
    reasons: list[Reason] = field(default_factory=list)
    stop_ns: int = 0
    leftovers: list[str] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)
    clocks: dict[str, Any] = field(default_factory=dict)
    clock_relations: dict[str, ClockRelation] = field(default_factory=dict)
    """Host → relation of its clock to the controller's; empty without a rig."""
    tracing: syscalls.Way | None = None
    """How this run counts system calls; None for all other runs."""
    interrupted: bool = False
    """Whether Ctrl-C ended the window. The attempt is kept, and the campaign stops after it."""
    cpu_latency: dict[str, Any] = field(default_factory=dict)
    """Limit of the CPUs' wake-up latency (us) that the agent held, and its path; {} if none."""
    cpus: int = 1
    """Number of CPUs of the host on which the nodes ran."""
    tick_ns: int = TICK_NS
    """Clock tick (ns) of that host, in which it counts steal."""

    def clocks_of_nodes(self) -> NodeClocks | None:
        """Return the clocks of the nodes, or None without a rig."""
        if not self.clock_relations:
            return None
        return NodeClocks.of(self.clock_relations, self.deployment)


class OneRun:
    """Execution of an attempt in `folder`. All processes of the attempt end with it."""

    def __init__(
        self,
        agent: AgentClient,
        study: Study,
        planned: PlannedRun,
        services: Mapping[str, dict[str, Any]],
        deployment: Deployment,
        nodes: list[NodePlan],
        builds: dict[str, CellBuild],
        token: str,
        folder: Path,
        progress: Progress,
    ) -> None:
        self._agent = agent
        self._study = study
        self._plan = study.plan
        self._treatment = planned.treatment
        self._marks_only = planned.control == UNSAMPLED
        self._settling = planned.control == SETTLING
        self._services = services
        self._builds = builds
        self._folder = folder
        self._progress = progress
        self._phase_began = time.monotonic()
        self.record = RunRecord(token, deployment, nodes, RunProcesses(agent, token, folder))
        if planned.control == TRACED:
            self.record.tracing = syscalls.choose(agent.hello)

    def execute(self) -> RunRecord:
        """Run all phases.

        A node's failure is an outcome; the loss of the agent or a guard is an error.
        """
        with self._limited_cpu_latency():
            return self._execute()

    @contextlib.contextmanager
    def _limited_cpu_latency(self) -> Iterator[None]:
        """Hold the treatment's limit from before the baselines until the end of the run.

        Baselines and window then have the same idle states.
        """
        limit_us = self._treatment.get("cpu_latency_us")
        if limit_us is None:
            yield
            return
        reply = self._agent.request("hold_cpu_latency", us=limit_us)
        self.record.cpu_latency = {key: reply[key] for key in ("us", "path")}
        try:
            yield
        finally:
            if not self._agent.lost.is_set():  # otherwise, the kernel has ended the limit
                self._agent.request("release_cpu_latency")

    def _execute(self) -> RunRecord:
        record = self.record
        self._start_sampling()
        try:
            self._start()
            self._window()
            crash_point("drain", self._victims())
            self._drain()
        except NodeEndedError as ended:
            record.outcome = Outcome.TIMED_OUT if ended.timed_out else Outcome.DIED
            problem = ended.problem
            if isinstance(ended, BrokenContractError):  # the error contains the reason
                problem = "broke the contract"
            record.outcome_detail = f"{record.deployment.label(ended.process)} {problem}"
        else:
            self._judge_exits()
        finally:
            self._note_refusals()
            self._enter("ending")
            if not self._agent.lost.is_set():
                self._end()
            self._note_breaches()
        return record

    # -- phases ------------------------------------------------------------------------------

    def _start(self) -> None:
        """Take the baselines, and start the services and the nodes between them."""
        self._baseline("machine", self._plan.baseline_s)
        endpoints = self._start_services()
        self._start_nodes(endpoints)
        crash_point("ready", self._victims())
        self._wait_ready()
        self._baseline("silent", self._plan.baseline_s)

    def _enter(self, phase: str) -> None:
        now_s = time.monotonic()
        seconds_by_phase = self.record.seconds
        if seconds_by_phase:
            last_phase = list(seconds_by_phase)[-1]
            seconds_by_phase[last_phase] = round(now_s - self._phase_began, 4)
        seconds_by_phase[phase] = 0.0
        self._phase_began = now_s
        self._progress.event("phase", phase=phase)

    def _start_sampling(self) -> None:
        self._enter("baseline")
        load = self._agent.request("load")
        self.record.cpus = int(load["cpus"])
        self.record.tick_ns = int(load.get("tick_ns", TICK_NS))
        self.record.clocks["begin"] = self._agent.request("clock", count=3)["triples"]
        meters = self._study.meters.use or tuple(
            meter["name"] for meter in self._agent.hello["meters"] if meter.get("default", True)
        )
        tracing = self.record.tracing
        tracing_meters = (tracing.meter,) if tracing and tracing.meter else ()
        self._agent.request(
            "sample_start",
            path=str(self._folder / "readings.bin"),
            tick_hz=self._study.meters.tick_hz,
            meters=[*meters, *tracing_meters],
            subjects={},
            marks_only=self._marks_only,
        )

    def _mark(self, name: str) -> int:
        return int(self._agent.request("mark", name=name)["t_ns"])

    def _baseline(self, name: str, seconds: float) -> None:
        """Wait for a baseline: the machine's before services start, or the silent one before GO."""
        self._enter(f"{name} baseline")
        begin_ns = self._mark(f"{name}_begin")
        try:
            time.sleep(seconds)
        finally:
            end_ns = self._mark(f"{name}_end")
            self.record.baselines[name] = {"begin_ns": begin_ns, "end_ns": end_ns}

    def _start_services(self) -> list[str]:
        self._enter("services")
        endpoints: list[str] = []
        for name, table in self._services.items():
            before = set(self.record.processes.states)
            endpoints += start_service(
                self.record.processes,
                self._agent,
                name,
                table,
                self._folder,
                self.record.token,
                self._plan.ready_timeout_s,
            )
            states = self.record.processes.states
            # A service attempt whose port was taken is also in the states, but it has ended.
            self.record.services += [p for p in states if p not in before and not states[p].exit]
        return endpoints

    def _start_nodes(self, service_endpoints: list[str]) -> None:
        """Start the nodes. A node starts when all nodes to which it connects listen.

        The nodes of a chain start one after the other, so each has its own deadline.
        """
        self._enter("starting")
        processes = self.record.processes
        self._tls = self._certificates()
        endpoints: dict[int, list[str]] = {}
        waiting = list(self.record.nodes)
        while waiting:
            startable = [node for node in waiting if node.connects_to <= endpoints.keys()]
            waiting = [node for node in waiting if not node.connects_to <= endpoints.keys()]
            for node in startable:
                others = [e for other in sorted(node.connects_to) for e in endpoints[other]]
                self._spawn(node.with_endpoints([*service_endpoints, *others]))
            listeners = [node for node in startable if node.listens]
            deadline_s = time.monotonic() + self._plan.ready_timeout_s
            processes.wait_for("LISTENING", [n.process for n in listeners], deadline_s)
            for node in listeners:
                line = processes.states[node.process].lines["LISTENING"]
                endpoints[node.node] = line["endpoints"]

    def _certificates(self) -> dict[str, str]:
        node = self.record.nodes[0]
        tls_setting = node.cell.middleware.setting_with(TLS)
        if tls_setting is None or not node.spec[f"settings.{tls_setting}"]:
            return {}
        return make_certificates(self._folder / "tls")

    def _spawn(self, node: NodePlan) -> None:
        build = self._builds[node.cell.known_as]
        out = self._folder / "out" / node.process
        if os.path.lexists(out):  # an earlier node may have created this path
            discard(out)
        out.mkdir(parents=True)
        spec = out / "spec.json"
        content = {**node.spec, **self._tls}
        check_spec(content)
        write_new(spec, json.dumps(content, indent=1))
        argv = [*build.argv, "--spec", str(spec), "--out", str(out)]
        if self.record.tracing and self.record.tracing.name == syscalls.TRACER:
            argv = syscalls.traced(argv, out)
        self.record.processes.spawn(node.process, argv, build.env)

    def _wait_ready(self) -> None:
        self._enter("matching")
        # A node that fails to match reports the reason. Wait long enough to receive it.
        deadline_s = time.monotonic() + self._plan.ready_timeout_s + REASON_PATIENCE_S
        self.record.processes.wait_for("READY", [n.process for n in self.record.nodes], deadline_s)

    def _window(self) -> None:
        self._enter("window")
        record = self.record
        lead_ns = GO_LEAD_NS + GO_LEAD_PER_NODE_NS * len(record.nodes)
        if self._treatment["pacing"] == "native":
            # A native timer ticks one period after its creation, which must precede slot 0.
            lead_ns += period_ns(self._treatment)
        start_ns = time.monotonic_ns() + lead_ns
        for node in sorted(record.nodes, key=lambda n: n.sends):  # receivers first
            record.processes.write(node.process, f"GO {start_ns}")
        _sleep_until(start_ns)
        self._mark("window_begin")
        record.window = {"start_ns": start_ns, "end_ns": 0}
        crash_point("window", self._victims())
        senders = [n.process for n in record.nodes if n.sends]
        unfinished = self._await_senders(start_ns, senders)
        record.window["end_ns"] = self._mark("window_end")
        exited = [p for p in unfinished if record.processes.states[p].exit is not None]
        if unfinished and self._settling and not exited:
            record.outcome_detail = f"ended after {SETTLING_S:g} s, as settling runs do"
        elif unfinished:
            record.outcome_detail = self._unfinished_text(unfinished, exited)
            record.outcome = Outcome.DIED if exited else Outcome.TIMED_OUT

    def _unfinished_text(self, unfinished: list[str], exited: list[str]) -> str:
        """Return how the senders that did not finish ended; `exited` are those that ended."""
        label = self.record.deployment.label
        texts = [f"{label(p)} {self.record.processes.describe_exit(p)}" for p in exited]
        hung = ", ".join(label(process) for process in unfinished if process not in exited)
        return "; ".join([*texts, *([f"{hung} did not finish in the window"] if hung else [])])

    def _await_senders(self, start_ns: int, senders: list[str]) -> list[str]:
        """Wait until the window and all senders have ended; return the senders that did not end.

        A client that has made `count` calls may continue until STOP (C-11), so that all clients are
        active until the end of the window.
        """
        processes = self.record.processes
        spec = self.record.nodes[0].spec
        if self._treatment["loop"] == "open":
            duration_ns = int(spec["duration_ns"])
            # The window has its full length, even if the last message is scheduled before its end.
            end_s = (start_ns + duration_ns) / SECOND_NS
            patience_s = (spec["overrun_ns"] + 2 * spec["timeout_ns"]) / SECOND_NS + 2.0
        else:
            end_s = start_ns / SECOND_NS
            timeouts_s = int(spec["count"]) * int(spec["timeout_ns"]) / SECOND_NS
            patience_s = min(timeouts_s, CLOSED_WINDOW_MAX_S + self._plan.warmup_max_s) + 2.0
            if self._settling:
                patience_s = SETTLING_S
        warm_up_end_s = (start_ns + int(spec["warmup_ns"])) / SECOND_NS
        if spec["warmup_ns"]:
            processes.wait_for("SENT", senders, warm_up_end_s, strict=False)
            self._mark("warmup_end")  # costs count from this time, even in a run without sampling
        done_keywords = ("COUNTED", "SENT")
        unfinished = processes.wait_for_any(
            done_keywords, senders, end_s + patience_s, strict=False
        )
        exited = [p for p, s in processes.states.items() if s.exit is not None]
        if not exited:
            _sleep_until(round(end_s * SECOND_NS))
            processes.drain()
        return unfinished

    def _drain(self) -> None:
        """Send STOP to the senders, then to the receivers.

        Receivers continue until no message arrives.
        """
        self._enter("drain")
        record = self.record
        record.stop_ns = time.monotonic_ns()
        linger_s = self._plan.linger_ms / 1000.0
        for sending in (True, False):
            group = [n.process for n in record.nodes if n.sends == sending]
            alive = [p for p in group if record.processes.states[p].exit is None]
            for process in alive:
                record.processes.write(process, "STOP")
            deadline_s = time.monotonic() + linger_s + EXIT_PATIENCE_S
            if sending:  # open calls may complete (C-15)
                deadline_s += max(n.spec["timeout_ns"] for n in record.nodes) / SECOND_NS
            record.processes.wait_for("DONE", alive, deadline_s, strict=False)
            record.processes.wait_exit(alive, time.monotonic() + EXIT_PATIENCE_S)

    def _judge_exits(self) -> None:
        """Set the outcome if a node died, hung or saturated.

        This is a result, not a harness failure.
        """
        record = self.record
        if record.outcome is not Outcome.COMPLETED:
            return
        for node in record.nodes:
            state = record.processes.states[node.process]
            label = record.deployment.label(node.process)
            if state.exit is None:
                record.outcome = Outcome.TIMED_OUT
                record.outcome_detail = f"{label} did not end after STOP"
                return
            if state.exit.get("code") != 0:
                record.outcome = Outcome.DIED
                record.outcome_detail = f"{label} {record.processes.describe_exit(node.process)}"
                return
        if self._settling:  # a settling run always ends by time
            return
        states = record.processes.states.values()
        for sent in (s.lines["SENT"] for s in states if "SENT" in s.lines):
            missing = sent["scheduled"] - sent["sent"]
            # A native timer may skip some slots. More skipped slots mean saturation.
            if missing > sent["skipped"] or missing > SKIPPED_SHARE_MAX * sent["scheduled"]:
                record.outcome = Outcome.SATURATED
                record.outcome_detail = (
                    f"a sender sent {sent['sent']} of "
                    f"{plural(sent['scheduled'], 'scheduled message')}"
                )
                return

    def _note_refusals(self) -> None:
        """Record each node that refused its spec or a late GO as a failure of the harness."""
        for process, state in self.record.processes.states.items():
            error = state.lines.get("ERROR", {})
            if error.get("code") == REFUSED:
                label = self.record.deployment.label(process)
                text = printable(f"{label} rejected {error.get('key')}: {error.get('reason')}")
                self.record.reasons.append(Reason(Verdict.FAILED, "refused", text))

    def _note_breaches(self) -> None:
        """Record each node that violated the contract, as a reason against the run."""
        for state in self.record.processes.states.values():
            if state.breach:
                self.record.reasons.append(Reason(Verdict.FAILED, "contract", state.breach))

    def _end(self) -> None:
        record = self.record
        record.processes.ending = True
        try:
            self._end_processes()
        finally:
            record.sampling = self._agent.request("sample_stop")
        record.clocks["end"] = self._agent.request("clock", count=3)["triples"]
        if record.leftovers:
            record.reasons.append(
                Reason(
                    Verdict.INVALID, "leftovers", "killed processes: " + ", ".join(record.leftovers)
                )
            )
        self._enter("converting")

    def _end_processes(self) -> None:
        """Stop the services, then kill all remaining processes."""
        record = self.record
        for service in reversed(record.services):
            if record.processes.states[service].exit is None:
                stop = self._services[service.split(".")[0]].get("stop", "TERM")
                with contextlib.suppress(AgentError):  # the service has already ended
                    self._agent.request("signal", process=service, signal=stop, tree=False)
        record.processes.wait_exit(record.services, time.monotonic() + EXIT_PATIENCE_S)
        hung = [p for p, s in record.processes.states.items() if s.exit is None and s.pid]
        leftovers = record.processes.end_all()
        record.leftovers = [item for item in leftovers if item not in hung]

    def _victims(self) -> dict[str, int | None]:
        nodes, states = self.record.nodes, self.record.processes.states
        last_state = states.get(nodes[-1].process if nodes else next(iter(states), ""))
        by_role = {n.role: states[n.process].pid for n in nodes if n.process in states}
        return {
            **by_role,
            "agent": self._agent.pid,
            "guard": last_state.guard_pid if last_state else None,
            "node": last_state.pid if last_state else None,
        }


def _sleep_until(monotonic_ns: int) -> None:
    while (left_ns := monotonic_ns - time.monotonic_ns()) > 0:
        time.sleep(left_ns / SECOND_NS)
