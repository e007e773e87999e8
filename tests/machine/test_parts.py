"""Test that a host without a part of the machine is told what is missing, and the initramfs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.machine import parts
from tests.machine.initramfs import FOLDER, LINK, PROGRAM, archive
from tools.packages import Package


def test_what_is_missing_is_named_with_its_purpose_and_the_command(monkeypatch):
    package = Package("made-up-qemu", "no-such-program", (parts.VERB,), "boots it")
    monkeypatch.setattr(parts, "listed", lambda: [package])
    monkeypatch.setattr(parts.platform, "machine", lambda: "x86_64")
    with pytest.raises(parts.MissingPartsError) as caught:
        parts.parts()
    assert "made-up-qemu (boots it)" in str(caught.value)
    assert "sudo apt-get install made-up-qemu" in str(caught.value)


def test_another_processor_is_refused_before_a_package_is_named(monkeypatch):
    monkeypatch.setattr(parts.platform, "machine", lambda: "aarch64")
    with pytest.raises(parts.MissingPartsError, match="this host is aarch64"):
        parts.parts()


def test_a_clone_that_the_machine_would_hide_is_named(monkeypatch):
    monkeypatch.setattr(parts, "listed", list)
    monkeypatch.setattr(parts.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(parts, "ROOT", Path("/tmp/clone"))
    with pytest.raises(parts.MissingPartsError, match="which hide /tmp/clone; move it elsewhere"):
        parts.parts()


@pytest.mark.parametrize(
    ("name", "fits"),
    [("6.1.0-57-amd64", True), ("6.1.0-57-cloud-amd64", False), ("6.1.0-57-rt-amd64", False)],
)
def test_only_a_kernel_with_the_modules_of_the_machine_fits(name, fits):
    assert bool(parts.RELEASE.fullmatch(name)) is fits


def test_an_initramfs_is_an_archive_that_cpio_unpacks(tmp_path: Path):
    if shutil.which("cpio") is None:
        pytest.skip("cpio is not installed")
    entries = {
        "bin": (FOLDER, b""),
        "bin/program": (PROGRAM, b"odd"),
        "bin/other": (LINK, b"program"),
        "empty": (PROGRAM, b""),
    }
    subprocess.run(["cpio", "--quiet", "-id"], input=archive(entries), cwd=tmp_path, check=True)
    assert (tmp_path / "bin/program").read_bytes() == b"odd"
    assert (tmp_path / "bin/program").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "bin/other").readlink() == Path("program")
    assert (tmp_path / "empty").read_bytes() == b""
