"""The conformance suite over built cells: building, service processes, the table of clauses."""

from __future__ import annotations

import contextlib
import importlib
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog, Cell
from wattwire.catalog.home import home
from wattwire.cli.pairing import Pairs, pairs_of, partners, unpaired
from wattwire.cli.screen import make_progress
from wattwire.cli.verbs.catalog import chosen_cells
from wattwire.cli.verbs.doctor import install_command, sources
from wattwire.cli.wrap import searchable
from wattwire.model.errors import MissingError, UsageError
from wattwire.model.setting_roles import NAGLE_OFF, TLS
from wattwire.model.words import plural
from wattwire.rig import AgentClient, Builder, CellBuild
from wattwire.rig.builds import LackingError
from wattwire.run.processes import RunProcesses, start_service

SERVICE_TIMEOUT_S = 10.0
BEFORE_READY = ("C-06", "C-07")
"""Clauses whose breach ends a scenario before its window."""


def check_cells(names: list[str], clauses: list[str] | None, pairs: Pairs) -> int:
    """Check cells; returns how many clauses failed. A cell that cannot be built is named.

    Several cells are paired among each other, one alone with others of its middleware. A pair is
    checked with the first of the two, in both directions.
    """
    if pairs is Pairs.NONE and "pair" in (clauses or []):
        raise UsageError(
            "--clause pair asks for pairs, and --pairs none (or --no-pairs) leaves them out; "
            "allowed beside it: --pairs cross, --pairs all"
        )
    catalog = Catalog()
    failed = 0
    progress = make_progress(as_json=False, plain=False)
    with tempfile.TemporaryDirectory(prefix="wattwire-check-") as folder:
        agent = AgentClient(Path(folder))
        try:
            builder = Builder(agent, lambda step: progress.event("building", **asdict(step)))
            check = _Check(builder, agent, Path(folder))
            chosen = chosen_cells(catalog, names)
            alone = len(chosen) == 1
            among = [catalog.cell(name) for name in catalog.cells] if alone else chosen
            for cell in chosen:
                failed += check.run(cell, Pairing(pairs, among, alone), clauses)
        finally:
            progress.close()
            agent.close()
    if len(check.absent) == len(chosen):
        raise MissingError(f"nothing was checked: {', '.join(check.absent)} cannot be built here")
    holds = "every clause that could be tested holds"
    told = f"{plural(failed, 'clause')} failed" if failed else holds
    print(told + (f"; absent: {', '.join(check.absent)}" if check.absent else ""))
    return failed


def _suite() -> Any:
    # The contract and its suite stand beside the package, in the repository or in its data.
    root = home()
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        return importlib.import_module("contract.conformance")
    except ModuleNotFoundError as error:
        raise MissingError(f"no conformance suite in {root / 'contract'}: {error}") from error


@dataclass(frozen=True)
class Pairing:
    """Which pairs of `among` are checked; with a cell that is `alone`, only those that it is in."""

    pairs: Pairs
    among: list[Cell]
    alone: bool


class _Check:
    """The suite over one cell after another, with one agent and one folder."""

    def __init__(self, builder: Builder, agent: AgentClient, folder: Path) -> None:
        self._suite = _suite()
        self._builder, self._agent, self._folder = builder, agent, folder
        self._built: dict[str, Any] = {}
        self.absent: list[str] = []

    def run(self, cell: Cell, pairing: Pairing, clauses: list[str] | None) -> int:
        """Prints what does not hold for a cell, alone and with partners of its middleware."""
        subject = self._under_test(cell)
        if isinstance(subject, MissingError):
            self.absent.append(cell.name)
            print(searchable(f"{cell.name}: absent: {subject}", sys.stdout))
            if isinstance(subject, LackingError):
                told = [*sources(cell, subject), install_command(subject.programs)]
                for line in filter(None, told):
                    print(searchable(line, sys.stdout, "  ", " " * 4))
            return 0
        others, why = self._partners(cell, pairing)
        print(f"{cell.name}", flush=True)
        if why:
            print(searchable(f"not paired: {why}", sys.stdout, "  ", " " * 4))
        counts = {"passed": 0, "failed": 0, "skipped": 0}
        ends: list[str] = []

        def tell(result: Any) -> None:
            counts[result.status] = counts.get(result.status, 0) + 1
            if result.status != "passed" or result.clause == "pair":
                line = f"{result.status:<8}{result.clause}  {result.name}: {result.detail}"
                print(searchable(line, sys.stdout, "  ", " " * 8))

        def tell_scenario(found: Any) -> None:
            if not found.skipped and not found.scenario.pair:
                ends.append(found.ended_by)
            if found.stolen_share:
                why = f"the host took {found.stolen_share:.0%} of the cores, and it failed"
                line = f"twice   {found.scenario.name}: {why}"
                print(searchable(line, sys.stdout, "  ", " " * 8), flush=True)

        self._suite.run_suite(subject, others, clauses, tell, tell_scenario)
        print("  " + ", ".join(f"{count} {status}" for status, count in counts.items()), flush=True)
        if untested := early_words(ends):
            print(searchable(untested, sys.stdout, "  ", " " * 4), flush=True)
        return counts["failed"]

    def _partners(self, cell: Cell, pairing: Pairing) -> tuple[list[Any], str]:
        """The cells that one is paired with, built, and why there is none.

        What cannot be built here has no place in a ring, which closes over the others.
        """
        if pairing.pairs is Pairs.NONE:
            return [], ""
        siblings = {
            other.name: self._under_test(other)
            for other in pairing.among
            if other.middleware.name == cell.middleware.name
        }
        present = {k: v for k, v in siblings.items() if not isinstance(v, MissingError)}
        wires = {name: other.wire_name for name, other in present.items()}
        chosen = partners(pairs_of(wires, pairing.pairs), cell.name, pairing.alone)
        return [present[name] for name in chosen], unpaired(wires, cell.name)

    def _under_test(self, cell: Cell) -> Any:
        """The cell in the suite's words, or the error that says why it cannot be built here."""
        if cell.name not in self._built:
            try:
                build = self._builder.cell(cell)
                found = under_test(self._suite, build, self._agent, self._folder)
            except MissingError as error:
                found = error
            self._built[cell.name] = found
        return self._built[cell.name]


