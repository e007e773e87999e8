"""Manage hosts and their builds. No other code starts processes."""

from wattwire.rig.agent import AgentClient, find_agent
from wattwire.rig.builds import Artifact, Builder, BuildStep, CellBuild

__all__ = ["AgentClient", "Artifact", "BuildStep", "Builder", "CellBuild", "find_agent"]
