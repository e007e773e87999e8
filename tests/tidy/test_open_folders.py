"""Test that a new middleware or study needs only a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT
from wattwire.cli.main import main
from wattwire.model.errors import MissingError
from wattwire.rig.agent import find_agent
from wattwire.store import Campaign

NEW = "freshly_invented"
STUDY = f"""
title = "Something nobody has heard of"
[[question]]
id = "Q1"
text = "Does the language matter?"
factors = ["payload_bytes"]
responses = ["latency_p50_us"]
[factors]
payload_bytes = [16, 256]
[fixed]
middleware = "{NEW}"
language = "python"
pattern = "pingpong"
rate_hz = 50
[plan]
blocks = 1
controls = false
duration_s = 0.3
baseline_s = 0.05
quiet_ms = 20
linger_ms = 200
quiet_wait_s = 0
[validity]
other_load_max = 1.1
steal_max = 1.1
missed_ticks_max = 1.1
stall_max_ms = 60000.0
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a separate root with a new middleware (a renamed loopback) and a new study."""
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))
    root = tmp_path / "elsewhere"
    shutil.copytree(ROOT / "middleware/loopback", root / "middleware" / NEW)
    study = root / "studies" / f"{NEW}_study" / "study.toml"
    study.parent.mkdir(parents=True)
    study.write_text(STUDY, encoding="utf-8")
    monkeypatch.setenv("WATTWIRE_PATH", str(root))
    monkeypatch.chdir(tmp_path)
    return root


def test_a_new_folder_is_listed_planned_run_and_reported(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list"]) == 0
    listed = capsys.readouterr().out
    assert f"{NEW}/python" in listed and f"{NEW}_study" in listed
    assert main(["plan", f"{NEW}_study"]) == 0
    assert "2 treatments" in capsys.readouterr().out
    assert main(["run", f"{NEW}_study", "--campaign", "c", "--plain", "--no-report"]) == 0
    campaign = Campaign(Path("c"))
    summary = campaign.summary()
    campaign.close()
    assert summary["cell"].to_list() == [f"{NEW}/python"] * 2
    assert summary["verdict"].to_list() == ["valid", "valid"]
    assert summary["outcome"].to_list() == ["completed", "completed"]
    assert summary["sent"].to_list() == [15, 15] and summary["lost"].to_list() == [0, 0]
    capsys.readouterr()
    assert main(["report", "c"]) == 0
    page = Path(capsys.readouterr().out.strip().splitlines()[-1])
    assert NEW in page.read_text(encoding="utf-8")
    assert elsewhere not in page.parents
