"""Test that all writing libraries report a full disk with the system's error message."""

from __future__ import annotations

import errno
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from wattwire.store.files import discard, write_batches, write_by, write_new, write_table
from wattwire.store.journal import Journal


def test_a_table_that_finds_no_room_raises_what_a_file_would() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    frame = pl.DataFrame({"a": range(1000)})
    for write in (frame.write_parquet, frame.write_csv):
        with pytest.raises(OSError) as raised:
            write_by(write, full)
        assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, "/dev/full")


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("link", "table"):
        (tmp_path / name).symlink_to(victim)
    write_new(tmp_path / "link", "new")
    write_table(pl.DataFrame({"a": [1]}), tmp_path / "table")
    assert victim.read_text() == "precious"
    assert (tmp_path / "link").read_text() == "new"
    assert pl.read_parquet(tmp_path / "table", glob=False)["a"].to_list() == [1]
    (tmp_path / "batches").symlink_to(victim)
    batches = (pl.DataFrame({"a": [n]}) for n in range(3))
    write_batches(batches, pl.Schema({"a": pl.Int64}), tmp_path / "batches")
    assert victim.read_text() == "precious"
    assert pl.read_parquet(tmp_path / "batches", glob=False)["a"].to_list() == [0, 1, 2]


@pytest.fixture
def small_files() -> Iterator[None]:
    """Limit the size of all files to 100 kB within the block."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_batches_that_the_disk_cannot_take_end_in_the_disks_own_error(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 2**60, (50, 10_000))
    batches = (pl.DataFrame({"a": row}) for row in noise)
    with pytest.raises(OSError) as raised:
        write_batches(batches, pl.Schema({"a": pl.Int64}), tmp_path / "t.parquet")
    assert raised.value.errno == errno.EFBIG
    assert raised.value.filename == str(tmp_path / "t.parquet")


def test_batches_end_in_the_error_of_their_source_and_none_of_them_is_an_empty_table(
    tmp_path: Path,
) -> None:
    def broken() -> Iterator[pl.DataFrame]:
        yield pl.DataFrame({"a": [1]})
        raise KeyError("the source")

    schema = pl.Schema({"a": pl.Int64})
    with pytest.raises(KeyError, match="the source"):
        write_batches(broken(), schema, tmp_path / "t.parquet")
    write_batches([], schema, tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet", glob=False).schema == schema


def test_a_folder_is_discarded_with_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    discard(tmp_path / "a")
    discard(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_journal_on_a_full_disk_says_so(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(OSError) as raised:
        journal.write_plan((f"b01-p{i:03}", 1, i, "x" * 100) for i in range(1000))
    assert raised.value.errno == errno.ENOSPC
    assert raised.value.filename == str(tmp_path / "journal.sqlite")
    assert journal.runs() == []
    with pytest.raises(sqlite3.OperationalError):
        journal._db.execute("no sentence of SQL")
    journal.close()
