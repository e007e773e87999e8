"""Archive a campaign for publication: data, checksums and a guide, with names redacted."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import os
import re
import sqlite3
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from wattwire.model.errors import UsageError
from wattwire.store import command_lines, frozen
from wattwire.store.files import ROW_GROUP_ROWS, regular, scan_table
from wattwire.store.imported import DOCUMENT as IMPORT_DOCUMENT
from wattwire.store.imported import open_campaign
from wattwire.store.journal import connected_to_read
from wattwire.store.redact import NOTE, SECRET_NAME, Redactor

LEFT_OUT_FOLDERS = frozenset({"report", "agent"})
"""Omitted. The report can be rebuilt from the data; the agent's folder has its state and log."""
LEFT_OUT_NAMES = frozenset({"controller.lock", "journal.sqlite-wal", "journal.sqlite-shm", NOTE})
TEXT_BYTES_MAX = 64 * 2**20
"""Maximum size of a log in an archive, because logs are rewritten in memory."""
COPIED_BYTES = 2**20
PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
MESSAGES = "messages.parquet"
CITATION = "CITATION.cff"
COMMANDS, GUIDE_NAME, SUMS = "commands.txt", "README.md", "SHA256SUMS"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Fixed date of every file, which makes archives of equal data byte-identical."""

GUIDE = """\
# A bundle of measurements

wattwire {version} wrote this archive from {kind}. It does not contain host names, user names,
home folders or hardware addresses. `sha256sum -c SHA256SUMS` verifies the files.
{warnings}
{files}
## A table in six lines of Python

```python
{code}
```