def early_words(ended_by: Sequence[str]) -> str:
    """What it means for the counts that scenarios ended before READY; "" where none did.

    `ended_by` is the clause that ended each scenario, "" for those that came to their end.
    """
    early = sum(clause in BEFORE_READY for clause in ended_by)
    if not early:
        return ""
    return (
        f"{early} of {plural(len(ended_by), 'scenario')} ended before the nodes were READY, and "
        "what only those test counts as skipped: mend that first"
    )


def under_test(suite: Any, build: CellBuild, agent: AgentClient, folder: Path) -> Any:
    """A built cell in the suite's own words."""
    cell = build.cell
    document = cell.document
    return suite.CellUnderTest(
        name=cell.name,
        argv=list(build.argv),
        env=build.env,
        patterns=document["patterns"],
        capabilities=document["capabilities"],
        listens={p: cell.middleware.listens(p) for p in document["patterns"]},
        settings=cell.middleware.effective_settings({}),
        payload_bytes_max=document.get("payload_bytes_max"),
        record_bytes_max=document.get("record_bytes_max"),
        payload_bytes_min=document.get("payload_bytes_min", 0),
        wire_name=document.get("wire", ""),
        error_replies=cell.middleware.has_error_replies("service"),
        excluded=_excluded(cell),
        tls_setting=cell.middleware.setting_with(TLS) or "",
        prompt=_prompt(cell),
        wire=suite.wire_of(cell.middleware.folder),
        service=_service(cell, agent, folder),
    )


def _prompt(cell: Cell) -> dict[str, Any]:
    """The spec key that switches Nagle's algorithm off, where the cell can."""
    name = cell.middleware.setting_with(NAGLE_OFF)
    if name is None:
        return {}
    off = "on" if cell.middleware.settings[name]["type"] == "string" else True
    return {f"settings.{name}": off} if off in cell.settings_allowed.get(name, [off]) else {}


def _excluded(cell: Cell) -> dict[str, Any]:
    """For each setting of which this cell has some values only, one that it does not have."""
    found = {}
    for name, have in cell.settings_allowed.items():
        table = cell.middleware.settings[name]
        others = {"boolean": [True, False], "integer": [1 << 20], "string": []}[table["type"]]
        lacking = [v for v in table.get("allowed", others) if v not in have]
        if lacking:
            found[name] = lacking[0]
    return found


def _service(
    cell: Cell, agent: AgentClient, folder: Path
) -> Callable[[], contextlib.AbstractContextManager[list[str]]]:
    @contextlib.contextmanager
    def started() -> Iterator[list[str]]:
        token = "wwcheck" + secrets.token_hex(4)
        place = folder / token
        (place / "logs").mkdir(parents=True)
        processes = RunProcesses(agent, token, place)
        endpoints: list[str] = []
        try:
            for name, table in cell.middleware.services.items():
                endpoints += start_service(
                    processes, agent, name, table, place, token, SERVICE_TIMEOUT_S
                )
            yield endpoints
        finally:
            processes.end_all()

    return started
