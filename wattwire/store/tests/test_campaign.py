"""Test that attempts are committed completely or not at all, and the lock of a campaign."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys

import polars as pl
import pytest

from wattwire.model.errors import MissingError, UsageError
from wattwire.store import Campaign


@pytest.fixture
def campaign(tmp_path):
    made = Campaign.create(tmp_path / "c")
    made.journal.write_plan([("b01-p001", 1, 1, "t1"), ("b01-p002", 1, 2, "t2")])
    yield made
    made.close()


def finish(campaign, run, verdict="valid", **row):
    number = campaign.journal.begin(run, "token", "now")
    partial = campaign.open_attempt(run, number)
    summary = {"run": run, "attempt": number, "verdict": verdict, "outcome": "completed", **row}
    (partial / "summary.json").write_text(json.dumps(summary))
    name = campaign.commit(run, number, partial)
    campaign.journal.finish(run, number, verdict, "completed", name, "later")
    return name


def test_a_run_in_flight_leaves_no_row_and_its_folder_is_dropped(campaign):
    campaign.journal.begin("b01-p001", "token", "now")
    campaign.open_attempt("b01-p001", 1)
    assert campaign.rows() == []
    assert campaign.drop_partials() == [".b01-p001-1.partial"]
    assert list((campaign.path / "runs").iterdir()) == []


def test_a_folder_renamed_by_a_dead_controller_is_replaced(campaign):
    number = campaign.journal.begin("b01-p001", "token", "now")
    campaign.commit("b01-p001", number, campaign.open_attempt("b01-p001", number))
    again = campaign.open_attempt("b01-p001", number)
    (again / "new").write_text("x")
    campaign.commit("b01-p001", number, again)
    assert (campaign.path / "runs" / "b01-p001-1" / "new").exists()


def test_every_file_and_folder_is_synced_before_the_rename(campaign, monkeypatch):
    number = campaign.journal.begin("b01-p001", "token", "now")
    partial = campaign.open_attempt("b01-p001", number)
    (partial / "out" / "publisher-0").mkdir(parents=True)
    files = ["run.json", "logs/a.err", "out/publisher-0/spec.json"]
    for name in files:
        (partial / name).write_text("x")
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    campaign.commit("b01-p001", number, partial)
    folders = ["", "logs", "out", "out/publisher-0"]
    wanted = [str(partial.joinpath(name)) for name in [*files, *folders]]
    assert sorted(synced[:-1]) == sorted(wanted)
    assert synced[-1] == str(partial.parent)


def test_a_file_that_cannot_be_synced_is_not_committed(campaign, monkeypatch):
    number = campaign.journal.begin("b01-p001", "token", "now")
    partial = campaign.open_attempt("b01-p001", number)
    (partial / "run.json").write_text("x")

    def full(_handle):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        campaign.commit("b01-p001", number, partial)
    assert partial.exists() and campaign.rows() == []


def test_the_first_ok_attempt_counts_and_all_are_kept(campaign):
    finish(campaign, "b01-p001", "invalid", sent=1)
    finish(campaign, "b01-p001", "valid", sent=2)
    finish(campaign, "b01-p002", "failed", sent=3.5)
    rows = campaign.rows()
    assert [(r["run"], r["attempt"], r["used"]) for r in rows] == [
        ("b01-p001", 1, False), ("b01-p001", 2, True), ("b01-p002", 1, False),
    ]  # fmt: skip
    assert campaign.summary()["sent"].to_list() == [1.0, 2.0, 3.5]
    assert campaign.folder("b01-p001").name == "b01-p001-2"


def test_the_summary_is_written_for_anybody(campaign):
    finish(campaign, "b01-p001", sent=10)
    campaign.write_summary(campaign.rows(), {"sent": {"unit": "messages"}})
    assert pl.read_parquet(campaign.path / "summary.parquet", glob=False)["sent"].to_list() == [10]
    assert (campaign.path / "summary.csv").read_text().startswith("run,attempt,")
    assert campaign.read_json("columns.json") == {"sent": {"unit": "messages"}}


def test_a_second_controller_is_refused_and_told_who_holds_it(campaign):
    campaign.lock()
    code = (
        "import sys; from pathlib import Path; from wattwire.store import Campaign\n"
        "Campaign(Path(sys.argv[1])).lock()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(campaign.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert f"another controller (process {os.getpid()})" in result.stderr


def test_an_existing_campaign_is_never_reused(campaign):
    with pytest.raises(UsageError, match="--resume"):
        Campaign.create(campaign.path)


def test_a_directory_without_a_campaign_says_so(tmp_path):
    with pytest.raises(UsageError, match="this directory has no campaign"):
        Campaign(tmp_path)


def test_a_file_that_is_no_journal_is_refused(tmp_path):
    (tmp_path / "journal.sqlite").write_text("this is not a database, it is a text file" * 50)
    with pytest.raises(UsageError, match="not a journal, or damaged"):
        Campaign(tmp_path)


def test_a_path_that_cannot_be_made_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingError, match="choose another with --campaign"):
        Campaign.create(tmp_path / "file" / "c")


def test_a_plan_grows_at_its_end_and_what_belongs_to_it_is_kept_with_it(campaign):
    journal = campaign.journal
    journal.write_plan([("b02-p001", 2, 1, "t1")], again=["t1"])
    assert journal.runs() == ["b01-p001", "b01-p002", "b02-p001"]
    assert journal.get("again") == ["t1"]
    with pytest.raises(sqlite3.IntegrityError):
        journal.write_plan([("b03-p001", 3, 1, "t1"), ("b01-p001", 1, 1, "t1")], again=["t2"])
    assert len(journal.runs()) == 3 and journal.get("again") == ["t1"], "all of it or nothing"


def test_a_damaged_file_is_named_with_what_it_lacks(campaign):
    folder = campaign.path / "runs" / finish(campaign, "b01-p001")
    (folder / "run.json").write_text('{"run": "b01-p001"}')
    (folder / "messages.parquet").write_bytes(b"PAR1")
    campaign.write_json("machine.json", [])
    campaign.write_json("plan.json", [{"run": "b01-p002"}])
    with pytest.raises(UsageError, match=r"run\.json: damaged, not an object with attempt, cells"):
        campaign.run("b01-p001")
    with pytest.raises(UsageError, match=r"messages\.parquet: damaged, not a Parquet file"):
        campaign.messages("b01-p001")
    with pytest.raises(UsageError, match=r"machine\.json: damaged, not an object with hosts"):
        _ = campaign.machine
    with pytest.raises(UsageError, match=r"plan\.json: damaged; run b01-p001 is missing"):
        _ = campaign.plan
    campaign.write_json("plan.json", [{"run": "b01-p001"}])
    assert len(campaign.plan) == 1, "what is only planned may not be in it yet"
    (folder / "summary.json").write_text('{"a": 1}')
    with pytest.raises(UsageError, match=r"summary\.json: damaged, .* attempt, run, verdict"):
        campaign.rows()


def test_a_campaign_that_may_not_be_written_can_be_read(campaign, monkeypatch):
    finish(campaign, "b01-p001")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(MissingError, match="Copy the campaign"):
        Campaign(campaign.path)  # the last entries are still in the write-ahead log
    campaign.close()
    archived = Campaign(campaign.path)
    assert [row["run"] for row in archived.rows()] == ["b01-p001"]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        archived.journal.set("key", 1)
    archived.close()


def test_a_foreign_journal_leads_to_no_other_folder(campaign, tmp_path):
    finish(campaign, "b01-p001")
    (tmp_path / "victim-1").mkdir()
    (tmp_path / "victim-1" / "summary.json").write_text("{}")
    for run, folder in (("b01-p001", "../../victim-1"), ("../../victim", "../../victim-1")):
        with contextlib.closing(sqlite3.connect(campaign.path / "journal.sqlite")) as db, db:
            db.execute("PRAGMA foreign_keys=OFF")
            db.execute("UPDATE attempt SET run = ?, folder = ?", (run, folder))
        with pytest.raises(UsageError, match="allowed: RUN-ATTEMPT"):
            campaign.journal.attempts()


@pytest.mark.parametrize("name", ["runs", "controller.lock", "study.json", "report/tables"])
def test_a_campaign_with_a_link_where_we_write_is_not_written(campaign, tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    place = campaign.path / name
    if place.is_dir():
        place.rmdir()
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(victim)
    with pytest.raises(UsageError, match="a symbolic link"):
        campaign.lock()
    assert victim.read_text() == "precious"


def test_a_journal_that_is_a_link_is_not_opened(campaign, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "journal.sqlite").symlink_to(campaign.path / "journal.sqlite")
    with pytest.raises(UsageError, match="a symbolic link"):
        Campaign(other)


@pytest.mark.parametrize("name", ["../victim.csv", "journal.sqlite", "summary.csv", ".x.csv", ""])
def test_a_study_file_takes_no_name_of_another_file(campaign, tmp_path, name):
    (tmp_path / "victim.csv").write_text("precious")
    source = tmp_path / "numbers.csv"
    source.write_text("x")
    with pytest.raises(UsageError, match="cannot store"):
        campaign.keep(source, name)
    assert (tmp_path / "victim.csv").read_text() == "precious"


def test_a_study_file_that_is_a_link_is_not_copied(campaign, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "published.csv").symlink_to(secret)
    with pytest.raises(UsageError, match="a symbolic link"):
        campaign.keep(tmp_path / "published.csv", "published.csv")
    assert not (campaign.path / "published.csv").exists()


def test_a_study_or_plan_that_was_edited_afterwards_is_named(campaign):
    campaign.freeze("study.json", {"name": "s", "answers": {"margin": 0.05}})
    campaign.freeze("plan.json", [{"run": "b01-p001"}])
    campaign.freeze("plan.json", [{"run": "b01-p001"}, {"run": "b01-p002"}])
    assert campaign.edited == ()
    (campaign.path / "study.json").write_text('{"answers": {"margin": 0.05},   "name": "s"}')
    assert campaign.edited == (), "it says the same"
    (campaign.path / "study.json").write_text('{"name": "s", "answers": {"margin": 0.5}}')
    assert campaign.edited == ("study.json",)
    (campaign.path / "plan.json").write_text('[{"run": "b01-p002"}]')
    assert campaign.edited == ("study.json", "plan.json")
