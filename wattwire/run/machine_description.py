"""Describe the machines from their agents' data: facts, meters, rights, versions, energy model."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wattwire import __version__
from wattwire.hosts.host import Host, in_parallel
from wattwire.model.deployment import HOST
from wattwire.rig import AgentClient
from wattwire.rig.agent import AgentError

EQUAL = "equal"
"""Check of the facts that a campaign requires to be the same when it continues."""
MACHINE_ID = Path("/etc/machine-id")
ID_DIGITS = 16


def describe_machines(agent: AgentClient, far: Mapping[str, Host]) -> dict[str, Any]:
    """Return machine.json: facts, meters, rights and versions, in a campaign's format.

    `agent` is that of this machine, and `far` are the hosts over ssh. Hosts of one boot are on one
    machine.
    """
    hello = agent.hello
    return {
        "hosts": {
            HOST: _entry(agent, []),
            **dict(zip(far, in_parallel(_far_entry, [*far.values()]), strict=True)),
        },
        "versions": {
            "wattwire": __version__,
            "agent": hello["version"],
            "agent_build": hello["build"],
            "python": sys.version.split()[0],
        },
    }


def _entry(agent: AgentClient, more_facts: list[dict[str, Any]]) -> dict[str, Any]:
    hello = agent.hello
    return {
        "boot": hello["boot_id"],
        "facts": [*agent.request("fingerprint")["facts"], *more_facts],
        **{key: hello[key] for key in ("meters", "cgroup", "rights")},
    }


def _far_entry(host: Host) -> dict[str, Any]:
    """Return the entry of a host over ssh, with a hash of its id, which a machine of the same model
    does not share."""
    try:
        content = host.read(MACHINE_ID).strip()
    except AgentError:
        content = b""
    digest = hashlib.sha256(b"wattwire " + content).hexdigest()[:ID_DIGITS]
    fact = {"key": "machine_id", "value": digest, "unit": "", "check": EQUAL}
    return _entry(host.agent, [fact] if content else [])


def identity_of(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of machine.json that must not change: KEY, or HOST:KEY of a far host."""
    return {
        fact["key"] if host == HOST else f"{host}:{fact['key']}": fact["value"]
        for host, entry in machine["hosts"].items()
        for fact in entry["facts"]
        if fact["check"] == EQUAL
    }


def energy_model(agent: AgentClient) -> dict[str, float] | None:
    """Return the energy model's range (J per CPU second); None if the machine has no model."""
    keys = ("joules_per_cpu_second_low", "joules_per_cpu_second_high")
    for meter in agent.hello["meters"]:
        info: Mapping[str, Any] = meter.get("info") or {}
        if meter.get("state") == "present" and keys[0] in info:
            return {key: float(info[key]) for key in keys}
    return None
