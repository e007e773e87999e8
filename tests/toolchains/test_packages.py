"""Test the list of Debian packages and the tool that reads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import packages  # noqa: E402


def test_the_list_names_what_shows_each_package_and_who_wants_it() -> None:
    listed = packages.listed()
    assert {"g++", "mosquitto"} <= {p.name for p in listed}
    assert {verb for p in listed for verb in p.verbs} == {
        "quick", "demo", "test", "test-full", "test-all", "test-machine", "lint"
    }  # fmt: skip


def test_a_line_with_too_few_columns_is_refused_by_its_number() -> None:
    with pytest.raises(ValueError, match="packages-debian.txt:2"):
        packages.read_packages("# fine\ng++ g++ demo\n")


@pytest.mark.parametrize(
    ("shown_by", "present"),
    [
        ("sh", True),
        ("no-such-program", False),
        ("python:json", True),
        ("python:no_such", False),
        ("/proc/self", True),
        ("/no/such/file", False),
        ("/proc/sel*", True),
        ("/proc/no-such*", False),
    ],
)
def test_a_package_is_present_when_what_it_brings_is(shown_by: str, present: bool) -> None:
    assert packages.Package("x", shown_by, ("test",), "").present() is present


def test_a_verb_goes_on_where_nothing_can_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packages.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(packages.Package, "present", lambda _self: False)
    assert packages.main(["demo"]) == 0
    told = capsys.readouterr().err
    assert "missing: mosquitto" in told and "sudo apt-get install" in told


def test_the_makefile_offers_what_it_documents() -> None:
    shown = subprocess.run(
        ["make", "-s", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True
    ).stdout
    verbs = [line.split()[1] for line in shown.splitlines()]
    assert {"setup", "check", "quick", "test", "test-full", "lint", "demo", "clean"} <= set(verbs)
    for verb in verbs:
        subprocess.run(["make", "-n", "-C", str(ROOT), verb], capture_output=True, check=True)
