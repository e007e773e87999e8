"""Tests of reading rig files."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire.catalog import Catalog, home
from wattwire.catalog.rigs import load_rig
from wattwire.model.errors import UsageError


def test_the_rigs_of_this_repository_are_valid() -> None:
    catalog = Catalog([home()])
    rigs = {path.stem: load_rig(path, catalog) for path in (home() / "rigs").glob("*.toml")}
    three = rigs["three"]
    assert list(three.networks) == ["native", "lossless-20ms", "lte"]
    assert list(three.placements) == ["apart", "together"]
    assert three.networks["lte"].near == ("robot",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "r.toml: hosts: found none"),
        ("[hosts", "r.toml: not valid TOML"),
        ('[hosts]\na = {kind = "netns"}\n[placements.p]\nbrokr = "a"', "unknown role or service"),
    ],
)
def test_an_invalid_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "r.toml"
    path.write_text(content)
    with pytest.raises(UsageError) as error:
        load_rig(path)
    assert message in str(error.value)


def test_an_absent_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none.toml: this file does not exist"):
        load_rig(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="cannot be read"):
        load_rig(tmp_path)


def test_a_configuration_of_ssh_is_found_beside_the_rig(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text('ssh_config = "keys/config"\n[hosts]\npi = {kind = "ssh", to = "pi"}\n')
    with pytest.raises(
        UsageError, match=r"r.toml: ssh_config: found 'keys/config', .*No such file"
    ):
        load_rig(path)
    config = tmp_path / "keys" / "config"
    config.parent.mkdir()
    config.write_text("Host pi\n")
    rig = load_rig(path)
    assert rig.ssh_config == rig.document["ssh_config"] == str(config)
