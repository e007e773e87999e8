"""Test that a bare client is a file in the folder of its node."""

from __future__ import annotations

from pathlib import Path

from wattwire.rig.bare_clients import bare_argv


def test_a_bare_client_is_the_file_bare_in_the_folder_of_the_node(tmp_path: Path) -> None:
    node = tmp_path / "node.py"
    node.touch()
    argv = ["/usr/bin/python3", str(node)]
    assert bare_argv(argv) is None
    (tmp_path / "bare.py").touch()
    assert bare_argv(argv) == ["/usr/bin/python3", str(tmp_path / "bare.py")]
