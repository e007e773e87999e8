"""Tests of a user who may create no namespaces, in a user namespace that permits none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wattwire.hosts.tests.sshd import find_sshd, serving
from wattwire.model.errors import MissingError
from wattwire.rig.agent import find_agent

WITHOUT_RIGHTS = [
    "unshare", "--user", "--map-root-user", "sh", "-ec",
    "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all "
    '--inh-caps=-all "$@"', "sh",
]  # fmt: skip
CONTROLLER = """
import json, sys
from pathlib import Path
from wattwire.hosts import Hosts
from wattwire.model.errors import MissingError
from wattwire.model.rig import read_rig
try:
    with Hosts(read_rig(json.loads(sys.argv[1]), "rig.toml"), Path(sys.argv[2])) as hosts:
        print(hosts.first.command(["echo", "works"], 20))
except MissingError as error:
    print("refused", error)
"""


@pytest.fixture(autouse=True)
def skip_where_no_user_namespace_exists() -> None:
    try:
        find_agent()
        find_sshd()
    except MissingError as error:
        pytest.skip(str(error))
    done = subprocess.run([*WITHOUT_RIGHTS, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no user namespace to take the rights in: {done.stderr.strip()}")


def start(document: dict[str, object], state: Path) -> str:
    """Return what a controller without the rights prints about the hosts of a rig."""
    argv = [sys.executable, "-c", CONTROLLER, json.dumps(document), str(state)]
    done = subprocess.run([*WITHOUT_RIGHTS, *argv], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_hosts_in_namespaces_are_refused_with_what_grants_the_right(tmp_path: Path) -> None:
    printed = start({"hosts": {"a": {"kind": "netns"}}}, tmp_path / "state")
    assert printed.startswith("refused hosts of kind netns need the right to create network")
    for text in ("as this user: ", "--user --map-root-user: ", "CAP_NET_ADMIN",
                 "user.max_user_namespaces=", "Hosts of kind ssh need neither"):  # fmt: skip
        assert text in printed


def test_hosts_over_ssh_need_no_right(tmp_path: Path) -> None:
    with serving(tmp_path / "sshd") as server:
        printed = start(dict(server.rig().document), tmp_path / "state")
    assert printed == r"(0, 'works\n')"
