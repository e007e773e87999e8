"""Tests of reading the output of a node. Only regular files are read, without blocking."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from wattwire.model.records import SampleFileError, read_node_samples, read_regular


def test_a_file_within_its_bound_is_read(tmp_path: Path) -> None:
    path = tmp_path / "samples.bin"
    path.write_bytes(b"12345678")
    assert read_regular(path, 8) == b"12345678"
    with pytest.raises(SampleFileError, match="8 bytes; allowed: at most 7"):
        read_regular(path, 7)


@pytest.mark.parametrize(
    "make, told",
    [
        (os.mkfifo, "not a regular file"),
        (Path.mkdir, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "cannot be opened"),
        (lambda path: path.symlink_to(path), "cannot be opened"),
        (lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), 200 << 30), "at most"),
        (lambda path: None, "cannot be opened"),
    ],
)
def test_anything_else_is_refused_at_once(
    make: Callable[[Path], object], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "samples.bin"
    make(path)
    with pytest.raises(SampleFileError, match=told):
        read_node_samples(path, capacity=100)
