"""Test where private keys are on hosts over ssh, and that none remains after kills.

The module kills executes more kills than these tests, with `--secured`.
"""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.random_kills import Family, ended, kill_many
from tests.end_to_end.rigs.kills import (
    FAR,
    MESSAGES,
    SECURED_STUDY,
    RigSetting,
    files_with_keys,
    kill_once,
    length_s,
    setting_of,
)
from wattwire.hosts import namespaces
from wattwire.model.errors import MissingError
from wattwire.rig.emulator import find_emulator
from wattwire.store import Campaign

pytestmark = pytest.mark.slow

PROVED = SECURED_STUDY.replace("proof_runs = 0", "proof_runs = 1").replace("[8, 64]", "[64]")
KEYS = {
    "robot": {"publisher", *(f"uninvited-{kind}-publisher" for kind in ("anonymous", "stranger"))},
    "edge": {"broker", "subscriber",
             *(f"uninvited-{kind}-subscriber" for kind in ("anonymous", "stranger"))},
}  # fmt: skip
"""Host → its processes that have a private key, without the numbers of nodes."""
QUICK = ("controller", f"{FAR}agent")
FURTHER = ("mosquitto", f"{FAR}node")


def ready(kind: str, folder: Path, running: contextlib.ExitStack, study: str) -> RigSetting:
    """Return the setting in which processes of a kind are killed. Skip the test without it."""
    try:
        find_emulator()
        namespaces.user_namespace()
        namespaces.require_tap_devices()
        return running.enter_context(setting_of(kind, folder, study))
    except MissingError as error:
        pytest.skip(str(error))


def test_a_private_key_is_found_wherever_it_is_left(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "certificate.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    for name in ("deep/er/.key", "log"):
        (tmp_path / name).write_text("…\n-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n")
    keys = files_with_keys([tmp_path, tmp_path / "removed"])
    assert {path.relative_to(tmp_path).as_posix() for path in keys} == {"deep/er/.key", "log"}


def test_each_host_has_the_keys_of_its_own_processes_alone_and_its_runs_are_proved(
    tmp_path: Path,
) -> None:
    seen: defaultdict[str, set[str]] = defaultdict(set)
    with contextlib.ExitStack() as running:
        setting = ready("ssh", tmp_path, running, PROVED)
        assert setting.machines is not None
        setting.prepare(tmp_path)
        (tmp_path / "study.toml").write_text(setting.study)

        def observe(_: list[int]) -> None:
            for path in files_with_keys([setting.attempts]):
                name, process, _ = path.relative_to(setting.attempts).parts
                host = name.removesuffix("-private").rpartition("-")[2]
                seen[host].add(process.removesuffix("-0"))

        words = ("run", str(tmp_path / "study.toml"), "--campaign", str(tmp_path / "c"))
        process = setting.start(tmp_path, *words)
        assert ended(process, Family(), observe)
        assert process.returncode == 0, (tmp_path / "log").read_text()
        assert setting.machines.left() == []
    assert seen == KEYS
    stored = Campaign(tmp_path / "c")
    rows = stored.rows()
    stored.close()
    assert [row["verdict"] for row in rows] == ["valid", "valid"], rows
    (proof,) = (row for row in rows if row["control"] == "proof")
    assert (proof["uninvited_received"], proof["uninvited_delivered"]) == (0, 0)
    assert proof["received_unique"] == MESSAGES
    document = json.loads((tmp_path / "c" / f"runs/{proof['run']}-1/run.json").read_text())
    assert "no link emulator" in document["proof"]["fill_absent"]
    assert all(node["tried"] for node in document["proof"]["uninvited"])


@pytest.mark.parametrize(
    "kind", [*QUICK, *(pytest.param(kind, marks=pytest.mark.matrix) for kind in FURTHER)]
)
def test_no_private_key_remains_after_a_kill_at_a_random_time(kind: str, tmp_path: Path) -> None:
    with contextlib.ExitStack() as running:
        setting = ready(kind, tmp_path, running, SECURED_STUDY)
        (tmp_path / "first").mkdir()
        campaign_s = length_s(setting, tmp_path / "first")
        kill = partial(kill_once, kind, setting, campaign_s=campaign_s)
        for kill_seen in kill_many(kind, 1, kill, tmp_path, 35):
            assert kill_seen.problems == [], (kill_seen.phase, kill_seen.after_s)
