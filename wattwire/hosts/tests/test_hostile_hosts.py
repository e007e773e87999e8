"""Test that a far host cannot hold up its controller, fill its disk or write other hosts' files."""

from __future__ import annotations

import base64
import hashlib
import threading
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from wattwire.hosts import ssh
from wattwire.hosts.host import Host
from wattwire.model.errors import MissingError, WattwireError
from wattwire.model.rig import SSH, HostSpec

SPEC = HostSpec("far", SSH, to="far")
CONTENT = b"content"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class FarAgent:
    """An agent that lists `files`, and whose files have no end if `is_endless`."""

    def __init__(self, files: list[dict[str, Any]], is_endless: bool = False) -> None:
        self.files = files
        self.content = b"\0" * 1_000_000 if is_endless else CONTENT
        self.size = 10**18 if is_endless else len(CONTENT)
        self.fetched = 0

    def request(self, operation: str, **arguments: Any) -> dict[str, Any]:
        assert operation == "list"
        return {"files": self.files}

    def submit(self, operation: str, **arguments: Any) -> None:
        assert operation == "fetch"
        self.fetched += 1

    def reply(self, operation: str, future: None) -> dict[str, Any]:
        digest = hashlib.sha256(self.content).hexdigest()
        encoded = base64.b64encode(self.content).decode()
        return {"base64": encoded, "size": self.size, "sha256": digest}


def is_own(path: PurePosixPath) -> bool:
    return path.parts[0] == "own"


def collect(files: list[dict[str, Any]], folder: Path) -> FarAgent:
    agent = FarAgent(files)
    Host(SPEC, agent).collect(Path("/far"), folder, is_own)  # type: ignore[arg-type]
    return agent


def test_files_of_a_host_are_collected(tmp_path):
    collect([{"path": "own/file", "size": len(CONTENT), "sha256": SHA256}], tmp_path)
    assert (tmp_path / "own" / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "name", ["/etc/x", "../x", "own/../../x", "run.json", "out/other/x", "own\0", "", "."]
)
def test_a_name_that_is_not_of_the_host_is_refused_before_anything_is_written(name, tmp_path):
    own = {"path": "own/file", "size": len(CONTENT), "sha256": SHA256}
    with pytest.raises(WattwireError, match="name"):
        collect([own, {**own, "path": name}], tmp_path / "run")
    assert not list((tmp_path / "run").iterdir())


def test_listed_bytes_beyond_the_free_disk_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(WattwireError, match="free"):
        collect([{"path": "own/file", "size": 10**18, "sha256": SHA256}], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_without_end_is_not_read_into_memory(monkeypatch):
    monkeypatch.setattr("wattwire.hosts.host.READ_BYTES_MAX", 5_000_000)
    agent = FarAgent([], is_endless=True)
    with pytest.raises(WattwireError, match="more than"):
        Host(SPEC, agent).read(Path("/far/log"))  # type: ignore[arg-type]
    assert agent.fetched < 10


@pytest.mark.parametrize(
    ("script", "fragment"),
    [
        ("while :; do echo welcome; sleep 0.01; done", "no answer within"),
        ("while :; do printf x; sleep 0.01; done", "no answer within"),
        ("yes welcome", "bytes"),
        ("tr '\\0' x < /dev/zero", "bytes"),
    ],
)
def test_endless_output_at_login_ends_the_start(script, fragment, tmp_path, monkeypatch):
    monkeypatch.setattr(ssh, "START_TIMEOUT_S", 1.0 if "sleep" in script else 60.0)
    monkeypatch.setattr(ssh, "LOGIN_BYTES_MAX", 1 << 20)  # a busy machine reads 16 MiB for minutes
    monkeypatch.setattr(ssh, "ssh_command", lambda spec, config: ["sh", "-c", script])
    with pytest.raises(MissingError, match=fragment):
        ssh.connect(SPEC, "", tmp_path, threading.Event())


def test_a_host_that_states_no_facts_is_refused(tmp_path, monkeypatch):
    script = 'read line; mark=${line#*mark=\\"}; echo "${mark%%\\"*} serve"; sleep 60'
    monkeypatch.setattr(ssh, "ssh_command", lambda spec, config: ["sh", "-c", script])
    with pytest.raises(MissingError, match="cache"):
        ssh.connect(SPEC, "", tmp_path, threading.Event())


def test_a_cancelled_start_ends_while_a_host_is_silent(tmp_path, monkeypatch):
    monkeypatch.setattr(ssh, "ssh_command", lambda spec, config: ["sleep", "1000"])
    cancelled = threading.Event()
    threading.Timer(0.3, cancelled.set).start()
    with pytest.raises(MissingError, match="cancelled"):
        ssh.connect(SPEC, "", tmp_path, cancelled)
