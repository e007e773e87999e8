"""Secured nodes of cyclonedds/cpp: what they accept, and what they report when they refuse."""

from __future__ import annotations

import importlib.util
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from contract.conformance.cell import CellUnderTest
from contract.conformance.process import NodeProcess
from contract.conformance.spec import base_spec
from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.rig import AgentClient, Builder
from wattwire.run.credentials import Authority, Subject, credential_files

ROOT = Path(__file__).resolve().parents[3]
MIDDLEWARE = "cyclonedds"
HANG_S = 120.0
READY_TIMEOUT_MS = 12_000
PLUGINS = "WATTWIRE_CYCLONEDDS_PLUGINS"
TOPICS = "<topic>wattwire_{token}*</topic>"


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CellUnderTest]:
    client = AgentClient(tmp_path_factory.mktemp("agent"))
    found = Catalog([ROOT]).cell("cyclonedds/cpp")
    try:
        build = Builder(client).cell(found)
    except MissingError as reason:
        pytest.skip(str(reason))
    finally:
        client.close()
    if PLUGINS not in build.env:
        pytest.skip("this machine has no plug-ins for DDS Security")
    yield CellUnderTest(
        found.name, build.argv, build.env, found.document["patterns"],
        found.document["capabilities"], settings=found.middleware.effective_settings({}),
    )  # fmt: skip


def documents(**changes: str) -> dict[str, str]:
    """Return the documents of the manifest, in which each text in `changes` is replaced."""
    texts = Catalog([ROOT]).middleware[MIDDLEWARE].security_documents
    for old, new in changes.items():
        assert any(old in text for text in texts.values()), old
        texts = {key: text.replace(old, new) for key, text in texts.items()}
    return texts


class Run:
    """The nodes of one run, whose credentials an authority makes."""

    def __init__(self, cell: CellUnderTest, folder: Path) -> None:
        self.cell, self.folder = cell, folder
        self.token = "ww" + secrets.token_hex(5)
        self.nodes: list[NodeProcess] = []

    def credentials(
        self, name: str, authority: Authority, texts: dict[str, str] | None = None
    ) -> dict[str, str]:
        """Write the credentials of a node; return spec key → path."""
        words = {"token": self.token}
        subject = Subject(name, ("127.0.0.1",), texts or documents(), words)
        files = credential_files(authority, authority, subject)
        folder = self.folder / f"credentials-{name}-{secrets.token_hex(2)}"
        folder.mkdir()
        for name, content in files.values():
            (folder / name).write_bytes(content)
        return {key: str(folder / name) for key, (name, _) in files.items()}

    def start(self, role: str, credentials: dict[str, str], **env: str) -> NodeProcess:
        spec = base_spec(
            self.cell, "topic", role, run=self.token, ready_timeout_ms=READY_TIMEOUT_MS,
            settings__security="on", quiet_ms=100,
        )  # fmt: skip
        cell = replace(self.cell, env={**self.cell.env, **env})
        node = NodeProcess(cell, {**spec, **credentials}, self.folder / role, role)
        self.nodes.append(node)
        return node


@pytest.fixture
def run(cell: CellUnderTest, tmp_path: Path) -> Iterator[Run]:
    run = Run(cell, tmp_path)
    yield run
    for node in run.nodes:
        node.kill()


def reason(node: NodeProcess) -> str:
    """Return the reason of a node that ends with exit code 4."""
    assert node.wait_line("ERROR", HANG_S), node.last_output()
    assert node.wait_exit(HANG_S) == 4, node.last_output()
    return str(node.fields("ERROR")["reason"])