`columns.json` describes the meaning and unit of each column, and states whether its values are
measurements, estimates or bounds. Replicates of a treatment are runs; messages within a run are not
replicates.
{again}"""
CAMPAIGN_FILES = """\
| file | content |
|---|---|
| `summary.parquet`, `summary.csv` | a row per attempt; answers use only rows with `used` |
| `processes.parquet`, `processes.csv` | of `exec`: a row per process and attempt |
| `columns.json` | unit, kind and meaning of each column |
| `study.toml`, `study.json` | the study as written, and as wattwire parsed it |
| `plan.json` | every planned run, and every skipped treatment with its reason |
| `machine.json` | facts about the machine, its meters, versions |
| `journal.sqlite` | started and finished runs, in order |
| `runs/<id>/run.json` | commands, nodes, window, outcome, verdict with its reasons |
| `runs/<id>/messages.parquet` | a row per message and receiver{messages} |
| `runs/<id>/layers.parquet` | of runs that record layers: a row per message and subscription |
| `runs/<id>/quantities.parquet` | every reading of every meter (t_ns: monotonic clock) |
| `runs/<id>/clocks.parquet` | of hosts with other clocks: the times of exchanges (ns) |
| `runs/<id>/logs/`, `out/` | output of the processes, and their specs |
| `commands.txt` | every distinct command line of the runs, with their number |
| `methods.tex`, `threats.md` | method for a paper, and threats to validity |
| `CITATION.cff` | the authors to cite, if they were given |
"""
IMPORTED_FILES = """\
| file | content |
|---|---|
| `summary.parquet`, `summary.csv` | a row per run; answers use only rows with `used` |
| `columns.json` | unit, kind and meaning of each column |
| `import.json` | source, recipe and extent of the data |
| `provenance.parquet` | for each value, its source files and rows |
| `set_aside.csv` | excluded files and rows, with the reason |
| `checks.json` | printed numbers, with the corresponding numbers from the data |
| `remarks.json` | remarks on the data |
| `study.json`, `plan.json` | the study, and every run |
| `machine.json` | known facts about the machine |
| `methods.tex`, `threats.md` | analysis for a paper, and threats to validity |
| `CITATION.cff` | the authors to cite, if they were given |
"""
CAMPAIGN_CODE = """\
import pandas as pd
runs = pd.read_parquet("summary.parquet")
runs = runs[runs["used"]]
groups = {groups}
table = runs.groupby(groups, dropna=False)["{response}"].agg(["count", "median", "min", "max"])
print(table)"""
RESPONSES = (
    "latency_p50_us",
    "cpu_us_per_message",
    "rate_hz_achieved",
    "sent",
    "cpu_s",
    "window_s",
)


@dataclass
class Bundled:
    """Content of an archive."""

    path: Path
    files: int = 0
    bytes: int = 0
    redacted: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    """Files that were omitted, each with the reason."""
    commands: Counter[str] = field(default_factory=Counter)
    """Number of runs by command line in the archive."""


class LeaveOut(Exception):
    """Error for a file that is omitted from the archive. Its text is the reason."""


def bundle(
    folder: Path,
    target: Path,
    redactor: Redactor,
    version: str,
    with_messages: bool = True,
    texts: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
) -> Bundled:
    """Write all files of a campaign to a ZIP archive, with names redacted.

    `texts` maps names of additional files to their texts. Names are also redacted in these texts,
    except in CITATION.cff, which must name its authors. `warnings` come first in the guide.

    Raise UsageError if `folder` is not a campaign, or if `target` exists.
    """
    if target.exists():
        raise UsageError(f"{target}: this file already exists; choose another name with -o FILE")
    open_campaign(folder).close()  # raises an error that names a missing file
    bundled = Bundled(target)
    guide = _guide(folder, version, with_messages, warnings)
    partial = target.with_name(f".{target.name}.partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            _fill(archive, folder, redactor, bundled, with_messages, guide, texts or {})
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    bundled.redacted = dict(redactor.replacements)
    bundled.bytes = target.stat().st_size
    return bundled


def _fill(
    archive: zipfile.ZipFile,
    folder: Path,
    redactor: Redactor,
    bundled: Bundled,
    with_messages: bool,
    guide: str,
    texts: Mapping[str, str],
) -> None:
    top = redactor.text(folder.resolve().name)
    sums: list[str] = []

    names: set[str] = set()

    def add(name: str, data: bytes | BinaryIO) -> None:
        if name in names:
            raise LeaveOut("after redaction, its name would equal the name of another file")
        names.add(name)
        info = zipfile.ZipInfo(f"{top}/{name}", EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        digest = hashlib.sha256()
        source = io.BytesIO(data) if isinstance(data, bytes) else data
        with source, archive.open(info, "w", force_zip64=True) as target:
            while chunk := source.read(COPIED_BYTES):
                digest.update(chunk)
                target.write(chunk)
        sums.append(f"{digest.hexdigest()}  {name}")
        bundled.files += 1

    for path in _files(folder, with_messages):
        shown_path = str(path.relative_to(folder)).encode("ascii", "backslashreplace").decode()
        try:
            if path.is_symlink():
                raise LeaveOut("a symbolic link")
            redactor.place = path.name
            name = _archive_name(path.relative_to(folder), redactor)
            if name in (COMMANDS, GUIDE_NAME, SUMS, *texts):
                raise LeaveOut("the archive has a file with this name")
            add(name, _without_names(path, redactor, bundled.commands))
        except LeaveOut as reason:
            bundled.left_out.append(f"{redactor.text(shown_path)}: {reason}")
    if not (folder / "summary.parquet").exists():
        add("summary.parquet", _parquet(_summary(folder), redactor))
    for name, text in texts.items():
        redactor.place = name
        add(name, (text if name == CITATION else redactor.text(text)).encode())
    if bundled.commands:
        lines = (f"{count}× {line}\n" for line, count in sorted(bundled.commands.items()))
        add(COMMANDS, "".join(lines).encode())
    add(GUIDE_NAME, redactor.text(guide).encode())
    add(SUMS, ("\n".join(sums) + "\n").encode())


def _files(folder: Path, with_messages: bool) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in parts)
        if hidden or parts[0] in LEFT_OUT_FOLDERS or path.name in LEFT_OUT_NAMES:
            continue
        if not path.is_symlink() and not path.is_file():
            continue
        if with_messages or path.name != MESSAGES:
            yield path


def _archive_name(path: Path, redactor: Redactor) -> str:
    """Return a file's name in the archive. Raise LeaveOut if the name is not portable."""
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise LeaveOut("its name is not UTF-8") from None
    if not text.isprintable() or "\\" in text:
        raise LeaveOut("its name contains control characters or a backslash")
    return redactor.text(text)


