"""Test that versions reported by programs are compared as numbers."""

import os

import pytest

from wattwire.rig.versions import TooOldError, require_versions


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Return a function that puts a program with the text `script` first on PATH."""

    def put(script):
        path = tmp_path / "tool"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return path

    return put


@pytest.mark.parametrize(
    "said, minimum",
    [
        ("go version go1.26.8 linux/amd64", "1.25"),
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "9"),
        ("v20.20.2", "20"),
        ("javac 21", "17"),
        ("ruby 3.10.0p20", "3.9"),
        ("tool 1.25", "1.25.0"),
    ],
)
def test_what_is_new_enough_is_taken(tool, said, minimum, monkeypatch):
    tool(f"echo '{said}'")
    require_versions(["tool"], {"tool": {"minimum": minimum, "ask": ["tool", said]}}, "m/c")


def test_what_is_too_old_is_told_with_its_place_and_what_is_needed(tool):
    path = tool('[ "$1" = version ] && echo "tool version tool1.19.8 linux"')
    versions = {"tool": {"minimum": "1.25", "ask": ["tool", "version"]}, "other": {"minimum": "9"}}
    with pytest.raises(TooOldError) as told:
        require_versions(["sh", "tool"], versions, "m/c")
    assert str(told.value) == (
        f"m/c: needs tool 1.25 or newer; found 1.19.8 ({path}); "
        "install a newer one, put its folder first on PATH, and try again"
    )


@pytest.mark.parametrize(
    "script, told",
    [("echo no numbers; exit 0", "no numbers"), ("echo 9.9; exit 3", "exit code 3, 9.9")],
)
def test_what_tells_no_version_is_not_believed_to_be_new(tool, script, told):
    tool(script)
    with pytest.raises(TooOldError, match=f"needs tool 1 or newer.*{told}"):
        require_versions(["tool"], {"tool": {"minimum": "1"}}, "m/c")
