"""Tests of stored results: what is read is what was written, and pages need no campaign."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from wattwire.analysis import result_codec
from wattwire.analysis.document import Document, page_document
from wattwire.analysis.result_codec import UnreadableResult, decoded, encoded, plain
from wattwire.analysis.stored_tables import StoredTable
from wattwire.analysis.topics import topics
from wattwire.analysis.topics.limits.numbers import Limits
from wattwire.cli.main import main
from wattwire.model.errors import UsageError
from wattwire.report import stored_document
from wattwire.report.page import print_page
from wattwire.report.page_parts import PageData
from wattwire.report.print.render import Undrawn
from wattwire.report.stored_document import read_document, result_type, write_document
from wattwire.report.tests.stored_values import differences, made_up
from wattwire.report.tests.synthetic import SLOW, Shape, saturate, write_campaign
from wattwire.stats import Interval, Never, NotComputable, TooFew
from wattwire.store import Campaign, open_campaign

LIMITS = {"limit": [{"response": "latency_p99_us", "max": 500.0}]}
SHAPES = {
    "usual": Shape(),
    "energy and controls": Shape(blocks=4, measured_energy=True, b_over_a=1.2, study=LIMITS),
    "lost, failed and skipped": Shape(
        loss_share=0.3, unknown_runs=(1, 2), died_runs=(4,), skip={"pattern": "action"}
    ),
    "one block": Shape(blocks=1, patterns=("topic",), clients=(1,), intervals_s=(0.05,)),
    "saturated": Shape(patterns=("topic",), study=LIMITS),
}


@pytest.fixture(scope="module")
def documents(tmp_path_factory) -> dict[str, Document]:
    """The document of each shape."""
    found = {}
    for name, shape in SHAPES.items():
        folder = write_campaign(tmp_path_factory.mktemp("campaign") / "c", shape)
        if name == "saturated":
            saturate(folder, 3, SLOW)
        found[name] = page_document(Campaign(folder))
    found["imported"] = page_document(imported(tmp_path_factory.mktemp("imported")))
    return found


def imported(folder: Path) -> Any:
    """Return a campaign of a table: two languages, in eight blocks."""
    lines = [
        f"{language},{block},{power_w + block % 3 / 10},{block % 2}"
        for language, power_w in (("a", 5), ("b", 6))
        for block in range(8)
    ]
    (folder / "t.csv").write_text("\n".join(["language,block,power_w,machine", *lines]))
    columns = ["--response=power_w:W", "--factor=language", "--factor=machine", "--block=block"]
    options = [*columns, "--campaign", str(folder / "c"), "--no-report"]
    assert main(["import", "csv", str(folder / "t.csv"), *options]) == 0
    return open_campaign(folder / "c")


def through_json(value: Any, kind: Any) -> Any:
    """Return a value after it was written as JSON with its series, and read again."""
    tables: dict[str, StoredTable] = {}

    def stored(inner: Any) -> Any:
        if not isinstance(inner, StoredTable):
            return plain(inner)
        tables[f"table {len(tables)}"] = inner
        return {"_series": f"table {len(tables) - 1}"}

    def table(found: dict[str, Any]) -> Any:
        name = str(found.get("_series"))
        return tables.get(name, found)

    text = json.dumps(encoded(value, kind), default=stored, allow_nan=False)
    return decoded(json.loads(text, object_hook=table), kind)


@pytest.mark.parametrize("topic", sorted(topics()))
def test_a_result_is_what_was_stored_of_it(documents, topic, monkeypatch):
    kind = result_type(topic)
    for long in (result_codec.LONG, 2):
        monkeypatch.setattr(result_codec, "LONG", long)
        for shape, document in documents.items():
            result = document.results[topic]
            assert list(differences(result, through_json(result, kind), f"{shape}: {topic}")) == []


@pytest.mark.parametrize("topic", sorted(topics()))
def test_each_value_that_a_result_s_type_allows_is_stored(topic, monkeypatch):
    """A type with Evidence, a frame or a function fails here, because none can be made up."""
    monkeypatch.setattr(result_codec, "LONG", 3)
    kind = result_type(topic)
    for seed in range(30):
        result = made_up(kind, random.Random(seed))
        assert list(differences(result, through_json(result, kind), f"{seed}: {topic}")) == []


@dataclass(frozen=True)
class Inner:
    """A member of a union below."""

    value: float


@dataclass(frozen=True)
class Outer:
    """All kinds of fields."""

    estimate: Interval | TooFew | NotComputable | float | None
    reason: NotComputable
    by_pair: Mapping[tuple[str, int], Inner]
    levels: tuple[Any, ...]
    array: npt.NDArray[np.float64]
    points: tuple[dict[str, Any], ...] = ()
    optional: Inner | None = None


def test_values_of_all_kinds_are_stored(monkeypatch):
    for long in (result_codec.LONG, 3):
        monkeypatch.setattr(result_codec, "LONG", long)
        for seed in range(500):
            value = made_up(Outer, random.Random(seed))
            assert list(differences(value, through_json(value, Outer), str(seed))) == []


def test_a_reason_keeps_its_class_and_an_integer_its_type():
    value = Outer(3, Never("no call failed"), {("a", 1): Inner(2)}, (1, 1.0, True), np.array([1.0]))
    found = through_json(value, Outer)
    assert type(found.reason) is Never and type(found.estimate) is int
    assert [type(level) for level in found.levels] == [int, float, bool]


class Open(Protocol):
    """What classes of several folders implement."""

    @property
    def verdict(self) -> str: ...


@dataclass(frozen=True)
class Holder:
    """A result with a field of a protocol."""

    member: Open


def test_a_field_of_a_protocol_holds_a_class_of_a_topic():
    value = Holder(Limits(confidence=0.9))
    assert through_json(value, Holder) == value
    with pytest.raises(TypeError, match="allowed for Open: a class below"):
        through_json(Holder(Inner(1.0)), Holder)


@pytest.mark.parametrize("path", ["os.path", "wattwire.analysis.topics.limits.none.None", ""])
def test_a_stored_class_outside_the_topics_is_not_imported(path):
    with pytest.raises(UnreadableResult, match=f"found '{path}', expected Open"):
        decoded({"member": {"_type": path}}, Holder)


@pytest.mark.parametrize("value", [pl.DataFrame({"a": [1]}), len, object()])
def test_what_is_no_plain_value_is_refused(value):
    with pytest.raises(TypeError, match="plain values only"):
        through_json(Outer(1.0, Never(""), {}, (value,), np.zeros(1)), Outer)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({}, "value"),
        ({"value": 1.0, "other": 2}, "other"),
        ({"value": "1.0"}, "found '1.0', expected float @ .value"),
        ([], "list"),
    ],
)
def test_a_value_of_another_type_is_named(values, problem):
    with pytest.raises(UnreadableResult, match=problem):
        decoded(values, Inner)


def test_a_document_is_read_as_it_was_written(documents, tmp_path):
    for shape, document in documents.items():
        write_document(document, tmp_path / shape)
        found = read_document(tmp_path / shape / "analysis.json")
        assert found.values == document.values and found.header == document.header
        assert found.results.keys() == document.results.keys()
        write_document(found, tmp_path / f"{shape} again")
        assert files_of(tmp_path / shape) == files_of(tmp_path / f"{shape} again")
    assert list(tmp_path.glob("*/series/*.parquet")), "no result has a long series"


def test_a_new_process_reads_a_document(documents, tmp_path):
    """The classes of results that only detectors import are found, too."""
    for shape, document in documents.items():
        write_document(document, tmp_path / shape)
    program = """import pathlib, sys
