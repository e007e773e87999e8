"""Build cells, start their service processes and run the conformance suite on the cells."""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from wattwire.catalog import Catalog, Cell
from wattwire.catalog.home import home
from wattwire.catalog.only import FACTORS
from wattwire.catalog.services import setting_words
from wattwire.cli.check_hosts import CheckHosts, rig_hosts
from wattwire.cli.check_security import security_of
from wattwire.cli.pairing import Pairs, pairs_of, partners, unpaired
from wattwire.cli.round_trips import (
    PINGPONG,
    Strangers,
    bare_round_trip_ns,
    cell_round_trip_ns,
    measured_cost,
)
from wattwire.cli.screen import make_progress
from wattwire.cli.verbs.doctor import install_command, sources
from wattwire.cli.wrap import searchable
from wattwire.hosts.hosts import here
from wattwire.model.deployment import HOST, Deployment
from wattwire.model.errors import (
    EXIT_BAD_RESULT,
    EXIT_CANNOT_TELL,
    EXIT_OK,
    MissingError,
    UsageError,
    unknown,
)
from wattwire.model.setting_purposes import (
    MESSAGE,
    NAGLE_OFF,
    SECURED,
    SECURITY,
    TLS,
    VELOCITY,
)
from wattwire.model.treatment import Level
from wattwire.model.words import number, plural
from wattwire.rig import AgentClient, Builder, CellBuild
from wattwire.rig.bare_clients import bare_argv
from wattwire.rig.builds import LackingError
from wattwire.rig.harness_costs import HarnessCost, note_harness_cost
from wattwire.rig.stranger_calls import StrangerCalls, note_stranger_calls
from wattwire.run.credentials import credential_words
from wattwire.run.run_processes import RunProcesses
from wattwire.run.services import Service, start_service

SERVICE_TIMEOUT_S = 10.0
INTRODUCTION = (
    "Short runs of each cell test the node contract, clause by clause (C-NN in "
    "contract/CONTRACT.md). Clauses that passed have no line."
)
CLAUSE = re.compile(r"C-\d+")
STATUS_WORDS = {"passed": "passed", "failed": "failed", "skipped": "not tested"}
SILENCE_S = 30.0
"""Time after which `check` says how far it is. A cell of ROS takes minutes."""
BEFORE_READY = ("C-06", "C-07")
"""Clauses whose violation ends a scenario before its window."""


class _Silence:
    """Prints the number of scenarios of a cell that ended, once in SILENCE_S."""

    def __init__(self, cell: str) -> None:
        self._cell, self._scenarios, self._said_s = cell, 0, time.monotonic()

    def end_with(self, scenario: str) -> None:
        """Count a scenario that ended."""
        self._scenarios += 1
        if time.monotonic() - self._said_s >= SILENCE_S:
            self._said_s = time.monotonic()
            line = f"  {self._cell}: {self._scenarios} scenarios ended, the last is {scenario}"
            print(line, file=sys.stderr, flush=True)


