"""List the machine-specific folders that occur in a campaign, with replacements for redaction."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from wattwire.model.paths import cache_folder


def private_places(folder: Path, roots: Sequence[Path]) -> dict[str, str]:
    """Return path → replacement for the folders to redact in a bundle of the campaign in `folder`.

    Commands, environments and logs contain these paths, which may contain personal names.
    """
    replacements = {str(Path.cwd()): "[folder]", sys.prefix: "[python]"}
    replacements |= {str(root.absolute()): "[wattwire]" for root in roots}
    replacements |= {str(cache_folder().absolute()): "[cache]", str(folder.resolve()): "[campaign]"}
    return replacements
