"""Write the folder of an imported campaign from a reader's data, and read it."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wattwire.model import LazyModule
from wattwire.model.errors import MissingError, UsageError
from wattwire.model.paths import spreadsheet_safe
from wattwire.model.stored_study import StoredStudy, stored_study
from wattwire.store.campaign import Campaign
from wattwire.store.files import (
    for_spreadsheets,
    read_json,
    read_table,
    refuse_special,
    sync_file,
    sync_tree,
)
from wattwire.store.messages import Messages

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LazyModule("polars")

FORMAT_VERSION = 1
DOCUMENT = "import.json"
SET_ASIDE = ("path", "rows", "why")


class ImportedCampaign:
    """An imported campaign with one row per run, without messages and without a journal.

    `import.json` describes its origin. `provenance.parquet` has the source files and rows of each
    value. `set_aside.csv` has the excluded files and rows. `checks.json` compares printed numbers
    with the data. `remarks.json` has remarks on the data.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        refuse_special(self.path)
        if not (self.path / DOCUMENT).exists():
            raise UsageError(
                f"{self.path}: this directory has no imported campaign (no {DOCUMENT})"
            )
        version = self.document.get("format_version")
        if version != FORMAT_VERSION:
            raise UsageError(
                f"{self.path / DOCUMENT}: format_version: found {version!r}; allowed: "
                f"{FORMAT_VERSION}. Import the data again with this wattwire."
            )

    def close(self) -> None:
        """Do nothing, because no file is open. `Campaign` has the same method."""

    @cached_property
    def document(self) -> dict[str, Any]:
        """Return the study, recipe, source and counts from `import.json`."""
        return read_json(self.path / DOCUMENT)

    @cached_property
    def study_document(self) -> dict[str, Any]:
        """Return the study as the reader of the data wrote it."""
        return read_json(self.path / "study.json")

    @cached_property
    def study(self) -> StoredStudy:
        return stored_study(self.study_document, str(self.path / "study.json"))

    @cached_property
    def plan(self) -> list[dict[str, Any]]:
        return read_json(self.path / "plan.json")

    @cached_property
    def machine(self) -> dict[str, Any]:
        return read_json(self.path / "machine.json")

    @cached_property
    def columns(self) -> dict[str, dict[str, str]]:
        """Return the unit, kind and summary of each described column of the summary."""
        return read_json(self.path / "columns.json")

    def read_json(self, name: str) -> Any:
        """Return a JSON document of the campaign. Raise UsageError if it is damaged or missing."""
        return read_json(self.path / name)

    def summary(self) -> pl.DataFrame:
        """Return one row per run."""
        return self._table("summary.parquet")

    def provenance(self) -> pl.DataFrame:
        """Return one row per run and response: files, rows_used, rows_left_out, how."""
        return self._table("provenance.parquet")

    def set_aside(self) -> list[dict[str, str]]:
        """Return the excluded files and rows with the reasons; `rows` is 0 for a whole file."""
        with (self.path / "set_aside.csv").open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def checks(self) -> list[dict[str, Any]]:
        """Return the printed numbers and the corresponding numbers from the data."""
        return self._checks

    def remarks(self) -> list[dict[str, Any]]:
        """Return remarks on the data: title, text, rows."""
        return read_json(self.path / "remarks.json")

    def run(self, run_id: str) -> dict[str, Any]:
        """Return the facts of RUN or RUN-ATTEMPT. Raise UsageError if the run does not exist."""
        facts = self._runs.get(run_id) or self._runs.get(run_id.rpartition("-")[0])
        if facts is None:
            raise UsageError(f'{self.path}: no run "{run_id}"; see summary.csv')
        return facts

    def documents(self, run_ids: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Yield the facts of many runs; see `run`."""
        return map(self.run, run_ids)

    def messages(self, run_id: str) -> pl.DataFrame:
        """Return an empty frame, because imported data have no individual messages."""
        return pl.DataFrame()

    def recorded(self, run_id: str) -> Messages:
        """Return empty `Messages`, because imported data have no individual messages."""
        return Messages.of(self.messages(run_id))

    def records_path(self, run_id: str) -> Path:
        """Return a path without a file, because imported data have no individual messages."""
        return self.path / "messages.parquet"

    @cached_property
    def _checks(self) -> list[dict[str, Any]]:
        return read_json(self.path / "checks.json")

    @cached_property
    def _runs(self) -> dict[str, dict[str, Any]]:
        planned = {entry["run"]: entry for entry in self.plan}
        reasons: Mapping[str, str] = self.document.get("reasons", {})
        kept_columns = ("run", "attempt", "block", "position", "verdict", "outcome", "control")
        facts_by_run: dict[str, dict[str, Any]] = {}
        for row in self.summary().select(kept_columns).iter_rows(named=True):
            run = row["run"]
            reason = reasons.get(run)
            entries = [{"code": "imported", "detail": reason}] if reason else []
            levels = planned[run]["treatment"]
            facts_by_run[run] = {**row, "treatment": levels, "levels": levels, "reasons": entries}
        return facts_by_run

    def _table(self, name: str) -> pl.DataFrame:
        return read_table(self.path / name)


def write_imported(
    path: Path,
    documents: Mapping[str, Any],
    summary: pl.DataFrame,
    provenance: pl.DataFrame,
    set_aside: Sequence[Sequence[Any]],
) -> ImportedCampaign:
    """Write the folder of an imported campaign atomically.

    `documents` maps import, study, plan, machine, columns, checks and remarks to the content of
    NAME.json, a table or the entries of a list. The rows of `set_aside` are (path, rows, why).
    Raise UsageError if `path` is not empty.
    """
    path = Path(path)
    refuse_used(path)
    partial = path.with_name(f".{path.name}.partial")
    import_document = documents["import"]
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, value in documents.items():
            content = (
                {"format_version": FORMAT_VERSION, **import_document} if name == "import" else value
            )
            with (partial / f"{name}.json").open("w", encoding="utf-8") as file:
                file.writelines(_lines(content))
        summary.write_parquet(partial / "summary.parquet")
        for_spreadsheets(summary).write_csv(partial / "summary.csv")
        provenance.write_parquet(partial / "provenance.parquet")
        text = io.StringIO()
        csv.writer(text).writerows(
            [SET_ASIDE, *([*map(spreadsheet_safe, row)] for row in set_aside)]
        )
        (partial / "set_aside.csv").write_text(text.getvalue(), "utf-8", newline="")
        sync_tree(partial)
        os.rename(partial, path)
        sync_file(path.parent)
    except OSError as error:
        raise MissingError(
            f"{path}: cannot be written ({error.strerror or error}); choose another with "
            "--campaign DIR"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return ImportedCampaign(path)


def _lines(document: Any) -> Iterator[str]:
    """Yield JSON with one line per entry of the document, which may be an iterator.

    Indenting the whole document takes ten times as long, because json's compiled encoder does not
    indent.
    """
    is_object = isinstance(document, Mapping)
    entries = (
        (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in document.items())
        if is_object
        else map(json.dumps, document)
    )
    begin = "{\n" if is_object else "[\n"
    for entry in entries:
        yield begin + entry
        begin = ",\n"
    yield ("" if begin == ",\n" else begin) + ("\n}\n" if is_object else "\n]\n")


def refuse_used(path: Path) -> None:
    """Raise UsageError if `path` is a file or a folder that is not empty."""
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists() or path.is_symlink():
        user = " by an imported campaign" if (path / DOCUMENT).exists() else ""
        raise UsageError(
            f"{path}: already in use{user}; use --campaign with an empty or new directory"
        )


def open_campaign(path: Path) -> Campaign | ImportedCampaign:
    """Open the folder of a measured or an imported campaign.

    Raise UsageError if it is not a campaign.
    """
    path = Path(path)
    if (path / DOCUMENT).exists():
        return ImportedCampaign(path)
    return Campaign(path)
