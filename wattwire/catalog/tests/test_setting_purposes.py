"""Tests of the lookup of settings by purpose, and of the validation of their names and types."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattwire.catalog import Catalog
from wattwire.model.errors import UsageError

MANIFEST = """
title = "Made up"
[patterns.topic]
listens = "none"
[settings.plain]
type = "integer"
default = 0
[settings.at_once]
type = "{type}"
default = {default}
purpose = "{purpose}"
"""


def catalog(root: Path, purpose: str, type_: str = "boolean", default: str = "false") -> Catalog:
    folder = root / "middleware" / "made_up"
    folder.mkdir(parents=True)
    text = MANIFEST.format(purpose=purpose, type=type_, default=default)
    (folder / "middleware.toml").write_text(text)
    return Catalog([root])


def test_a_purpose_is_told_with_its_setting(tmp_path: Path) -> None:
    assert catalog(tmp_path, "nagle_off").setting_purposes() == {
        "made_up": {"at_once": "nagle_off"}
    }


def test_an_unknown_purpose_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'settings\.at_once.*"nagle_of".*nagle_off'):
        catalog(tmp_path, "nagle_of")


def test_a_boolean_purpose_may_be_a_switch_that_is_left_to_the_library(tmp_path: Path) -> None:
    levels = '"default"\nallowed = ["default", "on", "off"]'
    found = catalog(tmp_path, "nagle_off", "string", levels)
    assert found.setting_purposes()
    assert found.switches() == {"made_up": ["at_once"]}
    assert catalog(tmp_path / "plain", "nagle_off").switches() == {"made_up": []}
    with pytest.raises(UsageError, match="or a string of default, on, off"):
        catalog(tmp_path / "other", "nagle_off", "string", '"on"')


def test_a_purpose_asks_for_its_type(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"settings\.at_once: type: found 'integer'.*boolean"):
        catalog(tmp_path, "nagle_off", "integer", "0")
