"""Tests of the pinned library versions, read from the files of each package manager."""

from __future__ import annotations

import pytest

from wattwire.catalog.pins import pins_of


@pytest.mark.parametrize(
    ("files", "pins"),
    [
        ({"requirements.txt": "a-b==1.2 \\\n    --hash=sha256:00\nc==3\n"},
         {"a-b": "1.2", "c": "3"}),
        ({"requirements.txt": "a==1\nc==3\n", "requirements.in": "# why\nA>=1\n"}, {"a": "1"}),
        ({"Cargo.toml": '[dependencies]\na = "=1"\nkit = {path = "_kit"}\n',
          "Cargo.lock": '[[package]]\nname = "a"\nversion = "1.4"\n[[package]]\nname = "kit"\n'
                        'version = "0"\n'}, {"a": "1.4"}),
        ({"package.json": '{"dependencies": {"a": "5.3.0"}}'}, {"a": "5.3.0"}),
        ({"go.mod": "module x\nrequire (\n\ta.org/b v1.2.0\n\tc.org/d v1 // indirect\n)\n"},
         {"a.org/b": "v1.2.0"}),
        ({"pom.xml": "<dependency><groupId>g</groupId><artifactId>a</artifactId>"
                     "<version>1.0</version></dependency>"}, {"a": "1.0"}),
        ({"package.json": "[", "go.mod": "", "Cargo.toml": "=", "requirements.txt": "a==1"},
         {"a": "1"}),
        ({}, {}),
    ],
)  # fmt: skip
def test_pins_are_read_from_the_files_that_hold_them(tmp_path, files, pins):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert pins_of(tmp_path) == pins
