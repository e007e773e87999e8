"""Start the hosts of a rig, with an agent on each, and join them by networks."""

from wattwire.hosts.host import Host
from wattwire.hosts.hosts import Hosts, LiveNetwork

__all__ = ["Host", "Hosts", "LiveNetwork"]
