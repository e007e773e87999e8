"""The only code that knows the files of a campaign."""

from wattwire.store.campaign import Campaign
from wattwire.store.execution import Execution
from wattwire.store.journal import Attempt, Journal

__all__ = ["Attempt", "Campaign", "Execution", "Journal"]
