"""Describe the machine from the agent's data: facts, meters, rights, versions, energy model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from wattwire import __version__
from wattwire.model.deployment import HOST
from wattwire.rig import AgentClient


def describe_machine(agent: AgentClient) -> dict[str, Any]:
    """Return machine.json: facts, meters, rights and versions, in a campaign's format."""
    hello = agent.hello
    return {
        "hosts": {
            HOST: {
                "facts": agent.request("fingerprint")["facts"],
                **{key: hello[key] for key in ("meters", "cgroup", "rights")},
            }
        },
        "versions": {
            "wattwire": __version__,
            "agent": hello["version"],
            "agent_build": hello["build"],
            "python": sys.version.split()[0],
        },
    }


def energy_model(agent: AgentClient) -> dict[str, float] | None:
    """Return the energy model's range (J per CPU second); None if the machine has no model."""
    keys = ("joules_per_cpu_second_low", "joules_per_cpu_second_high")
    for meter in agent.hello["meters"]:
        info: Mapping[str, Any] = meter.get("info") or {}
        if meter.get("state") == "present" and keys[0] in info:
            return {key: float(info[key]) for key in keys}
    return None
