"""Tests of --set, including the source that an error names (--set or the file)."""

from pathlib import Path

import pytest

from wattwire import __version__
from wattwire.catalog import Catalog
from wattwire.cli.studies import change, chooser, load
from wattwire.design import expand
from wattwire.model.errors import UsageError
from wattwire.model.study import parse_study

GOOD = """
[factors]
clients = [1, 2]
[fixed]
cell = "loopback/python"
pattern = "topic"
"""


def refused(tmp_path: Path, text: str, *changes: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load(Catalog([]), str(path), None, list(changes))
    return str(caught.value).replace(str(path), "FILE")


def test_the_change_that_breaks_a_study_is_named(tmp_path: Path) -> None:
    said = refused(tmp_path, GOOD, "plan.blocks=2", "factors.clients=[0]", "plan.seed=3")
    assert said == ("--set factors.clients=[0]: factors.clients: found 0; allowed: 1 or more")
    assert refused(tmp_path, GOOD, "plan.bocks=2").startswith(
        '--set plan.bocks=2: plan: unknown key "bocks"'
    )
    assert refused(tmp_path, GOOD, "plan.blocks=two") == (
        "--set plan.blocks=two: plan.blocks: found 'two'; allowed: an integer"
    )


def test_changes_that_are_right_only_together_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    changes = ["plan.warmup_s=20", "plan.duration_s=30"]
    _, _, document = load(Catalog([]), str(path), None, changes)
    assert document["plan"] == {"warmup_s": 20, "duration_s": 30}


def test_what_is_wrong_in_the_file_is_left_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace('"topic"', '"gossip"'))
    _, _, document = load(Catalog([]), str(path), None, ["plan.blocks=2"])
    assert document["plan"] == {"blocks": 2}  # a later parser reports the file's error


def test_a_level_needs_no_table_and_a_list_of_levels_is_a_factor() -> None:
    document = {"factors": {"clients": [1, 2]}, "fixed": {"payload_bytes": 64}}
    held = change(document, "clients=4")
    assert held == {"factors": {}, "fixed": {"payload_bytes": 64, "clients": 4}}
    varied = change(held, "payload_bytes=[64,1024]")
    assert varied == {"factors": {"payload_bytes": [64, 1024]}, "fixed": {"clients": 4}}
    assert change(varied, "settings.tls=true")["fixed"] == {"clients": 4, "settings.tls": True}


def test_a_level_is_the_same_with_its_table_and_without() -> None:
    document = {"factors": {"settings.tls": [False, True]}, "fixed": {"clients": 1}}
    assert change(document, "settings.tls=true") == change(document, "fixed.settings.tls=true")
    assert change(document, "clients=[1,2]") == change(document, "factors.clients=[1,2]")


def test_a_word_that_is_no_level_is_still_refused(tmp_path: Path) -> None:
    assert "--set payload=64:" in refused(tmp_path, GOOD, "payload=64")


def test_a_mistyped_level_is_offered_the_level(tmp_path: Path) -> None:
    said = refused(tmp_path, GOOD, "payload_byte=3")
    assert said.startswith('--set payload_byte=3: unknown key "payload_byte"; known: ')
    assert said.endswith('Did you mean "payload_bytes"?')


def test_a_setting_and_a_key_of_the_plan_are_offered_with_their_table(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    for word, meant in {"tls=true": "settings.tls", "blocks=2": "plan.blocks"}.items():
        with pytest.raises(UsageError, match=f'Did you mean "{meant}"'):
            load(Catalog(), str(path), None, [word])


def test_a_key_that_is_set_twice_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, GOOD, "plan.blocks=2", "plan.blocks=3") == (
        "--set plan.blocks=2: plan.blocks is set 2 times; set it once"
    )


def test_an_empty_expression_is_no_choice_of_everything() -> None:
    document = {"factors": {"clients": [1, 2]}, "fixed": {"cell": "udp/cpp", "pattern": "topic"}}
    study = parse_study("mine", document, "mine.toml")
    assert chooser(study, None, Catalog([])) is None
    with pytest.raises(UsageError, match="--only : allowed: factor=level"):
        chooser(study, "", Catalog([]))


def test_a_validity_limit_is_set_by_its_whole_key(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD + "[validity]\nstall_max_ms = 50\n")
    document = load(Catalog([]), str(path), None, ["validity.steal_max=0.2"])[2]
    assert document["validity"] == {"stall_max_ms": 50, "steal_max": 0.2}
    with pytest.raises(UsageError, match='Did you mean "validity.steal_max"'):
        load(Catalog([]), str(path), None, ["steal_max=0.2"])


@pytest.mark.parametrize(
    ("typed", "levels"),
    [("1k", 1000), ("1Ki", 1024), ("64", 64), ("[64,1k]", [64, 1000]), ('["1k", "2Mi"]', None)],
)
def test_a_payload_takes_the_suffixes_that_try_takes(typed: str, levels: object) -> None:
    changed = change({}, f"payload_bytes={typed}")
    levels = [1000, 2 * 1024**2] if levels is None else levels
    table = "factors" if isinstance(levels, list) else "fixed"
    assert changed[table] == {"payload_bytes": levels}
    assert change({}, f"{table}.payload_bytes={typed}")[table] == {"payload_bytes": levels}


def test_a_payload_that_is_no_size_is_refused_with_what_is_allowed(tmp_path: Path) -> None:
    said = refused(tmp_path, GOOD, "payload_bytes=1q")
    assert said.startswith(
        "--set payload_bytes: found '1q'; allowed: a size in bytes, such as 64, 64k"
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("concurrency=8", "clients"), ("connections=8", "clients"), ("payload=64", "payload_bytes"),
     ("rate=100", "rate_hz"), ("duration=3", "plan.duration_s")],
)  # fmt: skip
def test_the_field_s_own_words_are_offered_the_key_for_them(
    tmp_path: Path, typed: str, meant: str
) -> None:
    assert refused(tmp_path, GOOD, typed).endswith(f'Did you mean "{meant}"?')


