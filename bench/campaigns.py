"""Measure a campaign of a study through the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from bench import nodes  # noqa: F401 - makes the cells and links of the bench known
from wattwire.model.errors import EXIT_BAD_RESULT, EXIT_OK

ROOT = Path(__file__).parents[1]


def run_study(
    folder: Path, study: str, *options: str, output: IO[str] | int = subprocess.DEVNULL,
    **environment: str,
) -> Path:  # fmt: skip
    """Run a study in `folder`, whatever the load of the machine; return its campaign's folder.

    `environment` has variables of the command, which the nodes inherit. Raises CalledProcessError
    if a run could not be made or no run is valid. A variant that is worse than the first, which
    also has an exit code, is a result.
    """
    (folder / "study.toml").write_text(study)
    done = subprocess.run(
        [sys.executable, "-m", "wattwire", "run", "study.toml", "--campaign", "campaign",
         "--look", "--yes", "--no-report", "--plain", *options],
        cwd=folder, check=False, stdout=output,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    if done.returncode not in (EXIT_OK, EXIT_BAD_RESULT):
        done.check_returncode()
    return folder / "campaign"
