"""Hosts and what is built on them: the only code that starts things."""

from wattwire.rig.agent import AgentClient, find_agent
from wattwire.rig.builds import Artifact, Builder, BuildStep, CellBuild

__all__ = ["AgentClient", "Artifact", "BuildStep", "Builder", "CellBuild", "find_agent"]
