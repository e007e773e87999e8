"""Measure the cost of messages between programs.

`wattwire.load(DIR)` reads a campaign's tables; everything else is used through the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from wattwire.analysis.loaded import CampaignData

__all__ = ["__version__", "load"]

__version__ = "0.1.0"


def load(path: Path | str) -> CampaignData:
    """Return the tables of a campaign: `runs`, `attempts`, `messages(run)`, `quantities(run)`.

    Raises UsageError if the folder is not a campaign. See docs/python.md for examples.
    """
    from wattwire.analysis.loaded import CampaignData  # noqa: PLC0415 - slow to import

    return CampaignData(path)
