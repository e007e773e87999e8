"""Write files atomically and durably."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from wattwire.model import LazyModule
from wattwire.model.errors import UsageError
from wattwire.model.paths import spreadsheet_safe

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LazyModule("polars")

RESTORE = (
    "Restore it from a copy; the other files are intact. For a file in runs/ without a copy, "
    "delete the folder of its run: --resume measures that run again."
)

ROW_GROUP_ROWS = 1 << 17
"""Number of rows in memory while a long table is read in parts."""

_SYNCED = (stat.S_IFREG, stat.S_IFDIR)

# The threads are reused because starting them takes as long as syncing a few files.
_SYNCS = ThreadPoolExecutor(8, thread_name_prefix="wattwire-sync")


def refuse_link(path: Path) -> None:
    """Raise UsageError if `path` is a symbolic link, which would redirect the write."""
    if path.is_symlink():
        raise UsageError(
            f"{path}: this is a symbolic link; wattwire writes only inside the campaign's folder. "
            "Replace the link with the file or folder that it points to."
        )


def refuse_special(folder: Path) -> None:
    """Raise UsageError if an entry of a campaign's folder is neither a file nor a folder."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(folder.iterdir()):
            with contextlib.suppress(FileNotFoundError):  # a link without a target
                regular(path)


def refuse_links(folder: Path) -> None:
    """Raise UsageError if a campaign has a symbolic link at a path that wattwire writes to.

    Folders of finished runs are not searched, because they are only read and nodes may create links
    there.
    """
    for path in folder.glob("*"):
        refuse_link(path)
    for pattern in ("report/**/*", "agent/**/*", "runs/*"):
        for path in folder.glob(pattern):
            refuse_link(path)


def sync_file(path: Path) -> None:
    """Wait until a file's content, or a folder's entries, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Wait until a folder, all its subfolders and all files in them are on the disk.

    The files are synced in parallel, because a journalling file system then writes its journal once
    for all waiting threads instead of once per file. Sockets, pipes and similar entries are
    skipped, because they have no content and cannot always be opened.
    """
    paths = [Path(root, name) for root, _, names in os.walk(folder) for name in ("", *names)]
    syncable = [path for path in paths if stat.S_IFMT(path.lstat().st_mode) in _SYNCED]
    for _ in _SYNCS.map(sync_file, syncable):
        pass


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to. It replaces `path` if the block ends without an error."""
    temporary = path.with_name(f".{path.name}.partial")
    yield temporary
    sync_file(temporary)
    os.replace(temporary, path)
    sync_file(path.parent)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a small file atomically."""
    with atomic(path) as temporary:
        temporary.write_bytes(data)


def for_spreadsheets(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the table for a CSV file, without texts that spreadsheets interpret as formulas."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    safe = [pl.Series(name, [spreadsheet_safe(v) for v in frame[name]], pl.String)
            for name in texts]  # fmt: skip
    return frame.with_columns(safe).rename({name: spreadsheet_safe(name) for name in frame.columns})


def discard(path: Path) -> None:
    """Remove the file, link or pipe at `path`, or the folder with its content."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_new(path: Path, text: str) -> None:
    """Write a new file that replaces any existing entry, without following links.

    Use this in folders into which other programs may have written.
    """
    discard(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o666), "w", encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
        except OSError as error:
            error.filename = str(path)
            raise


def write_by(write: Callable[[io.BytesIO], object], path: Path) -> None:
    """Write a file with the table library. Raise OSError if the disk is full or fails.

    The library's errors do not always distinguish a full disk from other errors, but the errors of
    a Python file do.
    """
    buffer = io.BytesIO()
    write(buffer)
    try:
        path.write_bytes(buffer.getbuffer())
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a Parquet file that replaces any existing entry, without following links."""
    discard(path)
    write_by(frame.write_parquet, path)


class _Disk(io.RawIOBase):
    """A file that stores the error of a failed write.

    The library's errors do not always distinguish a full disk from other errors, but the errors of
    a Python file do.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, path.open("xb")
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            error.filename = error.filename or str(self._path)
            self.error = error
            raise

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        self._file.close()
        super().close()


def write_batches(batches: Iterable[pl.DataFrame], schema: pl.Schema, path: Path) -> None:
    """Write a Parquet file from frames that together may not fit in memory; see `write_table`.

    Raise OSError if the disk is full or fails, and any error of the batches.
    """
    from polars.io.plugins import register_io_source  # noqa: PLC0415 - slow to import

    discard(path)

    def source(*_: Any) -> Iterator[pl.DataFrame]:
        return iter(batches)

    with contextlib.closing(_Disk(path)) as disk:
        try:
            frame = register_io_source(source, schema=schema)
            frame.sink_parquet(cast(BinaryIO, disk), row_group_size=ROW_GROUP_ROWS)
        except pl.exceptions.PolarsError:
            if disk.error is not None:
                raise disk.error from None
            raise
        disk.flush()


def regular(path: Path) -> Path:
    """Return the path of a campaign's file, which reading cannot block on.

    A campaign can come from a stranger, and opening a pipe waits for its writer. Raise UsageError
    for an entry that is neither a file nor a folder, and FileNotFoundError if it is missing.
    """
    if stat.S_IFMT(path.stat().st_mode) not in _SYNCED:
        raise UsageError(
            f"{path}: this is a pipe, a socket or a device; a campaign has only files and folders. "
            "Delete it, and restore the file from a copy."
        )
    return path


def read_text(path: Path) -> str:
    """Return the text of a JSON document. Raise UsageError if it is missing or no UTF-8."""
    try:
        return regular(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{path}: this file of the campaign is missing. {RESTORE}") from None
    except ValueError as error:
        raise UsageError(f"{path}: damaged, not valid JSON ({error}). {RESTORE}") from error


def read_json(path: Path, keys: Collection[str] = ()) -> Any:
    """Return a JSON document of a campaign. With `keys`, it must be an object with these keys.

    Raise UsageError if the document is damaged or missing.
    """
    text = read_text(path)
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{path}: damaged, not valid JSON ({error}). {RESTORE}") from error
    lacking = sorted(set(keys) - set(document if isinstance(document, dict) else ()))
    if lacking:
        raise UsageError(f"{path}: damaged, not an object with {', '.join(lacking)}. {RESTORE}")
    return document


def read_table(path: Path) -> pl.DataFrame:
    """Return a Parquet file of a campaign. Raise UsageError if it is damaged or missing."""
    with readable_table(path):
        return pl.read_parquet(regular(path), glob=False)


def scan_table(path: Path) -> pl.LazyFrame:
    """Return a Parquet file of a campaign as a lazy frame. Use it inside `readable_table`.

    Without `glob=False`, the name of the campaign's folder is a pattern.
    """
    return pl.scan_parquet(regular(path), glob=False)


@contextlib.contextmanager
def readable_table(path: Path) -> Iterator[None]:
    """Convert the table library's errors for a damaged or missing file to UsageError."""
    try:
        yield
    except FileNotFoundError:
        raise UsageError(f"{path}: this file of the campaign is missing. {RESTORE}") from None
    except pl.exceptions.PolarsError as error:
        raise UsageError(f"{path}: damaged, not a Parquet file ({error}). {RESTORE}") from error