def _without_names(path: Path, redactor: Redactor, commands: Counter[str]) -> bytes | BinaryIO:
    """Return the content of a file without names. Raise LeaveOut if they cannot be removed.

    The command lines of a run are counted in `commands`.
    """
    if path.suffix == ".parquet":
        return _table(path, redactor)
    if path.suffix == ".sqlite":
        return _database(path, redactor)
    with path.open("rb") as file:
        data = file.read(TEXT_BYTES_MAX + 1)
    if len(data) > TEXT_BYTES_MAX:
        size = path.stat().st_size
        raise LeaveOut(f"{size:,} bytes; at most {TEXT_BYTES_MAX:,} are searched for names")
    if PRIVATE_KEY.search(data):
        raise LeaveOut("a private key")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        if redactor.is_in(data):
            raise LeaveOut("a name in it cannot be replaced") from None
        return data
    if path.suffix == ".json":
        with contextlib.suppress(ValueError, RecursionError):
            document = _document(path, json.loads(text), redactor)
            if path.name == command_lines.DOCUMENT:
                commands.update(command_lines.command_lines(document))
            return json.dumps(document, indent=1).encode()
    return redactor.text(text).encode()


def _document(path: Path, document: Any, redactor: Redactor) -> Any:
    if path.name == IMPORT_DOCUMENT and isinstance(document, dict) and "source" in document:
        # The path of the folder has no use on another machine and may contain personal names.
        document["source"] = Path(str(document["source"])).name
    return _json(document, redactor)


def _table(path: Path, redactor: Redactor) -> bytes | BinaryIO:
    """Return a Parquet file without names. Numeric columns are read only if a text has a name."""
    try:
        table = scan_table(path)
        replacements = _replacements(table, redactor)
        if not replacements:
            return path.open("rb")
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch) / path.name
            _replaced(table, replacements).sink_parquet(copy, row_group_size=ROW_GROUP_ROWS)
            return copy.open("rb")  # deleted with its folder when it is closed
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first_line = str(error).partition("\n")[0]
        raise LeaveOut(f"damaged, not a Parquet file ({redactor.text(first_line)})") from error


def _replacements(table: pl.LazyFrame, redactor: Redactor) -> dict[str, dict[str, str]]:
    """Return column → text → replacement, for all texts that contain a name.

    The columns are read one after the other and streamed, because the texts of a long run do not
    fit in memory.
    """
    replacements = {}
    for name, kind in table.collect_schema().items():
        if kind in (pl.String, pl.List(pl.String)):
            column = pl.col(name) if kind == pl.String else pl.col(name).explode()
            texts = table.select(column).unique().collect(engine="streaming")[name].drop_nulls()
            clean = {text: redactor.text(text) for text in texts.to_list()}
            replacements[name] = {old: new for old, new in clean.items() if old != new}
    return {name: differing for name, differing in replacements.items() if differing}


def _replaced(table: pl.LazyFrame, replacements: Mapping[str, Mapping[str, str]]) -> pl.LazyFrame:
    schema = table.collect_schema()
    return table.with_columns(
        pl.col(name).replace(texts)
        if schema[name] == pl.String
        else pl.col(name).list.eval(pl.element().replace(texts))
        for name, texts in replacements.items()
    )


