"""Test that an imported campaign is checked, written atomically, and read back unchanged."""

from __future__ import annotations

import dataclasses
import math

import polars as pl
import pytest

from wattwire import imports
from wattwire.imports import Check, Imported, Match, Remark, SetAside
from wattwire.imports.imported import PROVENANCE
from wattwire.imports.writing import ReaderError
from wattwire.model.errors import UsageError
from wattwire.model.study import Plan
from wattwire.store import Campaign, ImportedCampaign, open_campaign

ABOUT = {"study": "tiny", "recipe": "right", "source": "data", "wattwire": "0"}


def tiny() -> Imported:
    runs = pl.DataFrame(
        {
            "run": ["a", "b", "c"],
            "attempt": [1, 1, 1],
            "block": [1, 1, 2],
            "position": [1, 2, 1],
            "verdict": ["valid", "valid", "invalid"],
            "outcome": ["completed"] * 3,
            "used": [True, True, False],
            "control": [""] * 3,
            "factor.size": [1, 2, 1],
            "power_w": [1.5, 2.5, None],
        }
    )
    rows = [("a", "power_w", ["x.csv", "y.csv"], 10, 2, "sum"),
            ("b", "power_w", ["x.csv"], 5, 0, "sum")]  # fmt: skip
    return Imported(
        study={"name": "tiny", "factors": {"size": [1, 2]}},
        runs=runs,
        provenance=pl.DataFrame(rows, schema=PROVENANCE, orient="row"),
        set_aside=(SetAside("z.csv", 0, "empty, they say"), SetAside("x.csv", 2, "header")),
        columns={"power_w": {"unit": "W", "kind": "measured", "summary": "power"}},
        reasons={"c": "no file"},
        checks=(
            Check("Table 1", {"column": "a"}, "1.50", 1.5, Match.EXACT, "sum"),
            Check("Table 1", {"column": "b"}, "7", math.nan, Match.DIFFERS, "sum"),
        ),
        remarks=(Remark("Odd", "it is", ({"n": 1},)),),
    )


def written_with(path, **parts) -> ImportedCampaign:
    """Write a tiny campaign with other parts, by default without checks and remarks."""
    empty = {"checks": (), "remarks": (), "set_aside": ()}
    return imports.write(dataclasses.replace(tiny(), **(empty | parts)), path / "c", ABOUT, {})


def written(path, imported: Imported | None = None) -> ImportedCampaign:
    return imports.write(imported or tiny(), path, ABOUT, {})


def test_what_was_written_is_read_back(tmp_path) -> None:
    written(tmp_path / "c")
    campaign = open_campaign(tmp_path / "c")
    assert isinstance(campaign, ImportedCampaign)
    assert campaign.study.name == "tiny" and campaign.study.factors == {"size": (1, 2)}
    assert campaign.study.plan == Plan(), "what the data do not tell"
    assert campaign.machine == {"hosts": {}}
    assert campaign.summary()["power_w"].to_list() == [1.5, 2.5, None]
    assert [entry["treatment"] for entry in campaign.plan] == [{"size": 1}, {"size": 2},
                                                              {"size": 1}]  # fmt: skip
    assert campaign.provenance()["files"].to_list() == [["x.csv", "y.csv"], ["x.csv"]]
    assert campaign.set_aside()[0] == {"path": "z.csv", "rows": "0", "why": "empty, they say"}
    assert [check["match"] for check in campaign.checks()] == ["exact", "differs"]
    assert campaign.checks()[1]["value"] is None, "a number that is none stays none"
    assert campaign.remarks() == [
        {"title": "Odd", "text": "it is", "rows": [{"n": 1}], "at_top": False}
    ]
    assert campaign.columns == {"power_w": {"unit": "W", "kind": "measured", "summary": "power"}}
    assert campaign.messages("a").height == 0


def test_a_run_tells_its_levels_and_why_it_is_not_used(tmp_path) -> None:
    campaign = written(tmp_path / "c")
    assert campaign.run("b")["treatment"] == {"size": 2} and campaign.run("b")["reasons"] == []
    assert campaign.run("c-1")["reasons"] == [{"code": "imported", "detail": "no file"}]
    with pytest.raises(UsageError, match='no run "d"'):
        campaign.run("d")


def test_the_counts_stand_in_the_document(tmp_path) -> None:
    about = written(tmp_path / "c").document
    told = {key: about[key] for key in ("runs", "usable", "values", "files", "weak")}
    assert told == {"runs": 3, "usable": 2, "values": 2, "files": 2, "weak": 0}
    assert about["checks"] == {"exact": 1, "differs": 1}
    assert about["set_aside"] == {"empty, they say": 1, "header": 2}, "files and rows"


def test_a_folder_with_anything_in_it_stays_as_it_is(tmp_path) -> None:
    written(tmp_path / "c")
    with pytest.raises(UsageError, match="already in use by an imported campaign"):
        written(tmp_path / "c")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "note").write_text("mine")
    with pytest.raises(UsageError, match="already in use; use"):
        written(tmp_path / "d")
    assert (tmp_path / "d" / "note").read_text() == "mine"
    (tmp_path / "e").mkdir()
    assert written(tmp_path / "e").path.is_dir()


def test_a_failed_import_leaves_nothing(tmp_path, monkeypatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", broken)
    with pytest.raises(Exception, match="cannot be written .No space"):
        written(tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def changed(**columns: object) -> Imported:
    imported = tiny()
    runs = imported.runs.with_columns(**{k: pl.Series(v) for k, v in columns.items()})
    return dataclasses.replace(imported, runs=runs)


@pytest.mark.parametrize(
    ("imported", "words"),
    [
        (dataclasses.replace(tiny(), runs=tiny().runs.drop("block")), "lack the column block"),
        (dataclasses.replace(tiny(), runs=tiny().runs.head(0)), "returned no run"),
        (changed(run=["a", "a", "c"]), "run a occurs more than once"),
        (changed(verdict=["valid", "fine", "valid"]), "verdict: found {'fine'}"),
        (changed(power_w=[1.5, 2.5, 3.5]), "power_w of run c has no provenance"),
        (
            dataclasses.replace(tiny(), provenance=tiny().provenance.drop("how")),
            "provenance lacks how",
        ),
        (
            dataclasses.replace(
                tiny(), provenance=tiny().provenance.with_columns(run=pl.lit("zz"))
            ),
            "its provenance names run zz, which is not one of its runs",
        ),
    ],
)
def test_what_does_not_fit_together_is_the_reader_s_fault(tmp_path, imported, words) -> None:
    with pytest.raises(ReaderError, match=words):
        written(tmp_path / "c", imported)
    assert not (tmp_path / "c").exists()


def test_a_later_format_is_refused(tmp_path) -> None:
    written(tmp_path / "c")
    document = tmp_path / "c" / "import.json"
    document.write_text(document.read_text().replace('"format_version": 1', '"format_version": 9'))
    with pytest.raises(UsageError, match="format_version: found 9; allowed: 1"):
        open_campaign(tmp_path / "c")


def test_a_folder_that_is_no_campaign_is_told_from_one(tmp_path) -> None:
    Campaign.create(tmp_path / "own").close()
    campaign = open_campaign(tmp_path / "own")
    assert isinstance(campaign, Campaign)
    campaign.close()
    with pytest.raises(UsageError, match="this directory has no campaign"):
        open_campaign(tmp_path)
