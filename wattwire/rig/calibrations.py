"""The user's own calibrations of energy estimates: one file, which agents read too."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from wattwire.model.errors import UsageError

VERSION = 1
NAME = "calibration.json"


def path() -> Path:
    """`$XDG_CONFIG_HOME/wattwire/calibration.json`, below ~/.config where that is not set."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():
        base = Path.home() / ".config"
    return base / "wattwire" / NAME


def add(calibration: dict[str, Any]) -> Path:
    """Append a calibration: the last one of a processor's name counts. Returns the file.

    Raises UsageError where the file that is there is not one of ours; it stays as it is.
    """
    file = path()
    before = known()
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{NAME}.{os.getpid()}")
    text = json.dumps({"version": VERSION, "calibrations": [*before, calibration]}, indent=1)
    fresh.write_text(text + "\n", encoding="utf-8")
    fresh.replace(file)
    return file


def known() -> list[dict[str, Any]]:
    """All calibrations so far, oldest first. Raises UsageError for a file that is not ours."""
    file = path()
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: cannot be read: {error}. Mend it, or move it away.") from error
    found = document.get("calibrations") if isinstance(document, dict) else None
    if not isinstance(found, list) or document.get("version") != VERSION:
        raise UsageError(
            f"{file}: found another kind of file; allowed: version {VERSION} with a list of "
            "calibrations. Move it away and calibrate again."
        )
    return found
