"""Test that a bundle contains all data of the report and no names of people or machines."""

from __future__ import annotations

import getpass
import hashlib
import json
import re
import socket
import sqlite3
import zipfile
from pathlib import Path

import polars as pl
import pytest

MAC = "02:42:ac:11:00:02"
USER = "mara-planted"
HOST = "planted-host-7"


@pytest.fixture
def campaign(cli, mini, tmp_path):
    home = tmp_path / "people" / USER
    home.mkdir(parents=True)
    folder = home / "camp"
    result = cli("run", mini, "--campaign", folder, "--no-report", "--plain")
    assert result.code in {0, 1}, result.err
    logs = next(folder.glob("runs/*/run.json")).with_name("logs")
    logs.mkdir(exist_ok=True)
    said = f"{USER}@{HOST} has {MAC}, sees {home}/x and {socket.gethostname()}\n"
    (logs / "planted.err").write_text(said)
    machine = json.loads((folder / "machine.json").read_text())
    facts = machine["hosts"]["local"]["facts"]
    facts.append({"key": "planted", "value": HOST, "unit": "", "check": "report"})
    (folder / "machine.json").write_text(json.dumps(machine))
    with sqlite3.connect(folder / "journal.sqlite") as journal:
        journal.execute("INSERT INTO meta VALUES ('planted', ?)", (json.dumps(f"{home}/{MAC}"),))
    parquet = next(folder.glob("runs/*/quantities.parquet"))
    pl.read_parquet(parquet, glob=False).with_columns(pl.lit(HOST).alias("host")).write_parquet(
        parquet
    )
    return folder


@pytest.fixture
def bundled(cli, campaign, tmp_path):
    def run(*options: str) -> tuple[str, Path]:
        target = tmp_path / f"given{len(list(tmp_path.glob('given*')))}.zip"
        result = cli("bundle", campaign, "-o", target, "--redact", HOST, *options,
                     USER=USER, HOME=str(campaign.parent))  # fmt: skip
        assert result.code == 0, result.err
        place = tmp_path / target.stem
        with zipfile.ZipFile(target) as archive:
            archive.extractall(place)
        return result.out, next(place.iterdir())

    return run


def everything(folder: Path) -> dict[str, str]:
    """Return all texts in a folder: files, their names, Parquet columns and journal rows."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_dir():
            continue
        name = str(path.relative_to(folder))
        found[f"name {name}"] = name
        if path.suffix == ".parquet":
            frame = pl.read_parquet(path, glob=False).select(pl.col(pl.String))
            found[name] = "\n".join(str(v) for c in frame for v in c.unique().to_list())
        elif path.suffix == ".sqlite":
            with sqlite3.connect(path) as journal:
                found[name] = "\n".join(journal.iterdump())
            found[f"pages of {name}"] = path.read_bytes().decode("latin-1")
        else:
            found[name] = path.read_bytes().decode("latin-1")
    return found


def test_no_name_is_left_and_the_report_can_be_made_from_it(cli, bundled, campaign):
    said, folder = bundled()
    texts = everything(folder)
    for name in (USER, HOST, MAC, str(campaign.parent), "people/"):
        assert [where for where, text in texts.items() if name in text] == [], name
    user = getpass.getuser()
    for word in {socket.gethostname(), user} - {"root", "localhost"}:
        pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        readable = {w: t for w, t in texts.items() if not w.startswith("pages")}
        assert [w for w, text in readable.items() if pattern.search(text)] == [], word
    assert "address" in said and "home" in said
    assert "CITATION.cff is not written" in said and not (folder / "CITATION.cff").exists()
    assert "runs used wattwire" in (folder / "methods.tex").read_text()
    assert "## External:" in (folder / "threats.md").read_text()
    log = [text for name, text in texts.items() if name.endswith(".err") and "[mac]" in text]
    assert len(log) == 1 and "[user]@[redacted]" in log[0]

    sums = (folder / "SHA256SUMS").read_text().splitlines()
    listed = dict(reversed(line.split("  ", 1)) for line in sums)
    there = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert set(listed) == there - {"SHA256SUMS"}
    for name, digest in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest

    result = cli("report", folder)
    assert result.code == 0, result.err
    page = (folder / "report" / "index.html").read_text()
    assert HOST not in page and USER not in page
    assert "edited after" not in page, "taking names out is no edit of the study"


def test_the_guides_lines_name_columns_that_are_there(bundled):
    said, folder = bundled("--without-messages", "--author", f"Doe, {USER}")
    assert "CITATION.cff is not written" not in said
    assert f'given-names: "{USER}"' in (folder / "CITATION.cff").read_text()
    assert not list(folder.rglob("messages.parquet"))
    guide = (folder / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", guide, re.DOTALL)
    assert code and len(code[1].strip().splitlines()) == 6
    columns = set(pl.read_parquet(folder / "summary.parquet", glob=False).columns)
    groups = json.loads(re.search(r"groups = (\[.*\])", code[1])[1])
    response = re.search(r'\)\["(\w+)"\]\.agg', code[1])[1]
    assert {*groups, response, "used"} <= columns


def test_the_same_campaign_gives_the_same_archive(cli, campaign, tmp_path):
    digests = set()
    for name in ("a.zip", "b.zip"):
        assert cli("bundle", campaign, "-o", tmp_path / name).code == 0
        digests.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert len(digests) == 1
    again = cli("bundle", campaign, "-o", tmp_path / "a.zip")
    assert again.code == 2 and "this file already exists" in again.err
    unnamed = cli("bundle", campaign, "-o", tmp_path / "c.zip", "--author", "Nobody")
    assert unnamed.code == 2 and 'allowed: "Family, Given"' in unnamed.err
    nothing = cli("bundle", tmp_path)
    assert nothing.code == 2 and "this directory has no campaign" in nothing.err


def test_every_text_of_the_bundle_says_that_the_study_was_edited(cli, campaign, bundled):
    study = json.loads((campaign / "study.json").read_text())
    study["answers"] = {**study.get("answers", {}), "margin": 0.07}
    (campaign / "study.json").write_text(json.dumps(study))
    said, folder = bundled("--author", "Lovelace, Ada")
    edited = "Exploratory: study.json was edited after this campaign began."
    assert edited in said
    for name in ("methods.tex", "threats.md", "README.md", "CITATION.cff"):
        assert edited in (folder / name).read_text(), name


def test_a_bundle_says_that_a_page_judged_again_is_not_what_its_data_give(cli, campaign, bundled):
    assert cli("report", campaign, "--validity", "missed_ticks_max=0.9").code in {0, 1}
    said, folder = bundled()
    for text in (said, (folder / "README.md").read_text()):
        assert (
            "After the measurement, the runs were judged again with missed_ticks_max=0.9: " in text
        )
        assert "This bundle and its texts use the verdicts as measured" in text
    assert cli("report", campaign).code in {0, 1}
    said, folder = bundled()
    assert "judged again" not in said + (folder / "README.md").read_text()
