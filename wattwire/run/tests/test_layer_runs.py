"""Test when a study with layer runs needs a C compiler, and what it says without one."""

from __future__ import annotations

import pytest

from wattwire.catalog import Catalog
from wattwire.cli.planning.printed_plan import _layer_lines
from wattwire.model.errors import MissingError
from wattwire.model.study import PROFILED, parse_study
from wattwire.run.campaign import require_layer_library
from wattwire.run.resolve_cells import prepare

FILES = {
    "languages/lang/language.toml": 'title = "L"\n[build]\ncommands = []\n[run]\nargv = ["x"]\n',
    "middleware/mmm/middleware.toml": 'title = "M"\n[patterns.topic]\n',
    "middleware/mmm/lang/node.toml": 'patterns = ["topic"]\ncapabilities = ["encoding.bytes", '
    '"pacing.kit", "loop.open"]\n',
}


def prepared_study(folder, layer_runs, files=FILES):
    for path, text in {**FILES, **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    document = {
        "factors": {"cell": ["mmm/lang"], "rate_hz": [10, 20]},
        "fixed": {"pattern": "topic"},
        "plan": {"blocks": 3, "layer_runs": layer_runs},
    }
    study = parse_study("t", document, "test")
    return study, prepare(study, Catalog([folder]), None)


def require(folder, layer_runs):
    require_layer_library(*prepared_study(folder, layer_runs))


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


def test_a_cell_whose_library_calls_no_function_of_a_table_has_no_layer_runs(tmp_path, table):
    study, prepared = prepared_study(tmp_path, layer_runs=1)
    plain = prepared.plan(study.plan)
    assert sum(run.control == PROFILED for run in plain) == 2
    node = FILES["middleware/mmm/lang/node.toml"]
    absent = node + '[layers]\nabsent = "its library is pure"\n'
    study, prepared = prepared_study(tmp_path, 1, {"middleware/mmm/lang/node.toml": absent})
    assert [run for run in prepared.plan(study.plan) if run.control == PROFILED] == []
    assert [*_layer_lines(study, prepared, prepared.plan(study.plan), {})] == [
        "layers: not of 2 treatments with cell=mmm/lang: mmm/lang has no layers, because "
        "its library is pure"
    ]
    require_layer_library(study, prepared)
