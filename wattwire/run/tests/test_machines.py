"""Test that a campaign knows each machine of its rig, and notices another one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from wattwire.rig.agent import AgentError
from wattwire.run.machine_description import describe_machines, identity_of


def agent(boot: str, cpu: str) -> Any:
    facts = [
        {"key": "cpu_name", "value": cpu, "unit": "", "check": "equal"},
        {"key": "load", "value": 0.5, "unit": "", "check": "note"},
    ]
    hello = {"boot_id": boot, "version": "1", "build": "b", "meters": [], "cgroup": {}}
    return SimpleNamespace(hello={**hello, "rights": {}}, request=lambda _: {"facts": facts})


def far(boot: str, cpu: str, machine_id: bytes | None) -> Any:
    def read(path: Path) -> bytes:
        if machine_id is None:
            raise AgentError("fetch", "io", "no such file")
        return machine_id

    return SimpleNamespace(agent=agent(boot, cpu), read=read)


def identity(**hosts: Any) -> dict[str, Any]:
    return identity_of(describe_machines(agent("here", "A"), hosts))


def test_every_host_over_ssh_is_described_beside_this_machine() -> None:
    machine = describe_machines(agent("here", "A"), {"edge": far("there", "B", b"1")})
    assert [entry["boot"] for entry in machine["hosts"].values()] == ["here", "there"]
    assert [*machine["hosts"]] == ["local", "edge"]
    assert identity()["cpu_name"] == "A" and len(identity()) == 1


def test_another_machine_of_the_same_model_has_another_identity() -> None:
    before = identity(edge=far("boot 1", "B", b"1"))
    assert before["edge:cpu_name"] == "B" and "edge:load" not in before
    assert identity(edge=far("boot 2", "B", b"1")) == before  # only restarted
    replaced = identity(edge=far("boot 2", "B", b"2"))
    assert {k for k in before if before[k] != replaced[k]} == {"edge:machine_id"}
    assert "edge:machine_id" not in identity(edge=far("boot 1", "B", None))


def test_the_id_of_a_machine_is_not_stored() -> None:
    assert "secret" not in str(identity(edge=far("boot", "B", b"secret")))
