"""Tests of hosts in real namespaces, and of the networks between them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wattwire.hosts import Host, Hosts, namespaces
from wattwire.hosts.tests import echo
from wattwire.model.errors import MissingError, UsageError, WattwireError
from wattwire.model.rig import ONE_HOST, Rig, read_rig
from wattwire.rig.agent import find_agent
from wattwire.rig.emulator import EmulatorError, find_emulator
from wattwire.rig.emulator_log import Fate, read_log

OFFSET_S = 1000.0
DOCUMENT = {
    "hosts": {
        "robot": {"kind": "netns"},
        "edge": {"kind": "netns", "clock_offset_s": OFFSET_S},
    },
    "networks": {"plain": {}, "slow": {"link": "twenty"}},
}
LINK = 'title = "T"\nsummary = "S"\n[both]\ndelay_ms = 20\n'
CONTROLLER = """
import json, sys, time
from pathlib import Path
from wattwire.hosts import Hosts
from wattwire.model.rig import read_rig
hosts = Hosts(read_rig(json.loads(sys.argv[1]), "rig.toml"), Path(sys.argv[2]))
with hosts.network(sys.argv[3], Path(sys.argv[2]), 1) as network:
    for host in hosts.by_name.values():
        host.agent.request("spawn", process="node", run="t", argv=["sleep", "1000"], env={},
                           cwd=sys.argv[2], stdout="lines", stderr="/dev/null")
    pids = [host.pid for host in hosts.by_name.values()] + [hosts._switch.pid]
    print(json.dumps(pids + [network.emulator_pid] * (network.emulator_pid is not None)))
    sys.stdout.flush()
    time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def own_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "root" / "links" / "twenty"
    folder.mkdir(parents=True)
    (folder / "link.toml").write_text(LINK, encoding="utf-8")
    monkeypatch.setenv("WATTWIRE_PATH", str(tmp_path / "root"))


@pytest.fixture
def rig() -> Rig:
    return read_rig(DOCUMENT, "rig.toml")


@pytest.fixture
def hosts(rig: Rig, tmp_path: Path) -> Iterator[Hosts]:
    skip_without_namespaces()
    with Hosts(rig, tmp_path / "state") as started:
        yield started


def skip_without_namespaces() -> None:
    try:
        find_agent()
        namespaces.user_namespace()
    except MissingError as error:
        pytest.skip(str(error))


def skip_without_emulator() -> None:
    try:
        find_emulator()
        namespaces.require_tap_devices()
    except MissingError as error:
        pytest.skip(str(error))


def python(host: Host, code: str) -> str:
    """Return what a Python program prints on a host."""
    status, output = host.command([sys.executable, "-c", code], 20)
    assert status == 0, output
    return output.strip()


def is_multicast(host: Host, device: str) -> bool:
    """Return whether a device has the flag IFF_MULTICAST, without which libraries ignore it."""
    code = (
        "import fcntl, socket, struct; request = struct.pack('16sh22x', b'DEVICE', 0);"
        "reply = fcntl.ioctl(socket.socket(), 0x8913, request);"
        "print(struct.unpack('16sh22x', reply)[1] & 0x1000)"
    )
    return python(host, code.replace("DEVICE", device)) != "0"


def round_trips_ms(server: Host, client: Host, address: str, own: str) -> dict[str, float]:
    """Return the median round trips between processes that two agents start."""
    script = str(Path(echo.__file__))
    server.agent.submit(
        "command", argv=[sys.executable, script, "serve", address], env={}, timeout_s=60
    )
    status, output = client.command([sys.executable, script, "request", address, own], 60)
    assert status == 0, output
    medians: dict[str, float] = json.loads(output)
    return medians


def test_hosts_have_a_name_shared_memory_and_a_loopback_interface_of_their_own(hosts):
    robot, edge = hosts.by_name["robot"], hosts.by_name["edge"]
    for host in (robot, edge):
        name = "import socket; print(socket.gethostname(), socket.gethostbyname('NAME'))"
        assert python(host, name.replace("NAME", host.name)) == f"{host.name} 127.0.0.1"
        assert python(host, "import os; print(os.listdir('/dev/shm'))") == "[]"
        assert python(host, f"import os; print(os.geteuid() == {os.geteuid()})") == "True"
    python(robot, "open('/dev/shm/of-robot', 'w')")
    assert python(edge, "import os; print(os.path.exists('/dev/shm/of-robot'))") == "False"
    assert not Path("/dev/shm/of-robot").exists()
    for host in (robot, edge):
        text = python(host, "print(open('/proc/net/if_inet6').read())")
        assert text == "", "IPv6 is off"


def test_every_host_has_a_machine_id_of_its_own(hosts):
    file = Path("/etc/machine-id")
    if not file.exists():
        pytest.skip(f"this machine has no {file}")
    ids = [python(host, f"print(open('{file}').read())") for host in hosts.by_name.values()]
    ids.append(file.read_text().strip())
    assert len({*ids}) == len(ids)
    assert all(len(bytes.fromhex(text)) == 16 for text in ids[:-1])


