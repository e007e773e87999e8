"""Test that every verb reports a damaged campaign with a documented exit code.

The tests truncate, zero, flip, delete or duplicate files, edit JSON documents and journals, and
replace files by symbolic links, pipes or folders.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.conftest import MINI
from tests.fuzz.conftest import Cases
from tests.fuzz.mutate import Mutator
from tests.fuzz.verbs import contents, say
from wattwire.model.errors import MissingError
from wattwire.rig import find_agent

VICTIM = "precious"
LINKABLE = ("report", "report/tables", "report/figures", "runs", "agent", "controller.lock",
            "journal.sqlite", "summary.parquet", "study.json", "plan.json", "report/index.html",
            "report/answer.txt", "study.toml", "summary.csv",
            ".summary.parquet.partial")  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a campaign of three runs with its page, to be copied for each damage."""
    try:
        find_agent()
    except MissingError as error:
        if shutil.which("cargo") is None:
            pytest.skip(f"no toolchain: {error}")
        raise
    place = tmp_path_factory.mktemp("sound")
    (place / "mini.toml").write_text(MINI)
    said = say("run", place / "mini.toml", "--campaign", place / "c", "--plain", "--no-report")
    assert said.code in (0, 1, 4), said.err
    return place / "c"


def damage(campaign: Path, victim: Path, seed: int) -> str:
    """Damage the campaign in one way and return a description."""
    mutator = Mutator(seed)
    chosen = (in_bytes, in_bytes, in_json, in_json, gone, in_journal, a_link)[seed % 7]
    return f"{chosen.__name__}: {chosen(campaign, victim, mutator)}"


def _file(campaign: Path, mutator: Mutator, suffix: str = "") -> Path:
    files = sorted(path for path in campaign.rglob(f"*{suffix}") if path.is_file())
    own = [path for path in files if "report" not in path.parts]
    return mutator.random.choice(own)


def in_bytes(campaign: Path, victim: Path, mutator: Mutator) -> str:
    path = _file(campaign, mutator, mutator.random.choice(("", ".parquet", ".sqlite", ".json")))
    data = path.read_bytes()
    act = mutator.random.randrange(5)
    if act == 0:
        data = data[: mutator.random.randint(0, len(data))]
    elif act == 1:
        data = bytes(len(data))
    elif act == 2:
        data = data + data
    elif act == 3:
        at = mutator.random.randint(0, len(data))
        data = data[:at] + bytes(len(data[at : at + 4096])) + data[at + 4096 :]
    else:
        data = mutator.bytes(data)
    path.write_bytes(data)
    return f"{path} {act}"


def in_json(campaign: Path, victim: Path, mutator: Mutator) -> str:
    path = _file(campaign, mutator, ".json")
    document = mutator.value(json.loads(path.read_text()))
    path.write_text(json.dumps(document))
    return str(path)


def gone(campaign: Path, victim: Path, mutator: Mutator) -> str:
    path = _file(campaign, mutator)
    runs = sorted((campaign / "runs").iterdir())
    if mutator.random.random() < 0.3:
        path = mutator.random.choice([*runs, campaign / "runs"])
        shutil.rmtree(path)
        return str(path)
    path.unlink()
    kind = mutator.random.randrange(4)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path.with_name(f"{path.name}.pipe"))
    return f"{path} {kind}"


def in_journal(campaign: Path, victim: Path, mutator: Mutator) -> str:
    words = (*("../../victim", "..", "b01-p001", "b01-p001-1", "", "ok", "done", "lost", "{}"),
             *("null", "[]", "\0", "1", "-1", "x" * 300))  # fmt: skip
    tables = {"attempt": ("run", "attempt", "state", "token", "verdict", "outcome", "folder"),
              "run": ("run", "ordinal", "block", "treatment"), "meta": ("key", "value"),
              "segment": ("machine", "accepted", "begun_at")}  # fmt: skip
    table = mutator.random.choice(list(tables))
    column, word = mutator.random.choice(tables[table]), mutator.random.choice(words)
    db = sqlite3.connect(campaign / "journal.sqlite", isolation_level=None)
    try:
        db.execute("PRAGMA foreign_keys=OFF")
        db.execute("PRAGMA ignore_check_constraints=ON")
        act = mutator.random.randrange(6)
        if act == 0:
            db.execute(f"DELETE FROM {table}")
        elif act == 1:
            db.execute(f"DROP TABLE {table}")
        else:
            db.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid % 2 = 1", (word,))
    finally:
        db.close()
    return f"{table} {column} {word!r} {act}"


def a_link(campaign: Path, victim: Path, mutator: Mutator) -> str:
    path = campaign / mutator.random.choice(LINKABLE)
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(victim / mutator.random.choice(("", "a.csv", "journal.sqlite", "none")))
    return f"{path} -> {path.readlink()}"


def _victim(place: Path) -> Path:
    victim = place / "victim"
    for name in ("a.csv", "a.tex", "index.html", "x.svg", "tables/a.csv", "summary.json"):
        (victim / name).parent.mkdir(parents=True, exist_ok=True)
        (victim / name).write_text(VICTIM)
    sqlite3.connect(victim / "journal.sqlite").execute("CREATE TABLE t (x)").close()
    return victim


VERBS: dict[str, Callable[[Path, Path, str], tuple]] = {
    "status": lambda c, sound, run: ("status", c),
    "show": lambda c, sound, run: ("show", c, run),
    "commands": lambda c, sound, run: ("show", c, run, "--commands"),
    "compare": lambda c, sound, run: ("compare", sound, c),
    "bundle": lambda c, sound, run: ("bundle", c, "-o", c.parent / "c.zip"),
    "report": lambda c, sound, run: ("report", c),
    "resume": lambda c, sound, run: ("run", "--resume", c, "--no-report", "--plain"),
}


def test_every_verb_says_in_words_what_is_damaged(
    cases: Cases, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    victim = _victim(tmp_path)
    before = contents(victim)
    seeds = list(cases(8, 100))
    for at, seed in enumerate(seeds):
        place.mkdir()
        monkeypatch.chdir(place)
        shutil.copytree(sound, place / "c", symlinks=True)
        done = damage(place / "c", victim, seed)
        # Pages and runs take seconds each, so a short test creates them for only one damage.
        verbs = list(VERBS)[: 7 if len(seeds) > 50 else 7 if at == 3 else 5]
        for verb in verbs:
            run = ("b01-p001", "1", "b01-p002-1")[seed % 3]
            try:
                say(*VERBS[verb](place / "c", sound, run))
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {done}, {verb}: {error}") from error
            assert contents(victim) == before, f"seed {seed}, {done}, {verb}: wrote outside"
        assert {path.name for path in place.iterdir()} <= {"c", "c.zip"}, f"seed {seed}, {done}"
        shutil.rmtree(place)