from wattwire.report.stored_document import read_document
for path in pathlib.Path(sys.argv[1]).glob("*/analysis.json"):
    read_document(path)"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_topics_print_the_same_page_without_the_campaign(tmp_path):
    campaign = write_campaign(tmp_path / "c", SHAPES["energy and controls"])
    data = PageData(page_document(Campaign(campaign)))
    assert len(list(data.sections())) > 8
    write_document(data.document, tmp_path / "stored")
    print_page(data, tmp_path / "of campaign", Undrawn(tmp_path))
    campaign.rename(tmp_path / "moved")
    again = PageData(read_document(tmp_path / "stored" / "analysis.json"))
    print_page(again, tmp_path / "of document", Undrawn(tmp_path))
    assert files_of(tmp_path / "of campaign") == files_of(tmp_path / "of document")
    assert len(files_of(tmp_path / "of document")) > 5


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_command_prints_a_stored_report_as_it_prints_the_campaign(tmp_path, capsys):
    campaign = write_campaign(tmp_path / "c", SHAPES["energy and controls"])
    code = main(["report", str(campaign), "--figures"])
    of_campaign = capsys.readouterr().out
    (campaign / "report").rename(tmp_path / "stored")
    campaign.rename(tmp_path / "moved")
    out = tmp_path / "out"
    stored = str(tmp_path / "stored" / "analysis.json")
    assert main(["report", "--from", stored, str(out), "--figures"]) == code
    of_document = capsys.readouterr().out
    assert of_document.replace(str(out), str(campaign / "report")) == of_campaign
    before, after = files_of(tmp_path / "stored"), files_of(out)
    assert before.keys() == after.keys()
    # The PDF writer numbers the objects of one SVG file in another order each time.
    compared = [name for name in before if not name.endswith(".pdf")]
    assert [name for name in compared if before[name] != after[name]] == []
    suffixes = {Path(name).suffix for name in after}
    assert suffixes >= {".html", ".csv", ".tex", ".svg", ".pdf", ".txt", ".json"}


