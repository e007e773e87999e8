"""Execute a campaign: write the plan, execute its runs, retry failed runs, resume."""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog
from wattwire.design import PlannedRun, more_blocks
from wattwire.hosts.health.quiet import wait_until_quiet
from wattwire.hosts.host import Host
from wattwire.hosts.hosts import LOOPBACK_NETWORK, Hosts, LiveNetwork, here
from wattwire.model.cores import CORES
from wattwire.model.deployment import HOST, Deployment
from wattwire.model.errors import AgentLostError, MissingError, UsageError, WattwireError
from wattwire.model.outside_meters import OutsideMeter, by_machine, restored, stored
from wattwire.model.rig import ONE_HOST, Rig
from wattwire.model.stored_study import ADDED_KEYS, PART
from wattwire.model.study import PROOF, Study, parse_frozen_study, parse_study
from wattwire.model.treatment import Treatment
from wattwire.model.validity import BUSY_CODES, CONDITION_CODES
from wattwire.model.verdict import OTHER_WAYS, Outcome, Verdict
from wattwire.model.warm_up import AUTO, SETTLING
from wattwire.model.words import plural
from wattwire.rig import AgentClient, Builder, host
from wattwire.rig.agent import AgentError
from wattwire.rig.builds import digest_of
from wattwire.rig.harness_costs import harness_cost
from wattwire.rig.stranger_calls import stranger_calls
from wattwire.run.alignment_load import PHASE, AlignmentLoad
from wattwire.run.crash import crash_point
from wattwire.run.exec.command_run import CommandRun
from wattwire.run.exec.process_rows import CommandResults
from wattwire.run.failed_attempt import CODE, HARNESS_CODE, ends_campaign, keep_only_logs
from wattwire.run.layers.recorder import prepared_library
from wattwire.run.machine_description import describe_machines, energy_model, identity_of
from wattwire.run.node_specs import payload_seed
from wattwire.run.observing import note_duration
from wattwire.run.private_places import private_places
from wattwire.run.progress import Progress
from wattwire.run.record import OpenAttempt, RunRecord
from wattwire.run.resolve_cells import Prepared, prepare, without_core_gaps
from wattwire.run.results import syscalls
from wattwire.run.results.schema import (
    COLUMNS,
    describe,
    of_one_source,
    pool_baselines,
    with_derived,
)
from wattwire.run.results.summary import Collected
from wattwire.run.runner import FULL_DISK_BYTES, OneRun, RunSetup
from wattwire.run.stopping import Stopping
from wattwire.store import WARM_UP, Campaign
from wattwire.store.campaign import ALIGNMENT
from wattwire.store.journal import Attempt
from wattwire.store.redact import note_names

AGAIN = "measured_again"
"""Journal key of the treatments with more blocks than the study has."""
METERS_DOCUMENT = "meters.json"
"""The campaign's file of the addresses of meters outside the machines."""
MACHINERY_FAILURES_MAX = 3
"""Number of consecutive failures to prepare the hosts of a run that stops the campaign."""


@dataclass(frozen=True)
class Options:
    """Settings of a campaign's execution that are not part of its study."""

    accept: tuple[str, ...] = ()
    """Fingerprint keys whose change is accepted on resume."""
    choose: Callable[[Treatment], bool] | None = None
    """Selects the requested treatments. The others are not built or listed."""
    only: str = ""
    """The option that excluded the other treatments, as typed, for the page."""
    rig: Rig = ONE_HOST
    """The rig of a new campaign. The study contains its document, so a resume reads it there."""
    align: bool = False
    """Whether a new campaign makes loads by which a trace of a power meter is aligned later."""
    meters: tuple[OutsideMeter, ...] = ()
    """Meters outside the machines. A resume without any uses those of the campaign."""


