"""Hosts and the builds on them: the only code that starts processes."""

from wattwire.rig.agent import AgentClient, find_agent
from wattwire.rig.builds import Artifact, Builder, BuildStep, CellBuild

__all__ = ["AgentClient", "Artifact", "BuildStep", "Builder", "CellBuild", "find_agent"]
