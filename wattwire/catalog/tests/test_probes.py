"""Manifests of probes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wattwire.catalog import Catalog, home
from wattwire.model.errors import UsageError

MANIFEST = """
title = "Something"
language = "cpp"
excludes = ["/noise"]
[remedies]
no_graph = "a"
no_type = "b"
no_match = "c"
unsequenced = "d"
[build]
commands = [["true"]]
[run]
argv = ["{build}/probe"]
"""


def catalog_with(folder: Path, manifest: str) -> Catalog:
    shutil.copytree(home() / "languages" / "cpp", folder / "languages" / "cpp")
    probe = folder / "middleware" / "invented" / "watcher"
    probe.mkdir(parents=True)
    (probe.parent / "middleware.toml").write_text('title = "Invented"')
    (probe / "probe.toml").write_text(manifest)
    return Catalog([folder])


def test_a_probe_is_found_by_its_folder_and_is_no_cell(tmp_path: Path) -> None:
    catalog = catalog_with(tmp_path, MANIFEST)
    assert set(catalog.probes) == {"invented/watcher"} and catalog.cells == []
    probe = catalog.probe("invented/watcher")
    assert (probe.title, probe.excludes, probe.remedies["no_type"]) == (
        "Something",
        ["/noise"],
        "b",
    )
    assert probe.middleware.name == "invented"
    assert probe.document["build"]["commands"] == [["true"]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('language = "cpp"', 'language = "cobol"', 'unknown language "cobol"; known: cpp'),
        ('language = "cpp"', "", "language: found nothing"),
        ('no_match = "c"', "", "remedies.no_match: found nothing"),
        ('excludes = ["/noise"]', 'exclude = ["/noise"]', 'Did you mean "excludes"?'),
        ('no_type = "b"', 'no_typo = "b"', 'unknown key "no_typo"'),
    ],
)
def test_a_bad_manifest_is_refused_with_the_key(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    catalog = catalog_with(tmp_path, MANIFEST.replace(old, new))
    with pytest.raises(UsageError) as error:
        catalog.probe("invented/watcher")
    assert message in str(error.value) and "probe.toml" in str(error.value)


@pytest.mark.parametrize(
    ("limit", "good", "bad", "message"),
    [
        ("domain_max = 232", ["", "0", "7", "232"], ["233", "-1", "x", "٣"], "from 0 to 232"),
        ("", ["", "0", "233"], ["-1", "x", "9" * 10], "such as 42"),
    ],
)
def test_a_domain_is_a_number_up_to_the_limit_of_the_manifest(
    tmp_path: Path, limit: str, good: list[str], bad: list[str], message: str
) -> None:
    probe = catalog_with(tmp_path, f"{limit}\n{MANIFEST}").probe("invented/watcher")
    for domain in good:
        probe.check_domain(domain, "--domain")
    for domain in bad:
        with pytest.raises(UsageError, match=rf"--domain: found '{domain}'; .*{message}"):
            probe.check_domain(domain, "--domain")


def test_the_variable_of_the_domain_is_checked_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = 'domain_max = 232\ndomain_variable = "INVENTED_DOMAIN"\n'
    probe = catalog_with(tmp_path, f"{limits}{MANIFEST}").probe("invented/watcher")
    probe.check_own_domain()
    monkeypatch.setenv("INVENTED_DOMAIN", "300")
    with pytest.raises(UsageError, match=r"INVENTED_DOMAIN \(environment variable\): found '300'"):
        probe.check_own_domain()
    catalog_with(tmp_path / "other", MANIFEST).probe("invented/watcher").check_own_domain()


def test_an_unknown_probe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='unknown probe "invented/other"; known: invented/watcher'):
        catalog_with(tmp_path, MANIFEST).probe("invented/other")
