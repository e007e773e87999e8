"""Request the confirmation of a long plan."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from wattwire.catalog import Catalog
from wattwire.catalog.manifest import read_toml
from wattwire.cli.screen import duration_words
from wattwire.cli.wrap import wrapped
from wattwire.design import PROCESSES_MANY, PlannedRun
from wattwire.model.deployment import node_count
from wattwire.model.errors import UsageError
from wattwire.model.study import Study
from wattwire.model.study import presets_of as named_presets
from wattwire.model.words import count
from wattwire.run.forecast import Forecast

WIDTH = 80
LONG_S = 3600.0
"""Duration above which a plan requires a confirmation, in seconds."""


def presets_of(catalog: Catalog, study: str) -> list[str]:
    """Return the sorted names of a study's presets."""
    path = catalog.study(study)[1]
    return sorted(named_presets(read_toml(path), str(path)))


def needs_confirmation(runs: Sequence[PlannedRun], estimate: Forecast) -> bool:
    """Return whether the user must confirm a plan: it is long, or a run has many processes."""
    return estimate.seconds > LONG_S or any(
        node_count(run.treatment) > PROCESSES_MANY for run in runs
    )


def confirm_long(
    study: Study,
    runs: Sequence[PlannedRun],
    presets: Mapping[str, float],
    estimate: Forecast,
) -> None:
    """Request confirmation of a long plan, or of runs with many processes.

    `presets` maps each preset of the study to its expected duration in seconds. Raises UsageError
    without a terminal, or if the answer is not yes.
    """
    if not needs_confirmation(runs, estimate):
        return
    text = f"{study.heading}: {len(runs)} runs take about {duration_words(estimate.seconds)}."
    processes = max(node_count(run.treatment) for run in runs)
    if processes > PROCESSES_MANY:
        text += f" A run starts {count(processes)} processes."
    shorter = sorted((s, p) for p, s in presets.items() if s < estimate.seconds)
    if shorter:
        listed = ", ".join(f"{preset} {duration_words(seconds)}" for seconds, preset in shorter)
        text += f" Shorter, with --preset: {listed}."
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            f"{text} There is no terminal to ask for confirmation: add --yes to run it."
        )
    print(wrapped(text, WIDTH, hanging=""))
    answer = input("Run it? [y/N] ")  # waits: the answer of the user
    if answer.strip().lower() not in {"y", "yes"}:
        raise UsageError("nothing was run, because you answered no")
