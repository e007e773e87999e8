"""The kits' own tests that a message allocates nothing, with an allocation planted in each."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from contract.conformance.repository import ROOT
from tests.toolchains.test_kits import why_not

GO_ENVIRONMENT = {"GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"}
PLANTED_GO = {
    "client.go": (
        "\tk.recordCall(sample)\n",
        "\tplanted = []any{sample}\n\tk.recordCall(sample)\n",
    ),
    "server.go": ("\tsample.EndNs", "\tplanted = []any{sample}\n\tsample.EndNs"),
}

pytestmark = pytest.mark.slow


def go_test(kit: Path) -> subprocess.CompletedProcess[str]:
    reason = why_not(ROOT / "languages" / "go")
    if reason:
        pytest.skip(reason)
    return subprocess.run(
        ["go", "test", "."], cwd=kit, env={**os.environ, **GO_ENVIRONMENT},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_message_allocates_nothing_in_the_go_kit() -> None:
    done = go_test(ROOT / "languages" / "go" / "kit")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.parametrize("name", PLANTED_GO)
def test_an_allocation_planted_in_the_go_kit_is_counted(tmp_path: Path, name: str) -> None:
    kit = shutil.copytree(ROOT / "languages" / "go" / "kit", tmp_path / "kit")
    text, (before, after) = (kit / name).read_text(encoding="utf-8"), PLANTED_GO[name]
    assert text.count(before) == 1
    (kit / name).write_text(text.replace(before, after) + "\nvar planted any\n", encoding="utf-8")
    done = go_test(kit)
    assert done.returncode != 0
    assert "allocations in a" in done.stdout and "allowed: none" in done.stdout
