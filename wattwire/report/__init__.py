"""Tables, figures and the page of a campaign."""

from wattwire.report.evidence import CampaignReader
from wattwire.report.page import build_report

__all__ = ["CampaignReader", "build_report"]