def check_cells(
    names: list[str], clauses: list[str] | None, pairs: Pairs, rig: Path | None = None
) -> int:
    """Run the conformance suite on cells and return the exit code.

    Print the cells that cannot be built. If no clause was tested, the exit code is
    EXIT_CANNOT_TELL. Several cells are paired with each other. A single cell is
    paired with the other cells of its middleware. Each pair is checked once, in both directions,
    after the clauses of its first cell. With `rig`, the nodes of a scenario run on the hosts of a
    rig, in turn. Raises MissingError if no cell can be built, and UsageError
    for contradictory options.
    """
    if pairs is Pairs.NONE and "pair" in (clauses or []):
        raise UsageError(
            "--clause pair tests pairs, but --pairs none (or --no-pairs) skips them. Use "
            "--pairs cross or --pairs all."
        )
    for name in clauses or []:
        if CLAUSE.fullmatch(name) and name not in suite().CLAUSES:
            raise unknown("--clause", "clause", name, suite().CLAUSES)
    catalog = Catalog()
    failed = 0
    print(searchable(INTRODUCTION, sys.stdout), flush=True)
    progress = make_progress(as_json=False, plain=False)
    with tempfile.TemporaryDirectory(prefix="wattwire-check-") as folder:
        agent = AgentClient(Path(folder))
        started = contextlib.ExitStack()
        try:
            hosts = CheckHosts(here(agent))
            if rig is not None:
                hosts = started.enter_context(rig_hosts(rig, Path(folder) / "hosts"))
            builder = Builder(agent, lambda step: progress.event("building", **asdict(step)))
            check = _Check(builder, hosts, Path(folder))
            chosen = catalog.cells_like(names)
            alone = len(chosen) == 1
            among = [catalog.cell(name) for name in catalog.cells] if alone else chosen
            for cell in chosen:
                failed += check.run(cell, Pairing(pairs, among, alone), clauses)
        finally:
            progress.close()
            started.close()
            agent.close()
    if len(check.absent) == len(chosen):
        raise MissingError(f"nothing was checked: {', '.join(check.absent)} cannot be built here")
    untested = f"; absent: {', '.join(check.absent)}" if check.absent else ""
    if not failed and not check.passed:
        print(searchable(f"no clause was tested, so there is no result{untested}", sys.stdout))
        return EXIT_CANNOT_TELL
    failure = f"{plural(failed, 'clause')} failed; the lines above name what was found and expected"
    print(searchable((failure if failed else "every tested clause passes") + untested, sys.stdout))
    return EXIT_BAD_RESULT if failed else EXIT_OK


def measure_costs(names: list[str]) -> int:
    """Measure the round-trip cost of kits and store it with the builds.

    Return the number of failed measurements. Cells without a bare client are skipped. Raises
    MissingError if no cell has a bare client.
    """
    failed = measured = 0
    progress = make_progress(as_json=False, plain=False)
    with tempfile.TemporaryDirectory(prefix="wattwire-check-") as name:
        folder = Path(name)
        agent = AgentClient(folder)
        try:
            builder = Builder(agent, lambda step: progress.event("building", **asdict(step)))
            for cell in Catalog().cells_like(names):
                try:
                    build = builder.cell(cell)
                except MissingError as error:
                    print(searchable(f"{cell.name}: absent: {error}", sys.stdout))
                    continue
                subject = under_test(suite(), build, CheckHosts(here(agent)), folder)
                cost, reason = _cost(subject, folder)
                measured, failed = measured + (cost is not None), failed + bool(reason)
                if cost is not None:
                    note_harness_cost(build.key, cost)
                print(searchable(f"{cell.name}: {_cost_words(cost, reason)}", sys.stdout))
        finally:
            progress.close()
            agent.close()
    if not measured and not failed:
        raise MissingError(
            "nothing was measured: none of the named cells has a bare client (bare.*)"
        )
    return failed


