"""The conformance suite over built cells: building, service processes, the table of clauses."""

from __future__ import annotations

import contextlib
import importlib
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from wattwire.catalog import Catalog, Cell
from wattwire.catalog.home import home
from wattwire.cli.things import chosen_cells
from wattwire.cli.wrap import searchable
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder, CellBuild
from wattwire.run.processes import RunProcesses, start_service

SERVICE_TIMEOUT_S = 10.0


def check_cells(names: list[str], clauses: list[str] | None, pairs: bool) -> int:
    """Check cells; returns how many clauses failed. A cell that cannot be built is named."""
    catalog = Catalog()
    suite = _suite()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="wattwire-check-") as folder:
        agent = AgentClient(Path(folder))
        try:
            builder = Builder(agent, lambda text: print(f"  {text}", flush=True))
            for cell in chosen_cells(catalog, names):
                failed += _check_one(
                    cell, catalog, builder, agent, suite, Path(folder), clauses, pairs
                )
        finally:
            agent.close()
    print(f"{failed} clauses failed" if failed else "every clause that could be tested holds")
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


def _check_one(
    cell: Cell,
    catalog: Catalog,
    builder: Builder,
    agent: AgentClient,
    suite: Any,
    folder: Path,
    clauses: list[str] | None,
    pairs: bool,
) -> int:
    try:
        subject = under_test(suite, builder.cell(cell), agent, folder)
    except MissingError as error:
        print(searchable(f"{cell.name}: absent: {error}", sys.stdout))
        return 0
    others = list(_others(cell, catalog, builder, agent, suite, folder)) if pairs else []
    print(f"{cell.name}", flush=True)
    counts = {"passed": 0, "failed": 0, "skipped": 0}

    def tell(result: Any) -> None:
        counts[result.status] = counts.get(result.status, 0) + 1
        if result.status != "passed":
            line = f"{result.status:<8}{result.clause}  {result.name}: {result.detail}"
            print(searchable(line, sys.stdout, "  ", " " * 8))

    suite.run_suite(subject, others, clauses, tell)
    print(f"  {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return counts["failed"]


def _others(
    cell: Cell, catalog: Catalog, builder: Builder, agent: AgentClient, suite: Any, folder: Path
) -> Iterator[Any]:
    """The middleware's other cells, as far as they can be built here."""
    for name in catalog.cells:
        if name != cell.name and name.startswith(f"{cell.middleware.name}/"):
            with contextlib.suppress(MissingError):
                yield under_test(suite, builder.cell(catalog.cell(name)), agent, folder)


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
        service=_service(cell, agent, folder),
    )


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