def test_multicast_works_on_the_loopback_interface_of_a_host(hosts):
    medians = round_trips_ms(hosts.first, hosts.first, "127.0.0.1", "127.0.0.1")
    assert set(medians) == {"udp", "tcp", "multicast"}
    assert is_multicast(hosts.first, "lo")


def test_a_native_network_carries_udp_tcp_and_multicast_between_hosts(hosts, tmp_path):
    robot, edge = hosts.by_name["robot"], hosts.by_name["edge"]
    with hosts.network("plain", tmp_path, 1) as network:
        assert network.interfaces == {"robot": "plain", "edge": "plain"}
        assert network.emulator_pid is None and network.log is None
        own, other = network.addresses["robot"], network.addresses["edge"]
        assert set(round_trips_ms(edge, robot, other, own)) == {"udp", "tcp", "multicast"}
        assert robot.serves(other, echo.PORT)
        assert not robot.serves("127.0.0.1", echo.PORT)
        assert robot.interface_addresses() == {"lo": "127.0.0.1", "plain": own}
        assert is_multicast(robot, "plain")
    assert robot.interface_addresses() == {"lo": "127.0.0.1"}


def test_the_loopback_interface_of_a_host_is_not_reachable_from_another_host(hosts, tmp_path):
    robot, edge = hosts.by_name["robot"], hosts.by_name["edge"]
    with hosts.network("plain", tmp_path, 1):
        edge.agent.submit(
            "command", argv=[sys.executable, echo.__file__, "serve", "127.0.0.1"], env={},
            timeout_s=60,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while not edge.serves("127.0.0.1", echo.PORT):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert not robot.serves("127.0.0.1", echo.PORT)


def test_an_emulated_network_delays_and_its_log_is_complete_at_the_end(hosts, tmp_path):
    skip_without_emulator()
    robot, edge = hosts.by_name["robot"], hosts.by_name["edge"]
    with hosts.network("slow", tmp_path, 1) as network:
        network.start(time.monotonic_ns())
        assert network.emulator_pid is not None
        scheduler = os.sched_getscheduler(network.emulator_pid)
        assert scheduler == getattr(os, network.scheduler)
        assert robot.interface_addresses().keys() == {"lo", "slow"}
        assert is_multicast(robot, "slow")
        medians = round_trips_ms(edge, robot, network.addresses["edge"], network.addresses["robot"])
        assert set(medians) == {"udp", "tcp", "multicast"}
        assert min(medians.values()) >= 40, medians
    records = read_log(network.log)
    delivered = records[records["fate"] == Fate.DELIVERED]
    assert len(delivered) >= 6 * echo.ROUND_TRIPS
    assert (delivered["out_ns"] >= delivered["planned_ns"]).all()
    assert robot.interface_addresses().keys() == {"lo"}


def test_an_emulator_that_is_killed_is_named_by_the_error(hosts, tmp_path):
    skip_without_emulator()
    with (
        pytest.raises(EmulatorError, match=r"emulator: it ended with code -9"),
        hosts.network("slow", tmp_path, 1) as network,
    ):
        os.kill(network.emulator_pid, signal.SIGKILL)
    with hosts.network("plain", tmp_path, 1):
        pass


def test_the_offset_of_a_hosts_clock_holds_for_both_clocks(hosts):
    def clocks(host: Host) -> dict[str, int]:
        reply: dict[str, int] = host.agent.request("clock", count=1)["triples"][0]
        return reply

    robot, edge = hosts.by_name["robot"], hosts.by_name["edge"]
    before, shifted, after = clocks(robot), clocks(edge), clocks(robot)
    for name in ("monotonic_ns", "boottime_ns"):
        own = shifted[name] - round(OFFSET_S * 1e9)
        assert before[name] <= own <= after[name]
    assert robot.agent.hello["time_namespace"] != edge.agent.hello["time_namespace"]


def test_closed_hosts_have_ended_and_can_be_closed_again(rig, tmp_path):
    skip_without_namespaces()
    hosts = Hosts(rig, tmp_path)
    pids = [host.pid for host in hosts.by_name.values()]
    hosts.close()
    hosts.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("network", ["plain", "slow"])
def test_a_killed_controller_leaves_no_process_device_or_mount(network, tmp_path):
    skip_without_namespaces()
    if network == "slow":
        skip_without_emulator()
    before = namespaces_in_use()
    links = sorted(os.listdir("/sys/class/net"))
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, json.dumps(DOCUMENT), str(tmp_path), network],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    pids = json.loads(controller.stdout.readline())
    made = namespaces_of(pids) - before
    assert len(made) > len(pids)
    controller.kill()
    controller.wait()
    controller.stdout.close()
    deadline = time.monotonic() + 60
    # A process that exits leaves its namespaces before it ends.
    while made & namespaces_in_use() or any(is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline, f"{made & namespaces_in_use()} are in use"
        time.sleep(0.1)
    assert sorted(os.listdir("/sys/class/net")) == links
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()


def namespaces_of(pids: list[int]) -> set[str]:
    """Return the namespaces of processes. The devices and mounts of a namespace end with it."""
    used = set()
    for pid in pids:
        for kind in ("net", "mnt", "uts", "user", "time"):
            try:
                used.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
            except OSError:
                continue
    return used


def namespaces_in_use() -> set[str]:
    return namespaces_of([int(name) for name in os.listdir("/proc") if name.isdigit()])


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_files_of_a_host_are_written_read_and_kept(hosts, tmp_path):
    robot = hosts.first
    folder = robot.folder_of(tmp_path / "attempt", "token")
    assert folder == tmp_path / "attempt" and robot.here
    robot.make_folder(folder / "deep")
    robot.write(folder / "deep" / "file", b"\0content")
    assert robot.read(folder / "deep" / "file") == b"\0content"
    assert robot.which("sh") and robot.which("no-such-program") is None
    assert robot.free_disk_bytes(folder) > 0
    robot.collect(folder, folder, lambda path: True)
    robot.forget(folder)
    assert (folder / "deep" / "file").exists()


def test_one_host_needs_no_namespace(tmp_path):
    try:
        find_agent()
    except MissingError as error:
        pytest.skip(str(error))
    with Hosts(ONE_HOST, tmp_path) as hosts, hosts.network("", tmp_path, 1) as network:
        assert network.addresses == {"local": "127.0.0.1"}
        assert network.interfaces == {"local": "lo"}
        assert (tmp_path / "agent.log").exists()


def test_a_network_that_exists_is_looked_up_on_its_hosts(tmp_path):
    skip_without_namespaces()
    document = {
        "hosts": {"here": {"interface": "lo"}, "there": {"kind": "ssh", "to": "x"}},
        "networks": {"real": {"interfaces": {"here": "lo", "there": "none0"}}},
    }
    with Hosts(ONE_HOST, tmp_path) as hosts:
        hosts.rig = read_rig(document, "rig.toml")
        hosts.by_name = dict.fromkeys(("here", "there"), hosts.first)
        with (
            pytest.raises(WattwireError, match="host there has no interface 'none0'.*lo"),
            hosts.network("real", tmp_path, 1),
        ):
            pass


def test_an_offset_that_the_kernel_refuses_is_the_reason_in_the_error(tmp_path):
    skip_without_namespaces()
    for offset_s, reason in ((-1e9, "host edge: it did not start: .*unshare"), (0.5, "whole")):
        document = {"hosts": {"edge": {"kind": "netns", "clock_offset_s": offset_s}}}
        with pytest.raises(WattwireError, match=reason):
            Hosts(read_rig(document, "rig.toml"), tmp_path)


def test_a_missing_program_is_named_with_its_package(monkeypatch):
    real = namespaces.shutil.which
    for name, package in (("unshare", "util-linux"), ("ip", "iproute2")):
        namespaces.programs.cache_clear()
        monkeypatch.setattr(
            namespaces.shutil, "which",
            lambda program, path, name=name: None if program == name else real(program, path=path),
        )  # fmt: skip
        with pytest.raises(MissingError, match=rf"program {name}.*apt install {package}"):
            namespaces.programs()
        monkeypatch.undo()
    namespaces.programs.cache_clear()


def test_a_user_without_the_right_learns_what_grants_it(monkeypatch, tmp_path):
    refusing = tmp_path / "unshare"
    refusing.write_text("#!/bin/sh\necho refused >&2; exit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(namespaces, "programs", lambda: {"unshare": str(refusing)})
    with pytest.raises(MissingError, match=r"refused.*max_user_namespaces.*kind ssh"):
        namespaces.user_namespace()


def test_a_device_for_links_that_is_closed_to_the_user_is_named_with_its_remedy(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(namespaces, "TUN", tmp_path / "tun")
    with pytest.raises(MissingError, match="modprobe tun"):
        namespaces.require_tap_devices()
    (tmp_path / "tun").touch(0o600)
    monkeypatch.setattr(namespaces.os, "access", lambda *_: False)
    with pytest.raises(MissingError, match="mode 0600.*chmod 0666.*native"):
        namespaces.require_tap_devices()


def test_unknown_networks_and_engines_are_usage_errors(tmp_path):
    document = {**DOCUMENT, "networks": {"slow": {"link": "cell", "engine": "kernel"}}}
    folder = tmp_path / "root" / "links" / "cell"
    folder.mkdir(parents=True)
    (folder / "link.toml").write_text(LINK + "jitter_ms = 1\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"networks.slow.engine: found 'kernel'"):
        Hosts(read_rig(document, "rig.toml"), tmp_path)
    with (
        Hosts(ONE_HOST, tmp_path) as hosts,
        pytest.raises(UsageError, match="unknown network"),
        hosts.network("other", tmp_path, 1),
    ):
        pass