class CampaignRunner:
    """Runner of a campaign in its directory. The runner locks the directory."""

    def __init__(self, campaign: Campaign, catalog: Catalog, progress: Progress) -> None:
        self.campaign = campaign
        self.catalog = catalog
        self._progress = progress
        self._rig = ONE_HOST
        self._agent: AgentClient | None = None
        self._hosts: Hosts | None = None
        self._builder: Builder | None = None
        self._busy_reported = False
        self._not_repeated: set[str] = set()
        self._cleaned_tokens: list[str] = []
        self._meters: tuple[OutsideMeter, ...] = ()
        campaign.lock()
        note_names(campaign.path, private_places(campaign.path, catalog.roots))

    # -- beginning ---------------------------------------------------------------------------

    def begin(
        self, name: str, path: Path | None, document: dict[str, Any], options: Options
    ) -> Study:
        """Freeze the study read from `path`, build the cells and write the plan; run nothing.

        A request of `exec` has no path.
        """
        study = parse_study(name, document, f"study {name}")
        self._rig = study.rig
        self._check_meters(options.meters)
        if options.align and self._far_hosts():
            raise UsageError(
                "--align: found a rig with hosts over ssh; allowed: hosts on this machine, because "
                "a trace is of the machine that makes the load"
            )
        document = study.document
        prepared = self._prepare(study, options.choose)
        plan = prepared.plan(study.plan, study.settling_rounds)
        campaign = self.campaign
        selection = {PART: {"said": options.only, "unasked": prepared.unselected}}
        campaign.freeze(
            "study.json", {"name": name, **(selection if prepared.unselected else {}), **document}
        )
        if path is not None:
            campaign.keep(path.resolve(), "study.toml")
        if path is not None and document.get("published"):
            campaign.keep(path.parent / document["published"], document["published"])
        costs = {
            name: asdict(cost) if (cost := harness_cost(build.key)) else None
            for name, build in sorted(prepared.builds.items())
        }
        strangers = {
            name: {**asdict(calls), "slower_us": calls.slower_us}
            for name, build in sorted(prepared.builds.items())
            if (calls := stranger_calls(build.key)) is not None
        }
        remarks = {
            name: remark
            for name, build in sorted(prepared.builds.items())
            if (remark := build.cell.document.get("remark"))
        }
        machine = self._machine()
        if self._meters:
            machine["outside_meters"] = [meter.without_address for meter in self._meters]
            campaign.write_json(METERS_DOCUMENT, stored(self._meters))
        if options.align:
            campaign.write_json(ALIGNMENT, {"loads": []})
        known = {"harness_costs": costs, "stranger_calls": strangers, "remarks": remarks}
        campaign.write_json("machine.json", {**machine, **known})
        campaign.freeze("plan.json", self._plan_document(plan, prepared))
        campaign.journal.add_segment(identity_of(machine), [], _now())
        # Last and at once: without an identity, --resume knows that nothing was measured.
        campaign.journal.write_plan(
            ((run.run, run.block, run.position, run.treatment.key) for run in plan),
            identity=self._identity(document, prepared),
        )
        self._study, self._prepared, self._plan = study, prepared, plan
        self._progress.event(
            "campaign", path=str(campaign.path), runs=len(plan), skipped=len(prepared.skipped)
        )
        return study

    def resume(self, document: dict[str, Any] | None, options: Options) -> Study:
        """Continue a campaign.

        Raise an error if the study, a cell, a kit, the agent or the machine has changed.
        """
        campaign = self.campaign
        if campaign.journal.get("identity") is None:
            raise UsageError(
                f"{campaign.path}: this campaign ended before its plan was written, so nothing "
                "was measured. Delete the directory and run the study again."
            )
        stored = campaign.study_document
        name, frozen = stored["name"], {k: v for k, v in stored.items() if k not in ADDED_KEYS}
        source = str(campaign.path / "study.json")
        if document is not None and document != frozen:
            changed = sorted(k for k in {*document, *frozen} if document.get(k) != frozen.get(k))
            raise UsageError(
                f"{campaign.path}: the study has changed since this campaign began "
                f"(in: {', '.join(changed)}). Undo the change, or begin a new campaign. "
                "Without STUDY, --resume uses the stored study, including its --set values."
            )
        study = parse_frozen_study(name, frozen, source)
        self._rig = study.rig
        if study.request is not None and any(t.pid for t in study.request.attached):
            raise UsageError(
                f"{campaign.path}: this campaign attached to a process by its number, which may "
                "be another process now. Begin a new measurement with `wattwire exec`."
            )
        self._check_meters(self._meters_of_resume(options.meters))
        planned_keys = {row["treatment_key"] for row in campaign.plan}
        prepared = self._prepare(study, lambda treatment: treatment.key in planned_keys)
        self._refuse_changes(self._identity(frozen, prepared))
        self._refuse_machine(options.accept)
        self._plan = self._remake_plan(study, prepared)
        self._study, self._prepared = study, prepared
        self._recover()
        self._progress.event(
            "campaign",
            path=str(campaign.path),
            runs=len(self._plan),
            left=self.remaining,
            skipped=len(prepared.skipped),
        )
        return study

    @property
    def remaining(self) -> int:
        """Return the number of planned runs that are not done."""
        return len(self._plan) - sum(self._is_done(planned) for planned in self._plan)

    def _prepare(self, study: Study, choose: Callable[[Treatment], bool] | None = None) -> Prepared:
        agent = self._connect()
        compiled_in = {meter["name"] for meter in agent.hello["meters"]}
        for name in study.meters.use:
            if name in self.catalog.meters and name not in compiled_in:
                raise MissingError(
                    f"study {study.name}: meters.use: the agent lacks the meter {name} of "
                    f"{self.catalog.meters[name]}. Meters with a meter.rs are compiled in: build "
                    "the agent again (`make agent`) with the same WATTWIRE_PATH."
                )
        if study.plan.syscall_runs and not (way := syscalls.choose(agent.hello)).name:
            raise MissingError(
                f"study {study.name}: plan.syscall_runs: system calls cannot be counted here: "
                f"{way.because}. Install strace, or skip these runs with "
                "--set plan.syscall_runs=0."
            )
        self._builder = Builder(
            agent, lambda step: self._progress.event("building", **asdict(step))
        )
        for text in foreign_code(study):
            self._progress.event("note", text=text)
        unbuilt = prepare(study, self.catalog, None, choose)
        require_layer_library(study, unbuilt)
        cells_by_treatment = unbuilt.cells.values()
        self._builder.unbuilt(
            {
                cell.known_as: cell for roles in cells_by_treatment for cell in roles.values()
            }.values()
        )
        prepared = prepare(study, self.catalog, self._builder, choose)
        if CORES in {**study.factors, **study.fixed}:
            return without_core_gaps(prepared, study, self._connect_hosts())
        return prepared

    def _connect(self) -> AgentClient:
        """Return the agent of this machine, which builds cells and removes leftovers."""
        if self._agent is None or self._agent.lost.is_set():
            if self._agent is not None:
                self._agent.close()
            self._agent = AgentClient(self.campaign.path / "agent")
        return self._agent

    def _connect_hosts(self) -> Mapping[str, Host]:
        """Return the hosts of the runs. All start again if one has lost its agent."""
        if not self._rig.is_from_file:
            return {HOST: here(self._connect())}
        if self._hosts is not None and self._hosts.any_lost:
            self._hosts.close()
            self._hosts = None
        if self._hosts is None:
            self._hosts = Hosts(self._rig, self.campaign.path / "agent" / "hosts")
            for token in self._cleaned_tokens:  # an agent that was killed has left files
                for host in self._hosts.by_name.values():
                    self._forget(host, token)
            self._cleaned_tokens.clear()
        return self._hosts.by_name

    def _meters_of_resume(self, meters: tuple[OutsideMeter, ...]) -> tuple[OutsideMeter, ...]:
        """Return the campaign's meters, with the addresses of `meters` if there are any."""
        path = self.campaign.path / METERS_DOCUMENT
        before = restored(json.loads(path.read_text("utf-8"))) if path.exists() else ()
        if not meters:
            return before
        names = [{(meter.host, meter.name) for meter in group} for group in (before, meters)]
        if names[0] != names[1]:
            listed = ", ".join(sorted(name for _, name in names[0])) or "none"
            raise UsageError(
                f"{self.campaign.path}: --meter: found other meters than this campaign has "
                f"({listed}); allowed: the same ones, with other addresses. Runs with and without "
                "a meter are not comparable."
            )
        self.campaign.write_json(METERS_DOCUMENT, stored(meters))
        return meters

    def _check_meters(self, meters: tuple[OutsideMeter, ...]) -> None:
        """Read each meter once, so that a wrong address does not cost a campaign.

        Raise MissingError with the agent's reason if a meter cannot be read.
        """
        self._meters = meters
        if not meters:
            return
        words = [word for meter in meters for word in meter.private_words]
        note_names(
            self.campaign.path, private_places(self.campaign.path, self.catalog.roots), words
        )
        self._addresses(self._connect_hosts())
        for meter in meters:
            agent = self._connect_hosts()[meter.host].agent if meter.host else self._connect()
            try:
                reply = agent.request("meter_check", meter=meter.name, at=meter.at)
            except AgentError as error:
                raise MissingError(f"meter {meter.name} at {meter.at}: {error.reason}") from error
            for text in reply["info"].values():
                self._progress.event("note", text=f"meter {meter.name}: {text}")

    def _require_meters(self) -> None:
        """Read each meter again after a failed attempt. Raise MissingError if one is still gone."""
        try:
            self._check_meters(self._meters)
        except MissingError as error:
            raise MissingError(
                f"{str(error).rstrip('.')}. The campaign stops; its finished runs are kept. "
                f"Continue with --resume {self.campaign.path}."
            ) from error

    def _addresses(self, hosts: Mapping[str, Host]) -> dict[str, dict[str, OutsideMeter]]:
        """Return host → name → meter. Of the hosts of one machine, the first reads its meters.

        A meter without a host measures this machine.
        """
        boots = {name: host.agent.hello["boot_id"] for name, host in hosts.items()}
        by_boot = by_machine(self._meters, boots, self._connect().hello["boot_id"])
        return {name: by_boot.get(boot, {}) for name, boot in boots.items()}

    def _far_hosts(self) -> Mapping[str, Host]:
        """Return the hosts of the rig over ssh, none by the name of this machine."""
        hosts = self._connect_hosts() if self._rig.is_from_file else {}
        far = {name: host for name, host in hosts.items() if not host.here}
        return {f"ssh {name}" if name == HOST else name: host for name, host in far.items()}

    @contextlib.contextmanager
    def _network(
        self, deployment: Deployment, folder: Path, seed: int, captures: bool
    ) -> Iterator[LiveNetwork]:
        """Join the hosts of a run by its network, which keeps the frames if it `captures`."""
        if self._hosts is None:
            yield LOOPBACK_NETWORK
            return
        name = deployment.links[0].name if deployment.links else ""
        with self._hosts.network(name, folder, seed, captures) as network:
            yield network

    def _remake_plan(self, study: Study, prepared: Prepared) -> list[PlannedRun]:
        """Return the stored plan, without treatments that could not be run at that time."""
        kept_keys = {row["treatment_key"] for row in self.campaign.plan if row["run"]}
        treatments = [t for t in prepared.treatments if t.key in kept_keys]
        stored = replace(prepared, treatments=treatments)
        plan = stored.plan(study.plan, study.settling_rounds)
        repeated_keys = self.campaign.journal.get(AGAIN)
        if repeated_keys is not None:
            plan += more_blocks(plan, [t for t in treatments if t.key in repeated_keys], study.plan)
        if [r.run for r in plan] != self.campaign.journal.runs():
            raise UsageError(
                f"{self.campaign.path}: the plan cannot be reproduced, because cells are missing "
                "or new. plan.json contains the original plan."
            )
        if repeated_keys is not None:  # The controller may have died between the two writes.
            self.campaign.freeze("plan.json", self._plan_document(plan, prepared))
        return plan

    def measure_again(self, keys: Collection[str]) -> None:
        """Add blocks to the plan for the treatments with these keys, as many as the study has."""
        chosen = [t for t in self._prepared.treatments if t.key in keys]
        added = more_blocks(self._plan, chosen, self._study.plan)
        rows = ((run.run, run.block, run.position, run.treatment.key) for run in added)
        self.campaign.journal.write_plan(rows, **{AGAIN: [t.key for t in chosen]})
        self._plan = [*self._plan, *added]
        document = self._plan_document(self._plan, self._prepared)
        self.campaign.freeze("plan.json", document)
        path, skipped = str(self.campaign.path), len(self._prepared.skipped)
        self._progress.event(
            "campaign", path=path, runs=len(self._plan), left=len(added), skipped=skipped
        )

    def _recover(self) -> None:
        """Remove leftovers of a killed controller: processes, incomplete folders, open attempts."""
        agent = self._connect()
        for attempt in self.campaign.journal.attempts():
            if attempt.state == "begun":
                self._connect_hosts()
                self._clean(agent, attempt.token)
                self.campaign.journal.lose(attempt.run, attempt.attempt, _now())
                self._progress.event("note", text=f"{attempt.run} was interrupted; it is run again")
            elif attempt.state == "done" and not self.campaign.holds(attempt):
                self.campaign.journal.lose(attempt.run, attempt.attempt, _now())
                self._progress.event(
                    "note", text=f"the folder of {attempt.run} is missing; it is run again"
                )
        self.campaign.drop_partials()

    def _refuse_changes(self, now: dict[str, Any]) -> None:
        before = self.campaign.journal.get("identity")
        for key in sorted({*before, *now}):
            if before.get(key) != now.get(key):
                raise UsageError(
                    f"{self.campaign.path}: {key} has changed since this campaign began "
                    f"({before.get(key)} → {now.get(key)}). Runs before and after the change would "
                    "not be comparable. Undo the change, or begin a new campaign."
                )

    def _refuse_machine(self, accepted: tuple[str, ...]) -> None:
        segments = self.campaign.journal.segments()
        before, now = segments[-1]["machine"], identity_of(self._machine())
        changed = [k for k in sorted({*before, *now}) if before.get(k) != now.get(k)]
        refused = [k for k in changed if k not in accepted]
        if refused:
            changes = "; ".join(f"{k}: {before.get(k)} → {now.get(k)}" for k in refused)
            raise UsageError(
                f"{self.campaign.path}: the machine or its state has changed since this "
                f"campaign began ({changes}). Resume on the original machine, or accept each "
                "change with --accept KEY; the later runs then form a separate segment."
            )
        if changed:
            self.campaign.journal.add_segment(now, list(accepted), _now())

    # -- running -----------------------------------------------------------------------------

    def execute(self) -> None:
        """Execute all remaining runs. On KeyboardInterrupt, end the current run cleanly."""
        self._exceptions: dict[str, str] = {}  # run → folder and exception of its last attempt
        stopping = Stopping(self._study.plan, self.campaign)
        last_runs = {planned.block: planned.run for planned in self._plan}
        has_runs = self.remaining > 0
        if has_runs:
            self._make_alignment_load()
        try:
            for planned in self._plan:
                if planned.control != SETTLING:
                    self._set_warm_up()
                if not stopping.spares(planned) and not self._is_done(planned):
                    self._run_with_retries(planned)
                if planned.run == last_runs[planned.block] and stopping.wants(planned.block):
                    self._write_summary()
                    note = stopping.look(planned.block)
                    if note:
                        self._progress.event("note", text=note)
        finally:
            self._write_summary()
        if has_runs:
            self._make_alignment_load()
        self._report_exceptions()
        self._progress.event("finished", path=str(self.campaign.path))

    def _make_alignment_load(self) -> None:
        """Make and store a load, if the campaign has been begun with loads for a trace."""
        loads = self.campaign.alignment_loads()
        if loads is None:
            return
        self._progress.event("phase", phase=PHASE)
        # All hosts are on this machine, whose meters the first of them reads, as in a run.
        name, reader = next(iter(self._connect_hosts().items()))
        meters = self._addresses(self._connect_hosts())[name]
        folder = self.campaign.path / "agent" / "alignment"
        load = AlignmentLoad(self._connect(), folder, reader=reader.agent, meters=meters).make()
        self.campaign.write_json(ALIGNMENT, {"loads": [*loads, load]})

    def _report_exceptions(self) -> None:
        """Report the number of runs whose attempts all ended in an exception."""
        broken = [planned.run for planned in self._plan if planned.run in self._exceptions]
        if broken:
            text = (
                f"{len(broken)} of {plural(len(self._plan), 'run')} ended in an exception inside "
                f"wattwire, not in a cell. First exception: {self._exceptions[broken[0]]}"
            )
            self._progress.event("note", text=text)

    def _set_warm_up(self) -> None:
        """Set the warm-up from the settling runs. All later runs use the same warm-up."""
        plan, journal = self._study.plan, self.campaign.journal
        if plan.warmup_calls != AUTO or not any(r.control == SETTLING for r in self._plan):
            return
        if self.campaign.warm_up is None:
            from wattwire.analysis.topics.settling.warm_up_rule import judge  # noqa: PLC0415 - slow

            journal.set(WARM_UP, judge(self.campaign))
        warm_up = self.campaign.warm_up
        assert warm_up is not None
        plan = replace(plan, warmup_calls=int(warm_up["calls"]))
        self._study = replace(self._study, plan=plan)
        self._progress.event("note", text=warm_up["words"])

    def _write_summary(self) -> None:
        treatments = {planned.treatment.key: planned.treatment for planned in self._plan}
        levels = {key: dict(treatment.levels) for key, treatment in treatments.items()}
        rows = with_derived(pool_baselines(of_one_source(self.campaign.rows()), levels))
        names = {name for row in rows for name in row}
        self.campaign.write_summary(rows, describe({*names, *COLUMNS}))

    def _is_done(self, planned: PlannedRun) -> bool:
        if planned.run in self._not_repeated:
            return True
        done = [a for a in self.campaign.journal.attempts(planned.run) if a.state == "done"]
        # No result uses a settling run, so a disturbed settling run is not repeated.
        retries = 0 if planned.control == SETTLING else self._study.plan.retries
        spent = len(done) > retries
        return spent or any(a.verdict == Verdict.VALID.value or self._is_final(a) for a in done)

    def _is_final(self, attempt: Attempt) -> bool:
        """Return whether no repetition of an attempt counts: its messages went another way."""
        if attempt.verdict != Verdict.INVALID.value or not self._rig.is_from_file:
            return False
        reasons = self.campaign.run(str(attempt.folder))["reasons"]
        return any(reason["code"] in OTHER_WAYS for reason in reasons)

    def _run_with_retries(self, planned: PlannedRun) -> None:
        """Attempt a run at its position in the block until it is valid or no retries remain."""
        lost_in_a_row = 0
        while not self._is_done(planned):
            try:
                self._attempt(planned)
                lost_in_a_row = 0
            except (MissingError, UsageError):
                raise
            except WattwireError as error:
                lost_in_a_row += 1
                self._progress.event("note", text=f"{planned.run}: {error}; wattwire tries again")
                if lost_in_a_row >= MACHINERY_FAILURES_MAX:
                    raise MissingError(
                        f"{planned.run}: its hosts could not be prepared {lost_in_a_row} times "
                        f"in a row ({error}). The campaign stops; its finished runs "
                        f"are kept. Continue with --resume {self.campaign.path}."
                    ) from error

    def _attempt(self, planned: PlannedRun) -> None:
        campaign, study = self.campaign, self._study
        self._require_disk()
        agent = self._connect()
        token = "ww" + secrets.token_hex(5)
        self._progress.event(
            "run",
            run=planned.run,
            label=planned.label(),
            block=planned.block,
            position=planned.position,
        )
        began_s = time.monotonic()
        conditions = self._wait_until_quiet(agent)
        number = campaign.journal.begin(planned.run, token, _now())
        folder = campaign.open_attempt(planned.run, number)
        attempt = OpenAttempt(study, planned, number, token, folder)
        try:
            collected = self._collect(agent, attempt, conditions)
            crash_point("commit", {"agent": agent.pid})
            name = campaign.commit(planned.run, number, folder)
            outcome = collected.record.outcome
            campaign.journal.finish(
                planned.run, number, collected.verdict.value, outcome.value, name, _now()
            )
        except BaseException:
            self._abandon(agent, attempt)
            raise
        # Neither wait depends on the cell.
        waited_s = float(conditions["waited_s"]) + collected.record.seconds.get("reassembly", 0.0)
        elapsed_s = time.monotonic() - began_s - waited_s
        if collected.verdict is not Verdict.FAILED:
            note_duration(study, planned, collected.record, elapsed_s)
        codes = {reason.code for reason in collected.reasons}
        if codes and codes <= BUSY_CODES and not self._is_done(planned):
            self._repeat_only_if_quiet(planned, agent, conditions)
        self._report(planned, collected, collected.record)
        if collected.record.interrupted:
            raise KeyboardInterrupt
        if any(reason.code == HARNESS_CODE for reason in collected.reasons):
            self._require_meters()
        if study.plan.cooldown_s > 0:
            self._progress.event("phase", phase="cool-down")
            time.sleep(study.plan.cooldown_s)

    def _wait_until_quiet(self, agent: AgentClient, wait_s: float | None = None) -> dict[str, Any]:
        """Wait until this machine and those of all hosts are quiet; return the conditions.

        The longest wait is `wait_s`, by default that of the plan.
        """
        agents = {host.agent.hello["boot_id"]: host.agent for host in self._far_hosts().values()}
        agents[agent.hello["boot_id"]] = agent  # one per machine
        study = self._study
        longest_s = study.plan.quiet_wait_s if wait_s is None else wait_s
        return wait_until_quiet(agents.values(), study.validity, longest_s)

    def _repeat_only_if_quiet(
        self, planned: PlannedRun, agent: AgentClient, before: Mapping[str, Any]
    ) -> None:
        """Omit the repetition of a run if the machine stays busy; `resume` repeats the run.

        If the wait `before` the run was in vain, the machine is not awaited again.
        """
        self._progress.event("phase", phase="waiting for a quiet machine")
        if not self._wait_until_quiet(agent, None if before["quiet"] else 0.0)["quiet"]:
            self._not_repeated.add(planned.run)
            text = f"{planned.run}: the machine stays busy, so this run is not repeated now"
            self._progress.event("note", text=text)

    def _collect(
        self, agent: AgentClient, attempt: OpenAttempt, conditions: dict[str, Any]
    ) -> Collected:
        """Execute one attempt and write its results.

        An exception fails only this attempt, unless it ends the campaign.
        """
        results = Collected if self._study.request is None else CommandResults
        run: OneRun | None = None
        try:
            with self._one_run(attempt) as run:
                record = run.execute()
            crash_point("convert", {"agent": agent.pid})
            hosts = self._connect_hosts()
            models = {name: energy_model(hosts[name].agent) for name in record.hosts}
            collected = results(attempt, record, conditions, models)
            collected.write()
        except Exception as error:
            if ends_campaign(error) or run is None:
                raise
            self._clean(self._connect(), attempt.token)
            reason = keep_only_logs(attempt.folder, error)
            collected = results.failed(attempt, run.record, conditions, reason)
            collected.write()
        if (
            collected.verdict is not Verdict.VALID
            or collected.record.outcome is not Outcome.COMPLETED
        ):
            self._require_room(attempt.folder)
        return collected

    def _require_room(self, folder: Path) -> None:
        """Raise OSError if the disk is almost full.

        On a full disk, a node ends early or writes an incomplete file, which is not a fault of the
        node.
        """
        if host.free_disk_bytes(folder) < FULL_DISK_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.campaign.path))

    @contextlib.contextmanager
    def _one_run(self, attempt: OpenAttempt) -> Iterator[OneRun]:
        """Prepare an attempt on its hosts, which its network joins until the attempt has ended."""
        hosts, request = self._connect_hosts(), attempt.study.request
        if request is not None:
            addresses = self._addresses(hosts)
            setup = RunSetup(deployment=request.deployment, hosts=hosts, addresses=addresses)
            yield CommandRun(attempt, setup, self._progress)
            return
        placed = self._prepared.placed[attempt.planned.treatment.key]
        seed = payload_seed(attempt.token)
        captures = attempt.planned.control == PROOF
        with self._network(placed.deployment, attempt.folder, seed, captures) as network:
            setup = RunSetup.of_nodes(attempt, placed, hosts, self._prepared.builds, network)
            setup = replace(setup, addresses=self._addresses(hosts))
            yield OneRun(attempt, setup, self._progress)

    def _abandon(self, agent: AgentClient, attempt: OpenAttempt) -> None:
        """Remove the files of an interrupted attempt and mark it as lost in the journal."""
        if agent.lost.is_set():
            agent = self._connect()
        try:
            self._clean(agent, attempt.token)
        finally:
            self.campaign.journal.lose(attempt.planned.run, attempt.number, _now())
            self.campaign.drop_partials()

    def _clean(self, agent: AgentClient, token: str) -> None:
        """Remove the leftovers of an attempt from this machine and all hosts with an agent."""
        self._cleaned_tokens.append(token)
        agent.request("clean", run=token)
        here(agent).forget_private(token)
        for connected in () if self._hosts is None else self._hosts.by_name.values():
            with contextlib.suppress(AgentLostError, AgentError):
                connected.agent.request("clean", run=token)
                self._forget(connected, token)
        if self._hosts is not None and self._hosts.any_lost:
            with contextlib.suppress(WattwireError):  # there may be no later run that connects
                self._connect_hosts()

    def _forget(self, host: Host, token: str) -> None:
        """Remove the private keys and the files of an attempt from a host."""
        host.forget_private(token)
        host.forget(host.folder_of(self.campaign.path, token))

    def _report(self, planned: PlannedRun, collected: Collected, record: RunRecord) -> None:
        if not self._busy_reported and any(r.code in CONDITION_CODES for r in collected.reasons):
            self._busy_reported = True
            self._progress.event(
                "note",
                text="The machine is busy. These runs are stored but excluded from the answers. "
                "End the other work and measure again. For exploration only, --look accepts "
                "runs of a "
                "busy machine, and `wattwire report DIR --validity look=true` accepts the "
                "stored runs.",
            )
        lost = [r.detail for r in collected.reasons if r.code == HARNESS_CODE]
        if lost and not self._is_done(planned):
            self._progress.event("note", text=f"{planned.run}: {lost[0]}; wattwire tries again")
        exception = [r.detail for r in collected.reasons if r.code == CODE]
        self._exceptions.pop(planned.run, None)
        if exception:
            where = f"runs/{planned.run}-{collected.attempt.number}"
            self._exceptions[planned.run] = f"{where}: {exception[0]}"
        flows = [flow.name for flow in self._study.flows]
        medians = [f"latency_p50_us.flow.{flow}" for flow in flows]
        # A median over several flows describes none of them, and neither does their loss.
        figure_names = ["sent", "failed", "lost", *(f"lost.flow.{flow}" for flow in flows)]
        figure_names += medians or ["latency_p50_us"]
        figure_names.append("cpu_us_per_message")
        self._progress.event(
            "done",
            run=planned.run,
            verdict=collected.verdict.value,
            outcome=record.outcome.value,
            detail=record.outcome_detail,
            reasons=[r.detail for r in collected.reasons],
            last=self._is_done(planned),
            figures={k: collected.row.get(k) for k in figure_names},
        )

    def _require_disk(self) -> None:
        free = host.free_disk_bytes(self.campaign.path)
        minimum = self._study.validity.free_disk_bytes_min
        if free < minimum:
            raise MissingError(
                f"{self.campaign.path}: {free:,} bytes are free; validity.free_disk_bytes_min "
                f"requires {minimum:,}. Free up disk space and continue with --resume "
                f"{self.campaign.path}; no data are lost."
            )

    def close(self) -> None:
        if self._hosts is not None:
            self._hosts.close()
        if self._agent is not None:
            self._agent.close()
        self.campaign.close()

    # -- documents ---------------------------------------------------------------------------

    def _identity(self, document: dict[str, Any], prepared: Prepared) -> dict[str, Any]:
        cells = {f"cell {name} (or its kit)": b.key for name, b in sorted(prepared.builds.items())}
        assert self._agent is not None
        return {"study": digest_of(document), "agent build": self._agent.hello["build"], **cells}

    def _machine(self) -> dict[str, Any]:
        return {
            **describe_machines(self._connect(), self._far_hosts()),
            "titles": self.catalog.titles(),
            "setting_purposes": self.catalog.setting_purposes(),
            "switches": self.catalog.switches(),
        }

    @staticmethod
    def _plan_document(plan: list[PlannedRun], prepared: Prepared) -> list[dict[str, Any]]:
        def row(treatment: Treatment, **columns: Any) -> dict[str, Any]:
            return {
                "treatment": dict(treatment.varied),
                "treatment_key": treatment.key,
                "levels": dict(treatment.levels),
                **columns,
            }

        gaps = prepared.layer_gaps
        runs = [
            row(
                run.treatment,
                run=run.run,
                block=run.block,
                position=run.position,
                control=run.control,
                cells={
                    role: cell.name
                    for role, cell in prepared.placed[run.treatment.key].cells.items()
                },
                skipped=None,
                **({"layer_gap": gap} if (gap := gaps.get(run.treatment.key)) else {}),
            )
            for run in plan
        ]
        skipped_rows = [
            row(treatment, run=None, block=None, position=None, cells={}, skipped=reason)
            for treatment, reason in prepared.skipped
        ]
        return [*runs, *skipped_rows]


def foreign_code(study: Study) -> list[str]:
    """Return a sentence for each folder and file that the study names and whose code will run."""
    folders = [(name, variant.root) for name, variant in study.variants.items() if variant.root]
    texts = [f"Variant {name} builds and runs the cells in {root}" for name, root in folders]
    return texts + ([study.rig.executed] if study.rig.executed else [])


def require_layer_library(study: Study, prepared: Prepared) -> None:
    """Build the library of the layer runs, if any treatment has such runs.

    Raises MissingError without a C compiler, UsageError if the library cannot be built.
    """
    if not study.plan.layer_runs or len(prepared.layer_gaps) == len(prepared.treatments):
        return
    try:
        prepared_library()
    except (MissingError, UsageError) as error:
        text = str(error).removeprefix("--layers: ").rstrip(".\n")
        raise type(error)(
            f"study {study.name}: plan.layer_runs: {text}; or skip these runs with "
            "--set plan.layer_runs=0."
        ) from error


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
