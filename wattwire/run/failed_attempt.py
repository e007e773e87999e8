"""Decide whether an exception ends the campaign, and clean up the failed attempt."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import traceback
from pathlib import Path

from wattwire.model.errors import AgentLostError, MissingError
from wattwire.model.verdict import Reason, Verdict
from wattwire.rig.agent import AgentError
from wattwire.run.dependencies import DependencyLostError
from wattwire.run.run_processes import GuardLostError

LOG = "logs/exception.txt"
CODE = "exception"
HARNESS_CODE = "harness"
HARNESS = (AgentLostError, GuardLostError, AgentError, DependencyLostError)
"""Errors of what an attempt depends on, apart from its nodes. A node can cause each of them."""
ENVIRONMENT_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}


def ends_campaign(error: BaseException) -> bool:
    """Return whether an exception affects the campaign or the machine, not only the attempt."""
    if isinstance(error, OSError):
        return error.errno in ENVIRONMENT_ERRNOS
    return isinstance(error, (MissingError, sqlite3.Error)) or not isinstance(error, Exception)


def keep_only_logs(folder: Path, error: Exception) -> Reason:
    """Remove everything but the logs from an attempt's folder, and return the failure's reason.

    The traceback is written to a log. A file that a node wrote may have caused the exception, so no
    other file is preserved.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name != "logs" or path.is_symlink():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
    log = folder / LOG
    log.parent.mkdir(exist_ok=True)
    log.unlink(missing_ok=True)
    text = "".join(traceback.format_exception(error))
    log.write_text(text, encoding="utf-8", errors="backslashreplace")
    if isinstance(error, HARNESS):
        return Reason(Verdict.FAILED, HARNESS_CODE, str(error).splitlines()[0][:300])
    summary = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    return Reason(Verdict.FAILED, CODE, f"wattwire could not judge this attempt ({summary}); {LOG}")
