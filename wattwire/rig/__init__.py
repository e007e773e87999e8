"""Manage hosts and their builds. All processes are started through this package."""

from wattwire.rig.agent import AgentClient, find_agent
from wattwire.rig.builds import Artifact, Builder, BuildStep, CellBuild

__all__ = ["AgentClient", "Artifact", "BuildStep", "Builder", "CellBuild", "find_agent"]