def _cost(subject: Any, folder: Path) -> tuple[HarnessCost | None, str]:
    """Return the cost, or None and the reason.

    The result is (None, "") for a cell without a bare client.
    """
    bare = bare_argv(subject.argv)
    if bare is None or "pingpong" not in subject.patterns:
        return None, ""
    broken = importlib.import_module("contract.conformance.cell").Broken
    try:
        ours = functools.partial(cell_round_trip_ns, subject, folder)
        return measured_cost(ours, functools.partial(bare_round_trip_ns, subject, bare)), ""
    except (broken, OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        return None, " ".join(str(error).split())[-300:] or type(error).__name__


def _cost_words(cost: HarnessCost | None, reason: str) -> str:
    if cost is None:
        return f"not measured: {reason or 'it has no bare client (bare.*)'}"
    return (
        f"its kit adds {cost.added_us:.1f} µs to a round trip of {cost.bare_us:.0f} µs (95 % "
        f"interval {cost.added_us_low:.1f} to {cost.added_us_high:.1f}, {cost.pairs} pairs)"
    )


def suite() -> Any:
    """Return the conformance suite. Raises MissingError if it is absent.

    The contract and its suite are next to the package, in the repository or in its data.
    """
    root = home()
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        return importlib.import_module("contract.conformance")
    except ModuleNotFoundError as error:
        raise MissingError(f"no conformance suite in {root / 'contract'}: {error}") from error


@dataclass(frozen=True)
class Pairing:
    """The cells to pair.

    If `alone` is true, a single cell is checked, and `among` contains all cells. Otherwise, the
    cells in `among` are paired with each other.
    """

    pairs: Pairs
    among: list[Cell]
    alone: bool


class _Check:
    """Runs the suite on one cell after another, using the same agent and folder."""

    def __init__(self, builder: Builder, hosts: CheckHosts, folder: Path) -> None:
        self._suite = suite()
        self._builder, self._hosts, self._folder = builder, hosts, folder
        self._built: dict[str, Any] = {}
        self._strangers = Strangers(folder)
        self.absent: list[str] = []
        self.passed = 0
        """Number of clauses and pairs of all cells that passed."""

    def run(self, cell: Cell, pairing: Pairing, clauses: list[str] | None) -> int:
        """Check a cell and its pairs, print the failures and return their number."""
        subject = self._under_test(cell)
        if isinstance(subject, MissingError):
            self.absent.append(cell.name)
            print(searchable(f"{cell.name}: absent: {subject}", sys.stdout))
            if isinstance(subject, LackingError):
                hint_lines = [*sources(cell, subject), install_command(subject.programs)]
                for line in filter(None, hint_lines):
                    print(searchable(line, sys.stdout, "  ", " " * 4))
            return 0
        partner_cells, unpaired_reason = self._partners(cell, pairing)
        print(f"{cell.name}", flush=True)
        for capability, reason in self._builder.absent_capabilities(cell).items():
            print(searchable(f"absent  {capability}: {reason}", sys.stdout, "  ", " " * 8))
        if unpaired_reason:
            print(searchable(f"not paired: {unpaired_reason}", sys.stdout, "  ", " " * 4))
        counts = dict.fromkeys(STATUS_WORDS, 0)
        ended_by: list[str] = []
        silent = _Silence(cell.name)

        def print_result(result: Any) -> None:
            counts[result.status] = counts.get(result.status, 0) + 1
            if result.status != "passed" or result.clause == "pair":
                status = STATUS_WORDS[result.status]
                line = f"{status:<12}{result.clause}  {result.name}: {result.detail}"
                print(searchable(line, sys.stdout, "  ", " " * 8))

        def print_scenario(attempt: Any) -> None:
            silent.end_with(attempt.scenario.name)
            if not attempt.skipped and not attempt.scenario.pair:
                ended_by.append(attempt.ended_by)
            if attempt.stolen_share:
                reason = f"it failed while the host stole {attempt.stolen_share:.0%} of the CPU"
                line = f"{'run again':<12}{attempt.scenario.name}: {reason}"
                print(searchable(line, sys.stdout, "  ", " " * 8), flush=True)

        self._suite.run_suite(subject, partner_cells, clauses, print_result, print_scenario)
        by_status = (f"{count} {STATUS_WORDS[status]}" for status, count in counts.items())
        print("  " + ", ".join(by_status), flush=True)
        self.passed += counts["passed"]
        if pairing.pairs is not Pairs.NONE and not clauses and not counts["failed"]:
            self._measure_strangers(cell, subject, pairing)
        if untested := early_words(ended_by):
            print(searchable(untested, sys.stdout, "  ", " " * 4), flush=True)
        return counts["failed"]

    def _measure_strangers(self, cell: Cell, subject: Any, pairing: Pairing) -> None:
        """Measure the cell's server with the clients of other cells, print and store the result.

        Nothing is measured if no role listens: then the nodes find each other through the library.
        """
        if self._hosts.entries or not subject.listens.get(PINGPONG.name):
            return
        others = [
            sibling
            for name, sibling in self._present(cell, pairing).items()
            if name != cell.name and sibling.wire_name == subject.wire_name
            if PINGPONG.name in sibling.patterns
        ]
        if not others:
            return
        broken = importlib.import_module("contract.conformance.cell").Broken
        try:
            calls = self._strangers.measure(subject, others)
        except (broken, OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(
                searchable(
                    f"clients of other cells: not measured: {error}", sys.stdout, "  ", " " * 4
                )
            )
            return
        note_stranger_calls(self._builder.cell(cell).key, calls)
        print(searchable(stranger_words(calls), sys.stdout, "  ", " " * 4), flush=True)

    def _present(self, cell: Cell, pairing: Pairing) -> dict[str, Any]:
        """Return the cells of the middleware that can be built on this machine, by name."""
        siblings = {
            sibling.name: self._under_test(sibling)
            for sibling in pairing.among
            if sibling.middleware.name == cell.middleware.name
        }
        return {k: v for k, v in siblings.items() if not isinstance(v, MissingError)}

    def _partners(self, cell: Cell, pairing: Pairing) -> tuple[list[Any], str]:
        """Return the built partners of `cell`, and the reason if it has none.

        The ring omits cells that cannot be built on this machine.
        """
        if pairing.pairs is Pairs.NONE:
            return [], ""
        present = self._present(cell, pairing)
        wires = {name: sibling.wire_name for name, sibling in present.items()}
        chosen = partners(pairs_of(wires, pairing.pairs), cell.name, pairing.alone)
        return [present[name] for name in chosen], unpaired(wires, cell.name)

    def _under_test(self, cell: Cell) -> Any:
        """Return the cell as a CellUnderTest of the suite, or the MissingError of its build."""
        if cell.name not in self._built:
            try:
                if gap := self._hosts.gap(cell):
                    raise MissingError(gap)
                build = self._builder.cell(cell)
                absent = self._builder.absent_capabilities(cell)
                levels = self._builder.absent_levels(cell)
                subject = under_test(self._suite, build, self._hosts, self._folder, absent, levels)
            except MissingError as error:
                subject = error
            self._built[cell.name] = subject
        return self._built[cell.name]


def stranger_words(calls: StrangerCalls) -> str:
    """Return the line on how a server answers the clients of other cells."""
    slower_us = calls.slower_us
    if not slower_us:
        slowest = max(calls.strangers_us.values())
        return (
            f"clients of {plural(len(calls.strangers_us), 'other cell')}: a round trip to this "
            f"server takes {number(slowest)} µs at most (median; with its own client "
            f"{number(calls.own_us)} µs)"
        )
    each = ", ".join(f"{name} {number(latency)} µs" for name, latency in slower_us.items())
    tuned = ""
    if calls.tuned_us is not None:
        tuned = f"; with {calls.tuned} {number(calls.tuned_us)} µs for the first of them"
    return (
        f"clients of other cells: this server is slower for {each} (median round trip; "
        f"its own client {number(calls.own_us)} µs{tuned})"
    )


def early_words(ended_by: Sequence[str]) -> str:
    """Return a sentence on the scenarios that ended before READY, or "" if there are none.

    `ended_by` contains the clause that ended each scenario, or "" for a complete scenario.
    """
    early = sum(clause in BEFORE_READY for clause in ended_by)
    if not early:
        return ""
    return (
        f"{early} of {plural(len(ended_by), 'scenario')} ended before the nodes were READY. "
        "Clauses that only these scenarios test are not tested. Fix these scenarios first"
    )


def under_test(
    suite: Any,
    build: CellBuild,
    hosts: CheckHosts,
    folder: Path,
    absent_capabilities: Collection[str] = (),
    absent_levels: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Any:
    """Return a built cell as a CellUnderTest of the suite, without `absent_capabilities`.

    `absent_levels` are the levels of settings that the host does not support (setting → level →
    reason).
    """
    cell = build.cell
    message_setting = cell.middleware.setting_with(MESSAGE) or ""
    security_setting = cell.middleware.setting_with(SECURITY) or ""
    document = cell.document
    places = _places(suite, hosts)
    start_services = _service(cell, hosts, folder, build.words)
    return suite.CellUnderTest(
        name=cell.name,
        argv=list(build.argv),
        env=build.env,
        patterns=document["patterns"],
        capabilities=[n for n in document["capabilities"] if n not in absent_capabilities],
        listens={p: cell.middleware.listens(p) for p in document["patterns"]},
        settings=cell.first_settings,
        payload_bytes_max=document.get("payload_bytes_max"),
        record_bytes_max=document.get("record_bytes_max"),
        payload_bytes_min=document.get("payload_bytes_min", 0),
        wire_name=document.get("wire", ""),
        error_replies=cell.middleware.has_error_replies("service"),
        allowed={n: t["allowed"] for n, t in cell.setting_tables.items() if "allowed" in t},
        excluded=_excluded(cell),
        only=_only(cell, absent_levels),
        tls_setting=cell.middleware.setting_with(TLS) or "",
        message_setting=message_setting,
        velocity_absent=absent_levels.get(message_setting, {}).get(VELOCITY, ""),
        prompt=_prompt(cell),
        wire=suite.wire_of(cell.middleware.folder),
        security=security_of(
            suite,
            cell,
            tuple(dict.fromkeys([*(p.address for p in places), hosts.service_address])),
            absent_levels.get(security_setting, {}).get(SECURED, ""),
            start_services,
        ),
        service=functools.partial(start_services, cell.first_settings, {}),
        places=places,
    )


def _places(suite: Any, hosts: CheckHosts) -> tuple[Any, ...]:
    """Return the hosts of nodes as values of the suite."""
    places = tuple(
        suite.Place(e.name, tuple(e.command), e.clock_ahead_ns, e.address, e.interface)
        for e in hosts.entries
    )
    return places or (suite.HERE,)


def _prompt(cell: Cell) -> dict[str, Any]:
    """Return the spec key and value that disable Nagle's algorithm.

    The result is {} if the cell has no such setting.
    """
    name = cell.middleware.setting_with(NAGLE_OFF)
    if name is None:
        return {}
    off = "on" if cell.middleware.settings[name]["type"] == "string" else True
    return {f"settings.{name}": off} if off in cell.settings_allowed.get(name, [off]) else {}


def _only(
    cell: Cell, absent_levels: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, dict[str, list[Any]]]]:
    """Return the restrictions of the cell's levels (setting → level → spec key → values).

    The result has no `absent_levels` (setting → level → reason).
    """
    return {
        name: {
            level: {FACTORS[factor]: list(values) for factor, values in factors.items()}
            for level, factors in table["only"].items()
            if level in cell.settings_allowed.get(name, table["allowed"])
            and level not in absent_levels.get(name, {})
        }
        for name, table in cell.middleware.settings.items()
        if "only" in table
    }


def _excluded(cell: Cell) -> dict[str, Any]:
    """Return an unsupported value for each setting that the cell supports only in part."""
    unsupported = {}
    for name, supported in cell.settings_allowed.items():
        table = cell.middleware.settings[name]
        fallback = {"boolean": [True, False], "integer": [1 << 20], "string": []}[table["type"]]
        lacked_values = [v for v in table.get("allowed", fallback) if v not in supported]
        if lacked_values:
            unsupported[name] = lacked_values[0]
    return unsupported


def _service(
    cell: Cell, hosts: CheckHosts, folder: Path, words: Mapping[str, str]
) -> Callable[..., contextlib.AbstractContextManager[list[str]]]:
    """Return a function that runs the services of all settings, with credentials (key → path)."""

    @contextlib.contextmanager
    def started(levels: Mapping[str, Level], credentials: Mapping[str, str]) -> Iterator[list[str]]:
        token = "wwcheck" + secrets.token_hex(4)
        run_folder = folder / token
        (run_folder / "logs").mkdir(parents=True)
        processes = RunProcesses({HOST: hosts.service_host}, Deployment(()), token, run_folder)
        services: dict[str, Service] = {}
        settings = {**setting_words(levels), **credential_words(credentials)}
        try:
            for name, table in cell.middleware.services_for(levels).items():
                known = {
                    f"services.{k}": s.endpoints[0] for k, s in services.items() if s.endpoints
                }
                services[name] = start_service(
                    processes,
                    f"{name}-{token}",  # the agent runs one process of a name, the suite several
                    table,
                    hosts.service_address,
                    token,
                    SERVICE_TIMEOUT_S,
                    {**words, **settings, **known},
                )
            yield [endpoint for service in services.values() for endpoint in service.endpoints]
        finally:
            processes.end_all()

    return started
