"""Test which variables of the host are part of the key of a build."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire.catalog import Catalog
from wattwire.rig import AgentClient, Builder

MIDDLEWARE = """
title = "Test"
[patterns.topic]
listens = "none"
[environment]
host_env = ["PREFIX_OF_TEST", "PYTHONPATH"]
host_env_with = ["PREFIX_OF_TEST"]
commands = [["true"]]
"""


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "middleware" / "keyed"
    folder.mkdir(parents=True)
    (folder / "middleware.toml").write_text(MIDDLEWARE)
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path / "cache"))

    def of(**variables: str) -> str:
        for name in ("PREFIX_OF_TEST", "PYTHONPATH"):
            monkeypatch.setenv(name, variables.get(name, ""))
        agent = AgentClient(tmp_path)
        try:
            return Builder(agent)._environment(Catalog([tmp_path]).middleware["keyed"]).key
        finally:
            agent.close()

    return of


def test_a_variable_changes_the_key_only_with_the_variable_that_it_belongs_to(key):
    assert key(PYTHONPATH="/a") == key(PYTHONPATH="/b") == key()
    with_a = key(PREFIX_OF_TEST="/p", PYTHONPATH="/a")
    assert len({with_a, key(PREFIX_OF_TEST="/p", PYTHONPATH="/b"), key()}) == 3
