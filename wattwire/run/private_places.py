"""Folders of this machine whose paths stand in a campaign's commands, and what stands for them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from wattwire.model.paths import cache_folder


def private_places(folder: Path, roots: Sequence[Path]) -> dict[str, str]:
    """Return the word for each folder whose path a bundle of the campaign in `folder` leaves out.

    Commands, environments and logs hold these paths, and whatever names are parts of them.
    """
    words = {str(Path.cwd()): "[folder]", sys.prefix: "[python]"}
    words |= {str(root.absolute()): "[wattwire]" for root in roots}
    words |= {str(cache_folder().absolute()): "[cache]", str(folder.resolve()): "[campaign]"}
    return words
