"""Store campaigns. Only this package depends on the layout of their files."""

from wattwire.store.campaign import WARM_UP, Campaign
from wattwire.store.imported import ImportedCampaign, open_campaign
from wattwire.store.journal import Attempt, Journal
from wattwire.store.messages import Messages

__all__ = [
    "WARM_UP", "Attempt", "Campaign", "ImportedCampaign", "Journal", "Messages",
    "open_campaign",
]  # fmt: skip
