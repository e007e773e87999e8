"""Check the hosts and networks of a rig for what changes the results of a study."""

from wattwire.hosts.health.checks import Health, check_rig
from wattwire.hosts.health.finding import MISSING, NOTE, OK, Finding

__all__ = ["MISSING", "NOTE", "OK", "Finding", "Health", "check_rig"]
