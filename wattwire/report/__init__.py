"""Tables, figures and the page of a campaign."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wattwire.analysis.dataset import CampaignReader
    from wattwire.report.page import build_report

__all__ = ["CampaignReader", "build_report"]


def __getattr__(name: str) -> Any:
    """Import the page builder on first access, because the import takes seconds."""
    if name == "build_report":
        from wattwire.report.page import build_report  # noqa: PLC0415

        return build_report
    if name == "CampaignReader":
        from wattwire.analysis.dataset import CampaignReader

        return CampaignReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