@pytest.fixture
def stored(tmp_path, documents) -> Path:
    """A stored document with a table; the value is the path of its analysis.json."""
    write_document(documents["usual"], tmp_path / "stored")
    return tmp_path / "stored" / "analysis.json"


def refused(capsys, stored: Path, out: Path) -> str:
    """Return the message with which the command refuses a stored document."""
    assert main(["report", "--from", str(stored), str(out)]) == 2
    return capsys.readouterr().err


def test_files_that_are_missing_empty_or_cut_are_named(stored, tmp_path, capsys):
    out = tmp_path / "out"
    series = next((stored.parent / "series").iterdir())
    results = stored.parent / "results.json"
    for path in (series, results, stored):
        content = path.read_bytes()
        for part in (b"", content[: len(content) // 2]):
            path.write_bytes(part)
            assert str(path) in refused(capsys, stored, out)
        path.unlink()
        message = refused(capsys, stored, out)
        assert str(path) in message and "does not exist" in message
        path.write_bytes(content)
    assert not out.exists()
    assert main(["report", "--from", str(stored), str(out)]) == 0


def test_a_folder_that_exists_is_not_replaced(stored, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    assert f"{tmp_path / 'out'}: found an existing" in refused(capsys, stored, tmp_path / "out")


@pytest.mark.parametrize("version", [1, 3, "2", None])
def test_another_version_is_refused(stored, tmp_path, capsys, version):
    stored.write_text(json.dumps({**json.loads(stored.read_text()), "version": version}))
    message = refused(capsys, stored, tmp_path / "out")
    assert f"{stored}: version: found {version!r}, allowed: 2" in message


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda topics: topics.pop("limits"), "no result of limits"),
        (lambda topics: topics.update(tides={}), "unknown topic tides"),
        (lambda topics: topics["limits"].pop("confidence"), ""),
        (lambda topics: topics["limits"].update(moon=1), "limits: .*moon"),
        (lambda topics: topics["limits"].update(confidence="0.9"), "limits: .*expected float"),
    ],
)
def test_results_of_another_version_are_refused_by_topic(
    stored, tmp_path, capsys, monkeypatch, change, problem
):
    path = stored.parent / "results.json"
    found = json.loads(path.read_text())
    change(found["topics"])
    path.write_text(json.dumps({**found, "wattwire": "9.9"}))
    digest = stored_document._digest(path)
    values = json.loads(stored.read_text())
    values["results"]["results.json"] = digest
    stored.write_text(json.dumps(values))
    if not problem:  # a field with a default may be missing
        assert main(["report", "--from", str(stored), str(tmp_path / "out")]) == 0
        return
    with pytest.raises(UsageError, match=f"{problem}.* wattwire 9.9 wrote this file"):
        read_document(stored)


@pytest.mark.parametrize("name", ["../other.parquet", "/etc/passwd"])
def test_a_document_refers_to_no_file_elsewhere(stored, tmp_path, capsys, name):
    values = json.loads(stored.read_text())
    values["results"][name] = "0"
    stored.write_text(json.dumps(values))
    assert "results: found" in refused(capsys, stored, tmp_path / "out")


def test_validity_limits_need_the_campaign(stored, tmp_path, capsys):
    options = ["--from", str(stored), str(tmp_path / "out"), "--validity", "steal_max=0.1"]
    assert main(["report", *options]) == 2
    assert "--validity: not allowed with --from" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["list", "meters"], ["plan", "first-look"], ["--help"]])
def test_commands_without_a_page_do_not_import_the_library(command):
    program = f"""import contextlib, sys
from wattwire.cli.main import main
with contextlib.suppress(SystemExit):
    main({command!r})
sys.exit("cattrs" in sys.modules)"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
