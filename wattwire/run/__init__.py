"""The life of a run and of a campaign."""

from wattwire.run.campaign import CampaignRunner, Options, Skipped
from wattwire.run.prepare import Prepared, prepare
from wattwire.run.progress import Progress

__all__ = ["CampaignRunner", "Options", "Prepared", "Progress", "Skipped", "prepare"]
