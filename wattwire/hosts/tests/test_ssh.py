"""Tests of hosts over ssh, with a real server on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import queue
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wattwire.hosts import Hosts, ssh
from wattwire.hosts.clocks import DATAGRAMS, PIPE
from wattwire.hosts.tests.sshd import Sshd, executable, find_sshd, make_key, serving
from wattwire.model.errors import AgentLostError, MissingError
from wattwire.model.rig import Rig, read_rig
from wattwire.rig.agent import AgentError, find_agent, wait_event

HANG_S = 60.0
CONTROLLER = """
import json, sys, time
from pathlib import Path
from wattwire.hosts import Hosts
from wattwire.model.rig import read_rig
hosts = Hosts(read_rig(json.loads(sys.argv[1]), "rig.toml"), Path(sys.argv[2]))
agent = hosts.first.agent
hosts.first.make_folder(hosts.first.folder_of(Path(sys.argv[2]), "token") / "out")
reply = agent.request("spawn", process="node", run="t", argv=["sleep", "1000"], env={},
                      cwd=sys.argv[2], stdout="lines", stderr="/dev/null")
print(json.dumps([agent.pid, reply["pid"], reply["guard_pid"]]))
sys.stdout.flush()
time.sleep(1000)
"""


def skip_without_programs() -> None:
    try:
        find_agent()
        find_sshd()
    except MissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    skip_without_programs()
    with serving(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


@contextlib.contextmanager
def server_of(tmp_path: Path, **options: Any) -> Iterator[Sshd]:
    skip_without_programs()
    with serving(tmp_path / "sshd", **options) as sshd:
        yield sshd


def forced(path: str, before: str = "") -> str:
    """Return the line of a server whose sessions execute their command with another PATH."""
    return f'ForceCommand {before} PATH={path}; export PATH; eval "$SSH_ORIGINAL_COMMAND"'


def programs(folder: Path, *names: str) -> Path:
    """Return a folder that contains only these programs of this machine."""
    folder.mkdir()
    for name in names:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def refusal(rig: Rig, state: Path) -> str:
    with pytest.raises(MissingError) as error:
        Hosts(rig, state)
    return str(error.value)


def read(document: dict[str, Any]) -> Rig:
    return read_rig(document, "rig.toml")


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


# -- starting and ending -----------------------------------------------------------------------


def test_hosts_start_agents_copied_once_and_leave_no_process(server, tmp_path):
    copies = server.cache / "agents"
    inodes = set()
    for _ in range(2):
        with Hosts(server.rig("robot", "edge"), tmp_path) as hosts:
            assert list(hosts.by_name) == ["robot", "edge"]
            assert sorted(server.agents()) == sorted(h.pid for h in hosts.by_name.values())
            edge = hosts.by_name["edge"]
            assert edge.command(["pwd"], 20) == (0, f"{copies}\n")
            with hosts.network("loop", tmp_path, 1) as network:
                assert network.addresses == dict.fromkeys(hosts.by_name, "127.0.0.1")
            (copy,) = (path for path in copies.rglob("*") if path.is_file())
            inodes.add(copy.stat().st_ino)
        wait_until(lambda: not server.agents())
    assert stat.S_IMODE(copy.stat().st_mode) == 0o755
    assert len(inodes) == 1, "it was copied again"
    assert copy.read_bytes() == ssh.portable_agent().read_bytes()


def test_a_static_agent_is_preferred_unless_it_is_older(tmp_path, monkeypatch):
    monkeypatch.setattr("wattwire.hosts.ssh.home", lambda: tmp_path)
    usual = tmp_path / "target" / "release" / "wattwire-agent"
    static = tmp_path / "target" / f"{platform.machine()}-unknown-linux-musl" / "release"
    static = static / usual.name
    for path in (usual, static):
        path.parent.mkdir(parents=True)
        path.touch(mode=0o755)
    monkeypatch.setenv("WATTWIRE_AGENT", str(usual))
    os.utime(usual, (1000, 1000))
    assert ssh.portable_agent() == static
    os.utime(static, (999, 999))
    assert ssh.portable_agent() == usual
    os.utime(static, (1000, 1000))
    static.chmod(0o644)
    assert ssh.portable_agent() == usual


def test_a_changed_copy_of_the_agent_is_refused(tmp_path):
    with server_of(tmp_path) as server:
        Hosts(server.rig(), tmp_path / "a").close()
        (copy,) = (path for path in server.cache.rglob("*") if path.is_file())
        with open(copy, "ab") as file:
            file.write(b"\0")
        message = refusal(server.rig(), tmp_path / "b")
        assert f"host edge: {copy}: found another agent" in message and "Remove the file" in message
        wait_until(lambda: not server.agents())


def test_an_agent_of_another_protocol_is_refused(server, tmp_path, monkeypatch):
    monkeypatch.setattr("wattwire.rig.agent.PROTOCOL", 1)
    with pytest.raises(AgentError, match=r"^host edge: agent: hello: .* has 1, this agent has 2"):
        Hosts(server.rig(), tmp_path)


def test_output_of_the_login_shell_is_skipped(tmp_path):
    noise = f"printf 'Welcome!\\n* no line end'; echo noise >&2; PATH={os.environ['PATH']};"
    with (
        server_of(tmp_path, more=f'ForceCommand {noise} eval "$SSH_ORIGINAL_COMMAND"') as server,
        Hosts(server.rig(), tmp_path / "state") as hosts,
    ):
        assert hosts.first.agent.request("clock", count=1)["triples"]


def test_a_killed_controller_leaves_no_process_and_no_file_of_a_run_on_the_host(server, tmp_path):
    document = json.dumps(dict(server.rig().document))
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, document, str(tmp_path)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    far = json.loads(controller.stdout.readline())
    assert all(executable(pid) for pid in far)
    assert list(server.attempts.iterdir())
    controller.kill()
    controller.wait()
    controller.stdout.close()
    wait_until(lambda: not any(executable(pid) for pid in far))
    wait_until(lambda: not server.agents())
    assert not list(server.attempts.iterdir())


def test_files_of_a_run_are_copied_here_and_removed_there(server, tmp_path):
    with Hosts(server.rig("robot", "edge"), tmp_path / "state") as hosts:
        folders = {name: h.folder_of(tmp_path, "token") for name, h in hosts.by_name.items()}
        assert len({*folders.values()}) == 2, "they share a cache"
        contents = {f"{name}/{number}": f"{name} {number}".encode() * number
                    for name in folders for number in range(20)}  # fmt: skip
        for path, content in contents.items():
            name = path.partition("/")[0]
            hosts.by_name[name].make_folder(folders[name] / name)
            hosts.by_name[name].write(folders[name] / path, content)
        for name, host in hosts.by_name.items():
            host.collect(folders[name], tmp_path / "run", lambda path: True)
            host.forget(folders[name])
        files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
        copied = {str(path.relative_to(tmp_path / "run")): path.read_bytes() for path in files}
        assert copied == contents
        assert not list(server.attempts.iterdir())


# -- losing the connection -----------------------------------------------------------------------


def test_both_sides_notice_a_connection_that_carries_nothing(server, tmp_path, monkeypatch):
    monkeypatch.setattr(ssh, "PATIENCE_S", 1.0)
    monkeypatch.setitem(ssh.OPTIONS, "ServerAliveInterval", 1)
    monkeypatch.setitem(ssh.OPTIONS, "ServerAliveCountMax", 1)
    hosts = Hosts(server.rig(), tmp_path)
    agent = hosts.first.agent
    events: queue.Queue[dict[str, Any]] = queue.Queue()
    agent.subscribe("node", events)
    far = agent.request("spawn", process="node", run="cut", argv=["sleep", "1000"])
    session = int(Path(f"/proc/{agent.pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(session, signal.SIGSTOP)
    try:
        gone = [agent.pid, far["pid"], far["guard_pid"]]
        wait_until(lambda: not any(executable(pid) for pid in gone))
        assert agent.lost.wait(HANG_S)
        with pytest.raises(AgentLostError, match=r"^host edge: agent: it ended .*not responding"):
            wait_event(events, time.monotonic() + HANG_S)
        with pytest.raises(AgentLostError, match=r"^host edge: agent: load: the agent has ended"):
            agent.request("load")
    finally:
        os.kill(session, signal.SIGKILL)
        hosts.close()


def test_an_idle_connection_lasts_longer_than_the_patience(server, tmp_path, monkeypatch):
    monkeypatch.setattr(ssh, "PATIENCE_S", 0.5)
    with Hosts(server.rig(), tmp_path) as hosts:
        time.sleep(1.5)
        assert not hosts.any_lost


# -- hosts that cannot be used -------------------------------------------------------------------


def test_a_machine_without_ssh_is_told_the_package(server, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    message = refusal(server.rig(), tmp_path)
    assert "host edge: hosts of kind ssh need the program ssh" in message
    assert "openssh-client" in message


def test_an_unknown_host_is_named(server, tmp_path):
    message = refusal(server.rig(to="nowhere.invalid"), tmp_path)
    assert "host edge: ssh nowhere.invalid: ssh: Could not resolve hostname" in message
    assert "Check hosts.edge.to" in message


def test_a_closed_port_is_named(server, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with open(server.config, "a") as config:
        config.write(f"\nHost closed\nHostName 127.0.0.1\nPort {port}\n")
    message = refusal(server.rig(to="closed"), tmp_path)
    assert f"port {port}: Connection refused. Start the ssh server" in message


def test_a_server_that_does_not_answer_is_named(server, tmp_path, monkeypatch):
    monkeypatch.setitem(ssh.OPTIONS, "ConnectTimeout", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with open(server.config, "a") as config:
            config.write(f"\nHost silent\nHostName 127.0.0.1\nPort {port}\n")
        message = refusal(server.rig(to="silent"), tmp_path)
    assert "host edge: ssh silent: Connection timed out" in message
    assert "no firewall drops the packets" in message


def test_a_refused_key_is_named_without_a_question(server, tmp_path):
    make_key(tmp_path / "other")
    config = server.config.read_text().replace(f"{server.folder}/user_key", f"{tmp_path}/other")
    own = tmp_path / "config"
    own.write_text(config)
    rig = server.rig()
    document = {**rig.document, "ssh_config": str(own)}
    message = refusal(read(document), tmp_path)
    assert "Permission denied (publickey)" in message
    assert "ssh-copy-id edge" in message and "ssh-add" in message


@pytest.mark.parametrize(
    ("known", "found", "remedy"),
    [
        ("", "No ED25519 host key is known for", "compare the fingerprint"),
        ("{port} {other}", "has changed and you have requested strict checking", "ssh-keygen -R"),
    ],
)
def test_an_unknown_or_changed_host_key_is_refused(server, tmp_path, known, found, remedy):
    make_key(tmp_path / "other")
    other = (tmp_path / "other.pub").read_text()
    hosts = tmp_path / "known_hosts"
    hosts.write_text(known.format(port=f"[127.0.0.1]:{server.port}", other=other))
    own = tmp_path / "config"
    own.write_text(server.config.read_text().replace(str(server.known_hosts), str(hosts)))
    message = refusal(read({**server.rig().document, "ssh_config": str(own)}), tmp_path)
    assert found in message and remedy in message


def test_all_hosts_that_cannot_be_used_are_named_and_the_others_end(server, tmp_path):
    rig = server.rig("a", "b", "c")
    hosts = {**rig.document["hosts"]}
    for name in ("a", "c"):
        hosts[name] = {**hosts[name], "to": "nowhere.invalid"}
    message = refusal(read({**rig.document, "hosts": hosts}), tmp_path)
    assert [line.partition(":")[0] for line in message.splitlines()] == ["host a", "host c"]
    wait_until(lambda: not server.agents())


def test_an_account_without_a_shell_is_named(tmp_path):
    with server_of(tmp_path, more="ForceCommand echo This account is closed.; exit 1") as server:
        message = refusal(server.rig(), tmp_path / "state")
    assert "host edge: ssh edge: found no POSIX shell" in message
    assert "code 1: This account is closed." in message


def test_a_host_without_a_utility_is_told_which_one(tmp_path):
    path = programs(tmp_path / "bin", "sh", "uname", "mkdir", "head", "find", "chmod", "mv", "rm")
    with server_of(tmp_path, more=forced(str(path))) as server:
        message = refusal(server.rig(), tmp_path / "state")
        assert "host edge: " in message and "gzip, sha256sum" in message
        assert not server.cache.exists()


def test_a_cache_that_others_can_write_to_is_refused_before_its_agent_runs(tmp_path):
    with server_of(tmp_path) as server:
        Hosts(server.rig(), tmp_path / "a").close()
        (copy,) = (path for path in server.cache.rglob("*") if path.is_file())
        copy.write_text(f"#!/bin/sh\ntouch {tmp_path}/executed\n")
        server.cache.chmod(0o777)
        message = refusal(server.rig(), tmp_path / "b")
    assert f"host edge: {server.cache}: another user" in message
    assert not (tmp_path / "executed").exists()


def test_a_cache_behind_a_link_is_used(tmp_path):
    """The mode of a symbolic link is always 777."""
    cache, disk = tmp_path / "sshd" / "cache", tmp_path / "disk"
    cache.parent.mkdir()
    disk.mkdir(mode=0o755)
    cache.symlink_to(disk)
    with server_of(tmp_path) as server:
        Hosts(server.rig(), tmp_path / "a").close()
    assert [*disk.rglob("wattwire-agent")]


def test_a_full_disk_is_named_and_no_part_remains(tmp_path):
    cache = tmp_path / "sshd" / "cache"
    cache.mkdir(parents=True)
    script = 'mount -t tmpfs -o size=1m,mode=755 tmpfs "$0" && exec "$@"'
    prefix = ("unshare", "--mount", "sh", "-c", script, str(cache))
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a small file system")
    with server_of(tmp_path, prefix=prefix) as server:
        message = refusal(server.rig(), tmp_path / "state")
        inside = Path(f"/proc/{server.pid}/root/{cache}/agents")
        assert f"host edge: {cache}/agents: the agent could not be written" in message
        assert "No space left on device" in message and "WATTWIRE_CACHE" in message
        assert [path for path in inside.rglob("*") if path.is_file()] == []


def test_a_host_of_another_architecture_needs_cargo(tmp_path):
    names = ("sh", "mkdir", "head", "find", "chmod", "mv", "rm", "gzip", "sha256sum", "tar")
    path = programs(tmp_path / "bin", *names)
    other_architecture(path)
    with server_of(tmp_path, environment={"HOME": str(tmp_path)}, more=forced(str(path))) as server:
        message = refusal(server.rig(), tmp_path / "state")
    assert f"because this machine is Linux {platform.machine()}" in message
    assert "without the programs cargo, cc" in message


def other_architecture(path: Path) -> None:
    uname = path / "uname"
    uname.write_text("#!/bin/sh\necho Linux other\n")
    uname.chmod(0o755)


@pytest.mark.matrix
def test_an_agent_is_built_once_on_a_host_of_another_architecture(tmp_path):
    path = tmp_path / "bin"
    path.mkdir()
    other_architecture(path)
    with server_of(tmp_path, more=forced(f"{path}:{os.environ['PATH']}")) as server:
        for _ in range(2):
            with Hosts(server.rig(), tmp_path / "state") as hosts:
                built = Path(executable(hosts.first.pid))
                assert built.parents[1] == server.cache / "agents"
        agents = [p for p in (server.cache / "agents").rglob("*") if p.is_file()]
        assert agents == [built]


# -- clocks --------------------------------------------------------------------------------------


def test_the_clock_of_a_host_is_related_by_datagrams_or_the_pipe(tmp_path):
    offset_s = 1000
    # The sessions of the server are its children, which are in the new namespace.
    prefix = ("unshare", "--time", "--monotonic", str(offset_s), "--boottime", str(offset_s))
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no right to create time namespaces")
    with (
        server_of(tmp_path, prefix=prefix) as server,
        Hosts(server.rig(), tmp_path / "state") as hosts,
    ):
        host = hosts.first
        ways = []
        for address in ("127.0.0.1", "203.0.113.1", ""):
            if ways:
                host.clock_address = address
            assert host.clock_address == address
            host.relate_clock()
            assert abs(host.offset_ns / 1e9 - offset_s) < 0.5
            ways.append(host.relation.way)
        assert ways == [DATAGRAMS, PIPE, PIPE]
        assert host.clock_address == "", "an address without the host is not tried again"
