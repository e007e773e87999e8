"""Test that the constants of each language match its template and contract/schemas."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT
from tools import generate_constants

TEMPLATES = sorted(
    path for name in generate_constants.FOLDERS for path in (ROOT / name).rglob("*.jinja")
)
SCHEMAS = ROOT / "contract" / "schemas"


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_constants_are_those_of_the_contract(template: Path) -> None:
    written = template.with_suffix("").read_text(encoding="utf-8")
    assert written == generate_constants.render(template, SCHEMAS), "run make constants"


def test_a_change_in_the_contract_reaches_the_constants(tmp_path: Path) -> None:
    shutil.copytree(SCHEMAS, tmp_path / "schemas")
    codes = json.loads((SCHEMAS / "codes.json").read_text(encoding="utf-8"))
    codes["kinds"].append("planted")
    (tmp_path / "schemas" / "codes.json").write_text(json.dumps(codes), encoding="utf-8")
    template = ROOT / "wattwire" / "model" / "sample_codes.py.jinja"
    assert "planted" in generate_constants.render(template, tmp_path / "schemas")


def test_a_key_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match=r"speed: found type number; allowed: string, integer"):
        generate_constants.key_type("speed", {"type": "number"})
