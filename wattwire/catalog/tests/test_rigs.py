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
    networks = ["native", "lossless-20ms", "lte", "wifi-home", "wifi-003", "lte-003"]
    assert list(three.networks) == networks
    round_trips = ["round-trip", "round-trip-broker-on-robot"]
    commands = ["remote-control", "remote-control-broker-on-edge"]
    assert list(three.placements) == ["apart", "together", *round_trips, *commands]
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


LINKS = {
    "delay below 0": ("[up]\ndelay_ms = -1\n", "up.delay_ms: found -1; allowed: 0 to 60000 ms"),
    "loss above 1": ("[both]\nloss = 1.5\n", "loss: found 1.5; allowed: a probability, 0 to 1"),
    "queue below a frame": (
        "[both]\nrate_mbit_s = 1\nqueue_bytes = 1000\n", "found 1000; allowed: 1514 or more",
    ),
    "trace whose times fall": (
        '[both]\ntrace = "t.txt"\nqueue_bytes = 3000\n', "t.txt:2: found 3; allowed: 5 or more",
    ),
    "half-duplex in the kernel": (
        '[both]\nrate_mbit_s = 1\nqueue_bytes = 3000\n', "allowed for this link: 'emulator'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LINKS)
def test_an_invalid_link_of_a_rig_is_refused_before_a_plan(tmp_path: Path, case: str) -> None:
    table, message = LINKS[case]
    is_kernel = "kernel" in case
    medium = 'medium = "half-duplex"\n' if is_kernel else ""
    folder = tmp_path / "links" / "bad"
    folder.mkdir(parents=True)
    (folder / "link.toml").write_text(f'title = "T"\nsummary = "S"\n{medium}{table}')
    (folder / "t.txt").write_text("5\n3\n")
    rig = tmp_path / "r.toml"
    engine = 'engine = "kernel"\n' if is_kernel else ""
    hosts = '[hosts]\na = {kind = "netns"}\nb = {kind = "netns"}\n'
    rig.write_text(f'{hosts}[networks.n]\nlink = "bad"\n{engine}')
    with pytest.raises(UsageError) as error:
        load_rig(rig, Catalog([tmp_path]))
    place = f"{rig}: networks.n.engine" if is_kernel else str(folder / "link.toml")
    assert place in str(error.value) or f"{folder}/t.txt" in str(error.value)
    assert message in str(error.value)
