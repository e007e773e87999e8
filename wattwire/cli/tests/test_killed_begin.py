"""Test that a campaign that was killed while it began is refused with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire.cli.main import EXIT_INTERRUPTED, main
from wattwire.model.errors import EXIT_ENVIRONMENT, EXIT_USAGE
from wattwire.store.journal import Journal

STUDY = """
title = "Killed"
[factors]
payload_bytes = [8]
[fixed]
cell = "loopback/python"
pattern = "topic"
rate_hz = 10
[plan]
blocks = 1
"""


@pytest.mark.parametrize("step", ["add_segment", "write_plan"])
def test_a_campaign_that_ended_before_its_plan_was_written_says_so(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def kill(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "study.toml").write_text(STUDY)
    words = ["run", str(tmp_path / "study.toml"), "--campaign", str(tmp_path / "c"), "--plain"]
    with monkeypatch.context() as patched:
        patched.setattr(Journal, step, kill)
        code = main([*words, "--yes", "--no-report"])
    if code == EXIT_ENVIRONMENT:
        pytest.skip("no toolchain")
    assert code == EXIT_INTERRUPTED
    capsys.readouterr()
    assert main(["run", "--resume", str(tmp_path / "c"), "--plain"]) == EXIT_USAGE
    assert "ended before its plan was written" in " ".join(capsys.readouterr().err.split())
