"""Tests of the links of the catalogue."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

import pytest

from wattwire.catalog import Catalog
from wattwire.catalog.home import home
from wattwire.catalog.links import links_like, load_link
from wattwire.cli.main import main
from wattwire.model.errors import EXIT_USAGE, UsageError


@pytest.mark.parametrize("name", sorted(Catalog([home()]).links))
def test_a_link_is_valid_and_its_page_explains_its_keys(name: str) -> None:
    folder = Catalog([home()]).links[name]
    link = load_link(folder)
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {link.name}\n") and "measured" in page
    for part in ("delay_ms", "jitter_ms", "rate_mbit_s", "queue_bytes", "overhead_bytes", "trace"):
        if part in (folder / "link.toml").read_text(encoding="utf-8"):
            assert f"`{part}`" in page, part


def test_generated_traces_are_those_of_their_scripts(tmp_path: Path) -> None:
    scripts = sorted((home() / "links").glob("*/generate.py"))
    assert scripts
    for script in scripts:
        copy = shutil.copy(script, tmp_path)
        runpy.run_path(str(copy), run_name="__main__")
        written = sorted(tmp_path.glob("*.txt"))
        assert written
        for path in written:
            assert path.read_bytes() == (script.parent / path.name).read_bytes()
            path.unlink()


def test_a_new_folder_is_a_new_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "links" / "freshly-invented"
    folder.mkdir(parents=True)
    text = 'title = "T"\nsummary = "An invented link"\n[up]\ntrace = "t.txt"\nqueue_bytes = 2000\n'
    (folder / "link.toml").write_text(text, encoding="utf-8")
    (folder / "t.txt").write_text("4\n", encoding="utf-8")
    monkeypatch.setenv("WATTWIRE_PATH", str(tmp_path))
    (link,) = links_like(Catalog().links, ["freshly-invented"])
    assert link.up.opportunities_ms == (4,)
    assert main(["list", "links", "fresh"]) == 0
    assert "An invented link" in capsys.readouterr().out
    (folder / "t.txt").unlink()
    with pytest.raises(UsageError, match=r"link.toml: trace: t.txt: cannot be read"):
        load_link(folder)
    (folder / "link.toml").write_text(text.replace("t.txt", "../t.txt"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"found '../t.txt'; allowed: a file of this folder"):
        load_link(folder)


def test_an_unknown_link_is_refused_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "links", "no-such-link"]) == EXIT_USAGE
    assert 'unknown link "no-such-link"; known:' in capsys.readouterr().err
    assert main(["check", "links", "--cost"]) == EXIT_USAGE
    assert "are for cells" in capsys.readouterr().err
