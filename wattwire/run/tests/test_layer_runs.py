"""Test when a study with layer runs needs a C compiler, and what it says without one."""

from __future__ import annotations

import pytest

from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.model.study import parse_study
from wattwire.run.campaign import require_layer_library
from wattwire.run.resolve_cells import prepare

FILES = {
    "languages/lang/language.toml": 'title = "L"\n[build]\ncommands = []\n[run]\nargv = ["x"]\n',
    "middleware/mmm/middleware.toml": 'title = "M"\n[patterns.topic]\n',
    "middleware/mmm/lang/node.toml": 'patterns = ["topic"]\ncapabilities = ["encoding.bytes", '
    '"pacing.kit", "loop.open"]\n',
}


def require(folder, layer_runs):
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    document = {
        "factors": {"rate_hz": [10, 20]},
        "fixed": {"cell": "mmm/lang", "pattern": "topic"},
        "plan": {"blocks": 3, "layer_runs": layer_runs},
    }
    study = parse_study("t", document, "test")
    require_layer_library(study, prepare(study, Catalog([folder]), None))


@pytest.fixture(autouse=True)
def no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def table(tmp_path):
    folder = tmp_path / "middleware" / "mmm" / "layers"
    folder.mkdir(parents=True)
    (folder / "mmm.toml").write_text("")


def test_the_message_of_a_study_without_a_compiler_names_its_key(tmp_path, table):
    with pytest.raises(MissingError) as error:
        require(tmp_path, layer_runs=1)
    text = str(error.value)
    assert text.startswith("study t: plan.layer_runs: found no C compiler 'no-such-compiler'")
    assert text.endswith("; or skip these runs with --set plan.layer_runs=0.")
    assert "--layers" not in text


def test_a_study_whose_treatments_have_no_layers_needs_no_compiler(tmp_path):
    require(tmp_path, layer_runs=1)


def test_a_study_without_layer_runs_needs_no_compiler(tmp_path, table):
    require(tmp_path, layer_runs=0)
