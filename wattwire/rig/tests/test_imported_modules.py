"""Test builds with the modules of another cell, and with the kit of another language."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder
from wattwire.rig.agent import find_agent

NODE = 'patterns = ["topic"]\ncapabilities = ["encoding.bytes"]\n'
IMPORTING = f"""language = "lang"
imports = "mmm/lang"
because = "it runs a module of another cell"
{NODE}
[run]
argv = ["{{imported}}/session.sh"]
"""


@pytest.fixture
def agent(tmp_path, monkeypatch):
    monkeypatch.setenv("WATTWIRE_CACHE", str(tmp_path / "cache"))
    try:
        find_agent()
    except MissingError as reason:
        pytest.skip(str(reason))
    with contextlib.closing(AgentClient(tmp_path / "agent")) as client:
        yield client


def written(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def test_a_build_contains_the_imported_modules_and_depends_on_them(tmp_path, agent):
    root = tmp_path / "root"
    files = {
        "languages/lang/language.toml": 'title = "L"\n',
        "middleware/mmm/middleware.toml": 'title = "M"\n',
        "middleware/mmm/lang/node.toml": NODE,
        "middleware/mmm/lang/session.sh": "first",
        "middleware/other/middleware.toml": 'title = "O"\n',
        "middleware/other/near/node.toml": IMPORTING,
    }
    written(root, files)
    first = Builder(agent).cell(Catalog([root]).cell("other/near"))
    assert Path(first.argv[0]).read_text() == "first"
    (root / "middleware/mmm/lang/session.sh").write_text("second")
    second = Builder(agent).cell(Catalog([root]).cell("other/near"))
    assert Path(second.argv[0]).read_text() == "second"
    assert second.key != first.key


WRAPPING = """title = "W"
kit = "kit"
wraps = "lang"
[run]
argv = ["{wrapped}/clock.h", "{kit}/wrapper.c"]
"""


def test_a_build_contains_the_wrapped_kit_and_depends_on_it(tmp_path, agent):
    root = tmp_path / "root"
    files = {
        "languages/lang/language.toml": 'title = "L"\nkit = "kit"\n',
        "languages/lang/kit/clock.h": "first",
        "languages/wrapping/language.toml": WRAPPING,
        "languages/wrapping/kit/wrapper.c": "wrapper",
        "middleware/mmm/middleware.toml": 'title = "M"\n',
        "middleware/mmm/wrapping/node.toml": NODE,
    }
    written(root, files)
    first = Builder(agent).cell(Catalog([root]).cell("mmm/wrapping"))
    assert [Path(word).read_text() for word in first.argv] == ["first", "wrapper"]
    written(root, {"languages/lang/kit/clock.h": "second"})
    second = Builder(agent).cell(Catalog([root]).cell("mmm/wrapping"))
    assert Path(second.argv[0]).read_text() == "second"
    assert second.key != first.key
