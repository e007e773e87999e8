"""Test what a campaign does on a host whose agent was killed, as soon as it has an agent again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wattwire.run import campaign
from wattwire.run.campaign import CampaignRunner


def test_the_next_agent_removes_the_keys_and_the_files_of_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[Path] = []
    far = SimpleNamespace(
        forget_private=lambda token: removed.append(Path(f"/far/{token}-private")),
        folder_of=lambda _, token: Path(f"/far/{token}"),
        forget=removed.append,
    )
    monkeypatch.setattr(campaign, "Hosts", lambda *_: SimpleNamespace(by_name={"far": far}))
    runner: Any = CampaignRunner.__new__(CampaignRunner)
    runner.campaign, runner._rig = (
        SimpleNamespace(path=tmp_path),
        SimpleNamespace(is_from_file=True),
    )
    runner._hosts, runner._cleaned_tokens = None, ["ww1"]
    assert runner._connect_hosts() == {"far": far}
    assert removed == [Path("/far/ww1-private"), Path("/far/ww1")]
    assert runner._cleaned_tokens == []