@pytest.mark.slow
def test_secured_nodes_match_and_report_protocol_and_cipher(run: Run) -> None:
    authority = Authority()
    nodes = [run.start(n, run.credentials(n, authority)) for n in ("subscriber", "publisher")]
    for node in nodes:
        assert node.wait_line("READY", HANG_S), node.last_output()
        effective = node.fields("READY")["effective"]
        assert (effective["security"], effective["security_protocol"]) == ("on", "DDS Security")
        assert effective["security_cipher"] == "AES256-GCM"
    for node in nodes:
        node.write(f"GO {time.monotonic_ns() + 500_000_000}\n")
    assert nodes[1].wait_line("SENT", HANG_S)
    for node in reversed(nodes):
        node.write("STOP\n")
        assert node.wait_line("DONE", HANG_S), node.last_output()
    assert nodes[0].fields("DONE")["received"] == nodes[1].fields("DONE")["sent"] > 0


@pytest.mark.slow
def test_permissions_that_lack_a_topic_are_named_with_the_topic(run: Run) -> None:
    texts = documents(**{TOPICS: "<topic>another_topic</topic>"})
    credentials = run.credentials("publisher", Authority(), texts)
    found = reason(run.start("publisher", credentials))
    assert f"topic wattwire_{run.token}_topic in domain " in found
    assert "Not Allowed By Security; allow it in a publish and a subscribe rule of " in found
    assert credentials["security.permissions"] in found


def broken(run: Run, name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the credentials and the environment of a node with one fault."""
    own, other = (run.credentials("publisher", Authority()) for _ in range(2))
    folder = str(run.folder / "nowhere")
    return {
        "plugins absent": (own, {PLUGINS: folder}),
        "no certificate": ({**own, "tls.certificate": ""}, {}),
        "no key": ({**own, "tls.key": folder}, {}),
        "identity of another authority": ({**own, "tls.certificate": other["tls.certificate"]}, {}),
        "permissions of another authority": (
            {**own, "security.permissions": other["security.permissions"]}, {},
        ),
        "no governance": ({**own, "security.governance": ""}, {}),
    }[name]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("plugins absent", "Could not load Authentication library: .*nowhere/libdds_security_auth"),
        ("no certificate", "tls.certificate is empty"),
        ("no key", "File could not be found, opened or is empty, path: .*nowhere"),
        ("identity of another authority", "Certificate not valid: .*local issuer certificate"),
        ("permissions of another authority", "Failed to parse PKCS7 SMIME document: .*verify"),
        ("no governance", "security.governance is empty"),
    ],
)
def test_a_node_with_faulty_credentials_ends_with_the_reason(
    run: Run, fault: str, message: str
) -> None:
    credentials, env = broken(run, fault)
    found = reason(run.start("publisher", credentials, **env))
    assert re.search(message, found), found


@pytest.mark.slow
def test_a_node_of_another_authority_matches_nobody(run: Run) -> None:
    subscriber = run.start("subscriber", run.credentials("subscriber", Authority()))
    publisher = run.start("publisher", run.credentials("publisher", Authority()))
    found = [reason(node) for node in (subscriber, publisher)]
    assert all(text.startswith("matched 0 of 1 peers") for text in found), found
    assert any("Certificate not valid" in text for text in found), found


def environment_builder() -> ModuleType:
    path = ROOT / "middleware" / MIDDLEWARE / "environment" / "build.py"
    spec = importlib.util.spec_from_file_location("cyclonedds_environment", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_plugins_only_secured_treatments_are_absent(tmp_path: Path) -> None:
    builder = environment_builder()
    settings = builder.exports(tmp_path)["cells"]["cpp"]["settings"]
    assert "install them (Debian: libddsc0debian)" in settings["security"]["absent"]["on"]
    folder = tmp_path / "libddsc0debian"
    folder.mkdir()
    for name in builder.PLUGINS[:2]:
        (folder / name).touch()
    assert "cells" in builder.exports(tmp_path)
    (folder / builder.PLUGINS[2]).touch()
    assert builder.exports(tmp_path) == {"env": {PLUGINS: str(folder)}}


def test_the_wheel_has_no_security() -> None:
    table = Catalog([ROOT]).cell("cyclonedds/python").document["settings"]["security"]
    assert table["allowed"] == ["off"]
    assert table["because"] == "the wheel of cyclonedds contains no plug-ins for DDS Security"
