"""Builds without a network: one sentence instead of the log."""

from __future__ import annotations

import pytest

from wattwire.catalog import Catalog
from wattwire.model.errors import MissingError
from wattwire.rig.agent import AgentError
from wattwire.rig.builds import Builder
from wattwire.rig.downloads import unanswered_download

PIP = """\
[1/1] /usr/bin/python3.11 /cache/k/source/environment/build.py /cache/k
$ /usr/bin/python3.11 -m venv --clear /cache/k/venv
$ /cache/k/venv/bin/python -m pip install --no-input -r /cache/k/source/requirements.txt
WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError(
'<HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno -3] Temporary \
failure in name resolution')': /simple/catkin-pkg/
ERROR: No matching distribution found for catkin-pkg==1.1.1
Traceback (most recent call last):
"""
REASONS = (
    "[6] Could not resolve hostname (Could not resolve host: index.example)",
    "npm error request to https://registry.example/left-pad failed, reason: getaddrinfo EAI_AGAIN",
    'Get "https://proxy.example/x": dial tcp: lookup proxy.example: connect: network is '
    "unreachable",
    "[ERROR] transfer failed for https://repo.example/x.pom: Unknown host repo.example",
    "SocketError: Failed to open TCP connection to gems.example:443 (getaddrinfo: Temporary failure"
    " in name resolution)",
    "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool: Read timed out.",
)


def message(log: str) -> str:
    return f"python3.11: exit code 1; the end of /cache/k.log:\n{log}"


def test_the_command_that_got_no_answer_is_named_without_its_paths() -> None:
    download = unanswered_download(message(PIP))
    assert download is not None
    assert download.command == "python -m pip install --no-input -r requirements.txt"
    assert download.reason == "Temporary failure in name resolution"
    assert download.log == "/cache/k.log"


@pytest.mark.parametrize("line", REASONS)
def test_the_words_of_each_downloading_program_are_known(line: str) -> None:
    assert unanswered_download(message(f"[1/2] tool fetch\n{line}\n")) is not None


@pytest.mark.parametrize(
    "log",
    [
        f"{PIP}[2/2] g++ -o node node.cpp\nnode.cpp:3:1: error: expected declaration\n",
        "[1/1] python -m pip install\nERROR: No matching distribution found for x==9\n",
        "",
    ],
)
def test_another_failure_remains_one(log: str) -> None:
    assert unanswered_download(message(log)) is None


def test_a_build_without_a_network_says_what_was_tried_and_what_to_do() -> None:
    catalog = Catalog()
    middleware = next(m for m in catalog.middleware.values() if "offline" in (m.environment or {}))
    cell = next(c for n in catalog.cells if (c := catalog.cell(n)).middleware is middleware)

    class Offline:
        def built(self, _key: str) -> None:
            return None

        def build(self, *_: object) -> None:
            raise AgentError("build", "failed", message(PIP))

    with pytest.raises(MissingError) as error:
        Builder(Offline()).cell(cell)  # type: ignore[arg-type]
    text = str(error.value)
    assert "Traceback" not in text and "\n" not in text
    assert f"{middleware.name} could not be built: `python -m pip install" in text
    assert "the network or the registry of packages did not answer" in text
    assert (middleware.environment or {})["offline"] in text
    assert "/cache/k.log" in text