def _json(value: Any, redactor: Redactor) -> Any:
    """Return JSON without names in its keys and values, including escaped names."""
    if isinstance(value, dict):
        _suspect(value.items(), redactor)
        return {redactor.text(key): _json(item, redactor) for key, item in value.items()}
    if isinstance(value, list):
        _suspect(itertools.pairwise(value), redactor)
        return [_json(item, redactor) for item in value]
    return redactor.text(value) if isinstance(value, str) else value


def _suspect(pairs: Iterable[tuple[Any, Any]], redactor: Redactor) -> None:
    """Report the texts that follow the name of a secret: in an environment, or in a command."""
    for name, text in pairs:
        if isinstance(name, str) and isinstance(text, str) and SECRET_NAME.fullmatch(name):
            redactor.suspect(name, redactor.text(text))


def _parquet(frame: pl.DataFrame, redactor: Redactor) -> bytes:
    table, buffer = frame.lazy(), io.BytesIO()
    _replaced(table, _replacements(table, redactor)).collect().write_parquet(buffer)
    return buffer.getvalue()


def _database(path: Path, redactor: Redactor) -> BinaryIO:
    """Return a copy of the journal without names. Its log is merged and old pages are dropped."""
    try:
        return _rewritten(path, redactor)
    except sqlite3.DatabaseError as error:
        raise LeaveOut(f"damaged, not a database ({error})") from error


def _rewritten(path: Path, redactor: Redactor) -> BinaryIO:
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / path.name
        with (
            contextlib.closing(connected_to_read(path)) as source,
            contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as target,
        ):
            source.backup(target)
            target.create_function("redacted", 1, lambda v: redactor.text(v) if v else v)
            tables = target.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (table,) in tables.fetchall():
                columns = target.execute(f'PRAGMA table_info("{table}")').fetchall()
                for name in (column[1] for column in columns if column[2].upper() == "TEXT"):
                    target.execute(f'UPDATE "{table}" SET "{name}" = redacted("{name}")')
            _add_digests(path.parent, target, redactor)
            target.execute("PRAGMA journal_mode=DELETE")
            target.execute("VACUUM")
        return copy.open("rb")  # deleted with its folder when it is closed


def _add_digests(folder: Path, journal: sqlite3.Connection, redactor: Redactor) -> None:
    """Add the digests of the redacted, unedited documents to the copied journal."""
    stored = journal.execute("SELECT value FROM meta WHERE key = ?", (frozen.KEY,)).fetchone()
    digests = json.loads(stored[0]) if stored else None
    for name in frozen.DOCUMENTS:
        with contextlib.suppress(OSError, ValueError):
            document = json.loads(regular(folder / name).read_text("utf-8"))
            if not frozen.is_edited(digests, name, document):
                digests = frozen.written(digests, name, _json(document, redactor))
    row = (frozen.KEY, json.dumps(digests))
    journal.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)


def _summary(folder: Path) -> pl.DataFrame:
    campaign = open_campaign(folder)
    try:
        return campaign.summary()
    finally:
        campaign.close()


def _guide(folder: Path, version: str, with_messages: bool, warnings: Sequence[str]) -> str:
    columns = _summary(folder).columns
    groups = [name for name in columns if name.startswith("factor.")] or ["cell"]
    response = next((name for name in RESPONSES if name in columns), "block")
    code = CAMPAIGN_CODE.format(groups=json.dumps(groups), response=response)
    imported = (folder / IMPORT_DOCUMENT).exists()
    kind = "an imported campaign" if imported else "a campaign"
    files = CAMPAIGN_FILES.format(messages="" if with_messages else " (omitted here)")
    files = IMPORTED_FILES if imported else files
    again = "`wattwire report DIR` on the unpacked folder writes the report again.\n"
    warning_text = "".join(f"\n**{warning}**\n" for warning in warnings)
    return GUIDE.format(
        version=version, kind=kind, files=files, code=code, again=again, warnings=warning_text
    )
