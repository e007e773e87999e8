"""Test that cells understand each other: two languages of each middleware, and two hosts."""

from __future__ import annotations

import pytest

from tests.end_to_end.checks import MIDDLEWARE, check, representatives, section, skip_if_absent
from wattwire.catalog.home import home
from wattwire.hosts.namespaces import user_namespace
from wattwire.model.errors import MissingError


@pytest.mark.slow
@pytest.mark.parametrize("middleware", MIDDLEWARE)
def test_two_languages_of_each_middleware_understand_each_other(cli, middleware):
    names = [cell.name for cell in representatives(middleware)]
    if len(names) < 2:
        pytest.skip(f"{middleware} has one cell that is quickly built: {', '.join(names)}")
    result = check(cli, *names, "--clause", "pair")
    first = section(result.out + result.err, names[0])
    second = section(result.out + result.err, names[1])
    for said in (first, second):
        skip_if_absent(said[0])
    # Each pair is listed with its first cell, in both directions.
    assert first[-1].startswith("  2 passed, 0 failed"), "\n".join(first)
    assert result.code == 0, result.out[-4000:] + result.err


@pytest.fixture(scope="module")
def clocks_rig():
    """Return the rig file of two namespaces whose clocks differ by 1,000 s."""
    try:
        user_namespace()
    except MissingError as error:
        pytest.skip(str(error))
    return str(home() / "rigs" / "clocks.toml")


@pytest.mark.slow
def test_a_cell_keeps_the_contract_between_hosts_with_different_clocks(cli, clocks_rig):
    result = check(
        cli, "udp/python", "loopback/python", "--pairs", "none", "--rig", clocks_rig,
        "--clause", "own-address", "--clause", "warm-up",
    )  # fmt: skip
    out = result.out + result.err
    assert "0 failed" in section(out, "udp/python")[-1] and result.code == 0, out
    assert " passed" in section(out, "udp/python")[-1]
    assert "loopback works only within one host" in out


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("middleware", MIDDLEWARE)
def test_two_languages_understand_each_other_between_hosts(cli, clocks_rig, middleware):
    names = [cell.name for cell in representatives(middleware)]
    if len(names) < 2:
        pytest.skip(f"{middleware} has one cell that is quickly built: {', '.join(names)}")
    result = check(cli, *names, "--clause", "pair", "--rig", clocks_rig)
    first = section(result.out + result.err, names[0])
    if "works only within one host" in first[0]:
        pytest.skip(first[0])
    skip_if_absent(first[0])
    assert first[-1].startswith("  2 passed, 0 failed"), "\n".join(first)
    assert result.code == 0, result.out[-4000:] + result.err
