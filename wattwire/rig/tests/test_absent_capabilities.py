"""Test the capabilities that an environment lists as absent on this host."""

from __future__ import annotations

from typing import Any

import pytest

from wattwire.catalog import Catalog
from wattwire.model.errors import UsageError
from wattwire.rig.builds import Artifact, Builder

NODE = 'patterns = ["topic"]\ncapabilities = ["encoding.bytes", "encoding.text"]\n'


def absent(folder: Any, exports: dict[str, Any]) -> dict[str, str]:
    for path, text in {
        "languages/lang/language.toml": 'title = "L"\n',
        "middleware/mmm/middleware.toml": 'title = "M"\n',
        "middleware/mmm/lang/node.toml": NODE,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    cell = Catalog([folder]).cell("mmm/lang")
    agent: Any = None  # no build is necessary
    builder = Builder(agent)
    identity = (cell.middleware.name, cell.middleware.folder)
    builder._environments[identity] = Artifact("key", folder, True, exports)
    return builder.absent_capabilities(cell)


def test_a_capability_may_be_absent_for_all_cells_or_for_one(tmp_path):
    shared = {"capabilities": {"absent": {"encoding.text": "no letters", "tls": "no library"}}}
    own = {"cells": {"lang": {"capabilities": {"absent": {"encoding.bytes": "no bytes"}}}}}
    assert absent(tmp_path, {}) == {}
    assert absent(tmp_path, shared) == {"encoding.text": "no letters"}
    assert absent(tmp_path, shared | own) == {
        "encoding.text": "no letters",
        "encoding.bytes": "no bytes",
    }
    other = {"cells": {"other": own["cells"]["lang"]}}
    assert absent(tmp_path, other) == {}


def test_a_capability_that_the_cell_does_not_declare_is_rejected(tmp_path):
    own = {"cells": {"lang": {"capabilities": {"absent": {"encoding.txt": "no letters"}}}}}
    with pytest.raises(UsageError, match=r'cells.lang: unknown capability "encoding.txt"'):
        absent(tmp_path, own)
