"""Fixtures of the tests of hosts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wattwire.hosts import Hosts, namespaces
from wattwire.hosts.tests.two_namespaces import DOCUMENT
from wattwire.model.errors import MissingError
from wattwire.model.rig import read_rig
from wattwire.rig.agent import find_agent


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    try:
        find_agent()
        namespaces.user_namespace()
    except MissingError as error:
        pytest.skip(str(error))
    with Hosts(read_rig(DOCUMENT, "rig.toml"), tmp_path / "state") as started:
        yield started
