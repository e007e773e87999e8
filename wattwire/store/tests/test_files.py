"""Test that the folder of a run is synced, whatever entries nodes created in it."""

from __future__ import annotations

import csv
import os
import socket
from pathlib import Path

import polars as pl
import pytest

from wattwire.store import files


def test_what_has_no_content_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket cannot be opened, a pipe waits for a writer, and a link may be broken."""
    inner = tmp_path / "out"
    inner.mkdir()
    (inner / "log").write_text("said")
    os.mkfifo(inner / "pipe")
    (inner / "link").symlink_to(tmp_path / "nowhere")
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync_file", synced.append)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(inner / "sock"))
        files.sync_tree(tmp_path)
    assert sorted(synced) == [tmp_path, inner, inner / "log"]


def test_a_tree_with_a_socket_is_synced(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("said")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "sock"))
        files.sync_tree(tmp_path)


def test_no_text_in_a_table_is_a_formula(tmp_path: Path) -> None:
    texts = ["=cmd|' /C calc'!A0", "@x", "+a", "-1.5", "plain", None]
    frame = pl.DataFrame({"=level": texts, "n": [-1, 2, 3, 4, 5, 6]})
    files.for_spreadsheets(frame).write_csv(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=level", "n"]
    assert [row[0] for row in rows] == ["'=cmd|' /C calc'!A0", "'@x", "'+a", "-1.5", "plain", ""]
    assert rows[0][1] == "-1"
