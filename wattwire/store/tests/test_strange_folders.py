"""Test that a campaign's own files are read, whatever its folder's name or the files' kind is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from wattwire.model.errors import UsageError
from wattwire.report.tests.synthetic import Shape, write_campaign
from wattwire.store import Messages, open_campaign
from wattwire.store.bundle import bundle
from wattwire.store.files import read_table
from wattwire.store.redact import Names, Redactor

HANG_S = 120
"""A verb that waits for the writer of a pipe never ends; the others need seconds."""


@pytest.mark.parametrize("name", ["exp[1]", "exp?", "exp*", "exp{1}", "a=b", "exp**"])
def test_the_name_of_a_folder_is_not_a_pattern(tmp_path: Path, name: str) -> None:
    """`exp[1]` as a pattern matches the neighbour `exp1`."""
    for number, folder in enumerate((name, "exp1", "exp12"), start=1):
        (tmp_path / folder).mkdir()
        table = pl.DataFrame({"node": [number], "text": ["t"]})
        table.write_parquet(tmp_path / folder / "messages.parquet")
    path = tmp_path / name / "messages.parquet"
    assert read_table(path)["node"].to_list() == [1]
    assert Messages.at(path).count == 1


def test_a_campaign_and_its_bundle_have_their_own_data_and_not_a_neighbour_s(
    tmp_path: Path,
) -> None:
    for folder, blocks in (("exp1", 3), ("exp[1]", 2)):
        campaign = open_campaign(write_campaign(tmp_path / folder, Shape(blocks=blocks)))
        campaign.write_summary(campaign.rows(), {})
        campaign.close()
    reopened = open_campaign(tmp_path / "exp[1]")
    assert reopened.summary()["block"].max() == 2
    reopened.close()
    redactor = Redactor(Names(words=("swift",)))
    bundled = bundle(tmp_path / "exp[1]", tmp_path / "b.zip", redactor, "1")
    assert bundled.left_out == [] and bundled.redacted["word"] > 0


@pytest.mark.parametrize(
    ("verb", "name"),
    [("report", "machine.json"), ("report", "study.json"), ("report", "plan.json"),
     ("report", "summary.parquet"), ("report", "import.json"), ("status", "journal.sqlite"),
     ("status", "controller.lock"), ("bundle", "plan.json"), ("bundle", "summary.csv"),
     ("bundle", "redact.json")],
)  # fmt: skip
@pytest.mark.slow
def test_a_pipe_in_a_campaign_is_refused_by_its_name(tmp_path: Path, verb: str, name: str) -> None:
    folder = write_campaign(tmp_path / "c", Shape(blocks=1))
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    command = [sys.executable, "-m", "wattwire", verb, str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert run.returncode == 2 and f"{folder / name}: this is a pipe" in run.stderr


@pytest.mark.parametrize("name", ["../../other/runs/x-1", "..", "", ".x", "/etc", "a/../../x"])
def test_a_plan_names_no_run_outside_the_campaign(tmp_path: Path, name: str) -> None:
    campaign = open_campaign(write_campaign(tmp_path / "c", Shape(blocks=1)))
    for read in (campaign.run, campaign.messages, campaign.recorded):
        with pytest.raises(UsageError, match="no run"):
            read(name)
    campaign.close()


@pytest.mark.parametrize("name", ["run.json", "deployment.json", "summary.json"])
def test_a_pipe_in_a_run_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    folder = write_campaign(tmp_path / "c", Shape(blocks=1))
    path = folder / "runs" / "b01-p001-1" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    code = (
        "import sys; from wattwire.store import open_campaign as o\n"
        "c = o(sys.argv[1])\nc.run('b01-p001'), c.rows()"
    )
    command = [sys.executable, "-c", code, str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert f"{name}: this is a pipe" in run.stderr