CELLS = {"cell": ["rest/go", "grpc/go", "rest/python", "loopback/python"]}


def kept(expression: str, factors: dict, fixed: dict) -> list[str]:
    """Return the labels of the treatments that --only selects."""
    document = {"factors": factors, "fixed": {"pattern": "service", **fixed}}
    study = parse_study("mine", document, "mine.toml")
    wanted = chooser(study, expression, Catalog())
    return [t.label().removeprefix("cell=") for t, _ in expand(study) if wanted and wanted(t)]


def test_only_takes_booleans_as_toml_writes_them() -> None:
    tls = {"settings.tls": [False, True]}
    assert len(kept("settings.tls=true", tls, {"cell": "rest/go"})) == 1
    with pytest.raises(UsageError, match='unknown level "True"'):
        kept("settings.tls=True", tls, {"cell": "rest/go"})


def test_only_knows_language_and_middleware_of_the_cells_that_a_study_names() -> None:
    assert kept("language=go", CELLS, {}) == ["rest/go", "grpc/go"]
    assert kept("language=python,middleware=rest", CELLS, {}) == ["rest/python"]
    assert kept("middleware=grpc|loopback", CELLS, {}) == ["grpc/go", "loopback/python"]


def test_only_takes_patterns() -> None:
    assert kept("cell=*/go", CELLS, {}) == ["rest/go", "grpc/go"]
    assert kept("cell=rest/*|loopback/*", CELLS, {}) == [
        "rest/go",
        "rest/python",
        "loopback/python",
    ]
    assert kept("middleware=r*", CELLS, {}) == ["rest/go", "rest/python"]


def test_only_takes_a_cell_where_a_study_names_middleware_and_language() -> None:
    factors = {"middleware": ["rest", "grpc"], "language": ["go", "java"]}
    assert kept("cell=*/go", factors, {}) == ["middleware=rest language=go",
                                              "middleware=grpc language=go"]  # fmt: skip


def test_only_refuses_what_no_cell_of_the_study_has() -> None:
    with pytest.raises(UsageError, match=r'unknown level "rust"; known: go, python'):
        kept("language=rust", CELLS, {})
    with pytest.raises(UsageError, match=r'unknown level "\*/rust"; known: grpc/go'):
        kept("cell=*/rust", CELLS, {})
    with pytest.raises(UsageError, match=r'unknown factor "clients"; known: cell, language, midd'):
        kept("clients=1", CELLS, {})


PRIMARY = """
[factors]
cell = ["ros2/cpp-rcl", "ros2/python"]
"settings.reliability" = ["reliable", "best_effort"]
[fixed]
pattern = "topic"
[plan]
primary = "settings.reliability"
"""


def refused_primary(tmp_path: Path, *changes: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(PRIMARY)
    with pytest.raises(UsageError) as caught:
        load(Catalog(), str(path), None, list(changes))
    return str(caught.value)


def test_to_hold_the_primary_factor_is_refused_with_what_can_be_done(tmp_path: Path) -> None:
    assert refused_primary(tmp_path, "settings.reliability=best_effort") == (
        "--set settings.reliability=best_effort: plan.primary names settings.reliability, which "
        "is held at one level (best_effort). Name another factor (--set plan.primary=…), or keep "
        "it as a factor and run only that level (--only settings.reliability=best_effort)."
    )


def test_a_level_that_no_middleware_has_is_named_before_what_follows_from_it(
    tmp_path: Path,
) -> None:
    said = refused_primary(tmp_path, "settings.reliability=bestt")
    assert said.startswith("--set settings.reliability=bestt: middleware ")
    assert said.endswith(": setting reliability: found 'bestt'; allowed: 'reliable', 'best_effort'")


def test_a_baseline_that_is_set_to_what_the_study_lacks_is_refused(tmp_path: Path) -> None:
    said = refused(tmp_path, GOOD, "answers.baseline={clients=3}")
    assert said.endswith("answers.baseline.clients: found 3; allowed: one of 1, 2")
    path = tmp_path / "mine.toml"
    load(Catalog([]), str(path), None, ["answers.baseline={clients=2}", "clients=[4, 8]"])


def test_a_validity_limit_on_a_share_may_be_written_in_percent(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    document = load(Catalog([]), str(path), None, ["validity.other_load_max=50%"])[2]
    assert document["validity"] == {"other_load_max": 0.5}
    assert "allowed: a percentage" in refused(tmp_path, GOOD, "validity.steal_max=x%")
    assert "found '50%'" in refused(tmp_path, GOOD, "validity.stall_max_ms=50%")


@pytest.mark.parametrize("minimum", ["999", "0.999", "0.1.999999"])
def test_a_study_that_requires_a_later_version_is_refused_before_its_keys(tmp_path, minimum):
    text = f'wattwire_min = "{minimum}"\ntelemetry = 1\n{GOOD}'
    assert f"FILE: wattwire_min: this study requires wattwire {minimum}" in refused(tmp_path, text)


def test_a_study_may_require_this_version_or_an_earlier_one(tmp_path):
    for minimum in ("0", "0.1", __version__):
        path = tmp_path / "mine.toml"
        path.write_text(f'wattwire_min = "{minimum}"\n{GOOD}')
        name, _, document = load(Catalog([]), str(path), None, [])
        assert parse_study(name, document, "").factors == {"clients": (1, 2)}
    for wrong in ("1", '"new"', '">=1"'):
        assert "found" in refused(tmp_path, f"wattwire_min = {wrong}\n{GOOD}")
