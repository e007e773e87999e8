"""Store the user's energy calibrations in a file that agents also read."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from wattwire.model.errors import UsageError

VERSION = 1
NAME = "calibration.json"


def path() -> Path:
    """Return `$XDG_CONFIG_HOME/wattwire/calibration.json`; the default folder is ~/.config."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():
        base = Path.home() / ".config"
    return base / "wattwire" / NAME


def add(calibration: dict[str, Any]) -> Path:
    """Append a calibration and return the file. The last entry for a processor name is used.

    Raise UsageError, without changing the file, if the file has another format.
    """
    file = path()
    earlier = known()
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{NAME}.{secrets.token_hex(8)}")
    text = json.dumps({"version": VERSION, "calibrations": [*earlier, calibration]}, indent=1)
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(file)
    return file


def known() -> list[dict[str, Any]]:
    """Return all calibrations, oldest first. Raise UsageError if the file has another format."""
    file = path()
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: cannot be read: {error}. Fix it, or move it away.") from error
    calibrations = document.get("calibrations") if isinstance(document, dict) else None
    if not isinstance(calibrations, list) or document.get("version") != VERSION:
        raise UsageError(
            f"{file}: not a calibration file; allowed: version {VERSION} with a list of "
            "calibrations. Move it away and calibrate again."
        )
    return calibrations
