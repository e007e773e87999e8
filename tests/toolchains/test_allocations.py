"""Test that the kits' allocation tests pass, and that they fail with a planted allocation."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from contract.conformance.repository import ROOT, read_toml
from tests.toolchains.test_kits import why_not

GO_ENVIRONMENT = {"GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"}
CSHARP = ROOT / "languages" / "csharp"
JAVA = ROOT / "languages" / "java"
PLANTED_JAVA = {
    "Sender.java": ("results.called(sample);", "new Object[8]"),
    "Receiver.java": ("request.reply = null;", "new Object[8]"),
}
PLANTED_CSHARP = {
    "Calls.cs": ("RecordCall(sample, flags);\n            return", "new object[1]"),
    "Arrivals.cs": ("arrival.EntryNs = entryNs;", "new object[1]"),
}
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


def csharp_allocations(kit: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    reason = why_not(CSHARP)
    if reason:
        pytest.skip(reason)
    program = folder / "allocations.exe"
    command = ["mcs", "-nologo", "-optimize+", "-pkg:newtonsoft-json", f"-out:{program}"]
    command += [f"{kit}/*.cs", f"{kit}/tests/Allocations.cs"]
    subprocess.run(command, capture_output=True, text=True, check=True)
    return subprocess.run(["mono", program], capture_output=True, text=True, check=False)


def test_a_message_allocates_nothing_in_the_csharp_kit(tmp_path: Path) -> None:
    done = csharp_allocations(CSHARP / "kit", tmp_path)
    assert (done.returncode, done.stdout) == (0, "0 faults\n"), done.stdout + done.stderr


@pytest.mark.parametrize("name", PLANTED_CSHARP)
def test_an_allocation_planted_in_the_csharp_kit_is_counted(tmp_path: Path, name: str) -> None:
    kit = shutil.copytree(CSHARP / "kit", tmp_path / "kit")
    text, (before, planted) = (kit / name).read_text(encoding="utf-8"), PLANTED_CSHARP[name]
    assert text.count(before) == 1
    faulty = text.replace(before, f"planted = {planted};\n            {before}")
    faulty = faulty.replace("class Kit {", "class Kit {\n        public static object planted;")
    (kit / name).write_text(faulty, encoding="utf-8")
    done = csharp_allocations(kit, tmp_path)
    assert done.returncode == 1
    assert "bytes per message; allowed: 0" in done.stdout


def java_allocations(kit: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    reason = why_not(JAVA)
    if reason:
        pytest.skip(reason)
    words = {"kit": str(kit), "build": str(folder)}
    for template in read_toml(JAVA / "vectors.toml")["build"]:
        command = [part.format_map(words) for part in template]
        command[-1] = command[-1].replace("Vectors.java", "Allocations.java")
        subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    command = ["java", "-cp", f"{folder}/classes:{folder}/lib/*", "wattwire.Allocations"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_message_allocates_nothing_in_the_java_kit(tmp_path: Path) -> None:
    done = java_allocations(JAVA / "kit", tmp_path)
    assert (done.returncode, done.stdout) == (0, "0 faults\n"), done.stdout + done.stderr


@pytest.mark.parametrize("name", PLANTED_JAVA)
def test_an_allocation_planted_in_the_java_kit_is_counted(tmp_path: Path, name: str) -> None:
    kit = shutil.copytree(JAVA / "kit", tmp_path / "kit")
    path = kit / "wattwire" / name
    text, (before, planted) = path.read_text(encoding="utf-8"), PLANTED_JAVA[name]
    assert text.count(before) == 1
    faulty = text.replace(before, f"planted = {planted}; {before}")
    faulty = faulty.replace(" {\n", " {\n    static Object planted;\n", 1)
    path.write_text(faulty, encoding="utf-8")
    done = java_allocations(kit, tmp_path)
    assert done.returncode == 1
    assert "bytes per message; allowed: 0" in done.stdout
