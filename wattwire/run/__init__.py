"""Execute campaigns and runs."""

from wattwire.run.campaign import CampaignRunner, Options, Skipped
from wattwire.run.progress import Progress
from wattwire.run.resolve_cells import Prepared, prepare

__all__ = ["CampaignRunner", "Options", "Prepared", "Progress", "Skipped", "prepare"]
