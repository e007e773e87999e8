"""Run mutants: plant a fault into a copy of a kit, build the cell, and run the suite."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ..repository import ROOT, proving_cell
from ..suite import run_scenarios, scenarios_for
from .table import Mutant, mutants

__all__ = ["Mutant", "Outcome", "mutants", "planted_kit", "try_mutant", "try_mutants"]

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


def planted_kit(mutant: Mutant, folder: Path) -> Path:
    """Copy the kit, plant the fault, and return the copy's folder.

    Raise LookupError if the text to replace does not occur exactly once.
    """
    kit = folder / "kit"
    shutil.copytree(
        ROOT / "languages" / mutant.language / "kit", kit,
        ignore=shutil.ignore_patterns("__pycache__", "tests", "target"),
    )  # fmt: skip
    path = kit / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.find) != 1:
        raise LookupError(
            f"{mutant.identity}: {mutant.file} contains the text to replace "
            f"{text.count(mutant.find)} times, expected once; update the mutant"
        )
    path.write_text(text.replace(mutant.find, mutant.replace), encoding="utf-8")
    return kit


def try_mutant(mutant: Mutant) -> Outcome:
    """Build and check one mutant. An error that prevents this does not count as caught."""
    with tempfile.TemporaryDirectory(prefix="wattwire-mutant-") as name:
        folder = Path(name)
        try:
            kit = planted_kit(mutant, folder)
            cell = proving_cell(mutant.language, folder / "build", kit, mutant.build_flags)
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
