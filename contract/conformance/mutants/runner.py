"""Run mutants: plant a fault into copies of a kit and its cell, build, and run the suite."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ..repository import ROOT, proving_cell, proving_folder
from ..suite import run_scenarios, scenarios_for
from .table import CELL, Mutant, mutants

__all__ = ["Mutant", "Outcome", "Planted", "mutants", "plant", "try_mutant", "try_mutants"]

WORKERS = 3


@dataclass(frozen=True)
class Outcome:
    """The outcome of one mutant: the broken clauses, or the error that prevented its test."""

    mutant: Mutant
    clauses: tuple[str, ...] = ()
    error: str = ""
    details: tuple[str, ...] = field(default=())

    @property
    def caught(self) -> bool:
        """Whether the suite detected the fault by the mutant's clause."""
        return not self.error and self.mutant.clause in self.clauses


@dataclass(frozen=True)
class Planted:
    """Copies of a kit and of its cell; `file` is the file of the copies with the fault."""

    kit: Path
    cell: Path
    file: Path


def plant(mutant: Mutant, folder: Path) -> Planted:
    """Copy the kit and its cell, and plant the fault.

    Raise LookupError if the text to replace does not occur exactly once.
    """
    kit, cell = folder / "kit", folder / "cell"
    ignored = shutil.ignore_patterns("__pycache__", "tests", "target")
    shutil.copytree(ROOT / "languages" / mutant.language / "kit", kit, ignore=ignored)
    shutil.copytree(proving_folder(mutant.language, mutant.middleware), cell, ignore=ignored)
    in_cell = mutant.file.startswith(CELL)
    path = cell / mutant.file.removeprefix(CELL) if in_cell else kit / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.find) != 1:
        raise LookupError(
            f"{mutant.identity}: {mutant.file} contains the text to replace "
            f"{text.count(mutant.find)} times, expected once; update the mutant"
        )
    path.write_text(text.replace(mutant.find, mutant.replace), encoding="utf-8")
    return Planted(kit, cell, path)


def try_mutant(mutant: Mutant) -> Outcome:
    """Build and check one mutant. An error that prevents this does not count as caught."""
    with tempfile.TemporaryDirectory(prefix="wattwire-mutant-") as name:
        folder = Path(name)
        try:
            planted = plant(mutant, folder)
            cell = proving_cell(
                mutant.language, folder / "build", planted.kit, mutant.build_flags, planted.cell,
                mutant.middleware,
            )  # fmt: skip
        except (LookupError, RuntimeError) as error:
            return Outcome(mutant, error=str(error))
        scenarios = {scenario.name: scenario for scenario in scenarios_for(cell, [])}
        chosen = [scenarios[name] for name in mutant.scenarios]
        problems = [p for result in run_scenarios(cell, chosen, workers=1) for p in result.problems]
    clauses = tuple(sorted({problem.clause for problem in problems}))
    return Outcome(mutant, clauses, details=tuple(str(problem) for problem in problems[:4]))


def try_mutants(
    chosen: Sequence[Mutant], progress: Callable[[Outcome], None] | None = None
) -> list[Outcome]:
    """Try the chosen mutants, WORKERS at a time, and return their outcomes in the same order."""

    def try_one(mutant: Mutant) -> Outcome:
        outcome = try_mutant(mutant)
        if progress is not None:
            progress(outcome)
        return outcome

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(try_one, chosen))
