"""Check all hosts of a rig, and each network while it is up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from wattwire.hosts.health.finding import MISSING, NOTE, Finding
from wattwire.hosts.health.machine import clock_finding, machine_findings
from wattwire.hosts.health.network import fragment_finding, network_findings
from wattwire.hosts.hosts import Hosts
from wattwire.model.errors import WattwireError
from wattwire.model.rig import LOCAL, Rig
from wattwire.model.words import plural

SEED = 1


@dataclass
class Health:
    """All findings by section: a machine with its hosts, a host, or a network."""

    first: str = ""
    sections: dict[str, list[Finding]] = field(default_factory=dict)
    next: str = ""
    ready: bool = False


def check_rig(
    hosts: Hosts, folder: Path, version: str, languages: Mapping[str, Sequence[str]]
) -> Health:
    """Return the findings of a rig whose hosts have started.

    `folder` is for the files of networks, `version` that of this wattwire, and `languages` maps a
    language to the programs that it needs. What hosts of one boot share is checked once.
    """
    health = Health()
    machines: dict[str, list[str]] = {}
    for name, host in hosts.by_name.items():
        machines.setdefault(host.agent.hello["boot_id"], []).append(name)
    for names in machines.values():
        # A host of kind local is outside of namespaces, which hide some of the machine's values.
        first = next((n for n in names if hosts.rig.hosts[n].kind == LOCAL), names[0])
        findings = [
            replace(item, hosts=tuple(names))
            for item in machine_findings(
                hosts.by_name[first], version, languages, len(machines) == 1
            )
        ]
        health.sections[f"Machine of {', '.join(names)}"] = findings
    for name, host in hosts.by_name.items():
        health.sections[f"Host {name}"] = [clock_finding(host), fragment_finding(host)]
    for name in hosts.rig.networks:
        health.sections[f"Network {name}"] = network_section(hosts, name, folder / name)
    _summarise(health, hosts.rig)
    return health


def network_section(hosts: Hosts, name: str, folder: Path) -> list[Finding]:
    """Return the findings on a network, which is up only during this call."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with hosts.network(name, folder, SEED) as network:
            return merged(network_findings(network, hosts.by_name))
    except WattwireError as error:
        joined = hosts.rig.networks[name].hosts
        cause = "runs with this network are not possible"
        return [Finding("network", MISSING, joined, str(error), cause, network=name)]


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in which equal ones of several hosts are one."""
    names: dict[Finding, tuple[str, ...]] = {}
    for item in findings:
        key = replace(item, hosts=())
        names[key] = names.get(key, ()) + item.hosts
    return [replace(item, hosts=hosts) for item, hosts in names.items()]


def _summarise(health: Health, rig: Rig) -> None:
    findings = [item for items in health.sections.values() for item in items]
    missing = sum(item.state == MISSING for item in findings)
    notes = sum(item.state == NOTE for item in findings)
    health.ready = not missing
    health.first = (
        f"{plural(len(rig.hosts), 'host')}, {plural(len(rig.networks), 'network')}: "
        f"{missing} of {plural(len(findings), 'check')} prevent runs, {notes} change results."
    )
    command = f"wattwire plan STUDY --rig {rig.source}"
    health.next = command if health.ready else f"wattwire doctor --rig {rig.source}"
