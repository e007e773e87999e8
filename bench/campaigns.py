"""Measure a campaign of a study through the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from bench.nodes import with_bench_cells
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_OK

ROOT = Path(__file__).parents[1]


def run_study(
    folder: Path, study: str, *options: str, output: IO[str] | int = subprocess.DEVNULL,
    **environment: str,
) -> Path:  # fmt: skip
    """Run a study in `folder`, whatever the load of the machine; return its campaign's folder.

    The study can use the cells and links of the bench. `environment` has variables of the command,
    which the nodes inherit. Raises CalledProcessError
    if a run could not be made or no run is valid. A variant that is worse than the first, which
    also has an exit code, is a result.
    """
    (folder / "study.toml").write_text(study)
    path = environment.pop("WATTWIRE_PATH", os.environ.get("WATTWIRE_PATH", ""))
    environment |= {"PYTHONPATH": str(ROOT), "WATTWIRE_PATH": with_bench_cells(path)}
    done = subprocess.run(
        [sys.executable, "-m", "wattwire", "run", "study.toml", "--campaign", "campaign",
         "--look", "--yes", "--no-report", "--plain", *options],
        cwd=folder, check=False, stdout=output,
        env={**os.environ, **environment},
    )  # fmt: skip
    if done.returncode not in (EXIT_OK, EXIT_BAD_RESULT):
        done.check_returncode()
    return folder / "campaign"
