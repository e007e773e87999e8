"""Start hosts with a real ssh server each, in namespaces, until standard input ends.

    python -m tools.sshd_rig N OUT.toml [--link NAME …] [--namespaces]

It needs root and Debian's openssh-server. OUT.toml is a rig of N hosts of kind ssh (robot, edge,
cloud, host4, …), the network `native` between them, and the placements of rigs/three.toml except
`together`. With --link, it also contains a network of that name: the link emulator carries its
frames, and those of the first host pass the link. For wattwire this is a network like any other
between machines; it does not read the emulator's log. With --namespaces, the rig also contains N
hosts of kind netns with a network `veth`, and the placement `namespaces`, so a study can compare
the two kinds. The file appears when the hosts are ready, and then this program prints a line
`ready`; the file is removed at the end.

The folder OUT.ssh next to it keeps keys, the configuration of ssh, and the hosts' cache. The hosts
are as isolated as those of kind netns: own network, name and /dev/shm, but the files and the clock
of this machine. Each connection is a server of its own (`sshd -i`), which the client starts in the
namespaces of the host as its ProxyCommand. The measured network therefore does not carry ssh, and
the hosts have no other network; wattwire relates their clocks over the connection of ssh.

The kernel removes namespaces and devices with their last process. A process per host kills all
others in it when its input ends, also if this program is killed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from wattwire.catalog import Catalog
from wattwire.catalog.links import links_like
from wattwire.hosts.namespaces import Switch, programs, require_tap_devices
from wattwire.model.errors import MissingError, WattwireError
from wattwire.model.rig import NETNS, HostSpec
from wattwire.rig.emulator import Emulator, Port, Tap

HOSTS = ("robot", "edge", "cloud")
HOSTS_MIN, HOSTS_MAX = 2, 100
DEVICE, SUBNET = "lan", "10.88.0.{}/24"
LINK_ADDRESS = "10.88.{}.{}"
LINK_SEED = 1
ROLES = ("sender", "relay", "receiver", "service")
PLACEMENTS = (
    ("apart", "", 0, -1, 1, -1),
    ("round-trip", "", 0, 1, 0, -1),
    ("round-trip-broker-on-robot", "", 0, 1, 0, 0),
    ("namespaces", "plain-", 0, -1, 1, -1),
)
"""Name, prefix of the hosts' names, and the index of each role's host."""
SYSTEM_PATHS = "/usr/local/sbin:/usr/sbin:/sbin"
PRIVILEGE_SEPARATION = Path("/run/sshd")
"""Folder that a server of root requires."""
END_TIMEOUT_S = 30.0
HOLD = """
echo ready
cat > /dev/null
inode=$(readlink /proc/self/ns/net | tr -dc 0-9)
others=yes
while [ -n "$others" ]; do
    others=""
    for link in $(find /proc/[0-9]*/ns/net -maxdepth 0 -lname "net:?$inode?"); do
        pid=${link#/proc/}
        pid=${pid%/ns/net}
        if [ "$pid" != "$$" ] && kill -9 "$pid"; then others=yes; fi
    done 2> /dev/null
done
"""
"""Hold the namespaces until the input ends, then kill all other processes in this network."""
SERVER = """
HostKey {folder}/{host}_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv "WATTWIRE_CACHE={folder}/cache"
"""
CLIENT = """
Host {host}
ProxyCommand {nsenter} --target {pid} --net --mount --uts -- {sshd} -i -f {folder}/{host}_config
HostKeyAlias {host}
User root
IdentityFile {folder}/user_key
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile {folder}/known_hosts
GlobalKnownHostsFile /dev/null
"""


def host_names(count: int) -> tuple[str, ...]:
    """Return the names of `count` hosts."""
    return tuple(HOSTS[n] if n < len(HOSTS) else f"host{n + 1}" for n in range(count))


def rig_text(names: Sequence[str], config: str, links: Sequence[str], with_namespaces: bool) -> str:
    """Return the rig of these hosts, whose `config` configures ssh."""
    kinds = {"": 'kind = "ssh", to = "{}", interface = "lan"'}
    if with_namespaces:
        kinds["plain-"] = f'kind = "{NETNS}"'
    lines = [f'ssh_config = "{config}"', "", "[hosts]"]
    for prefix, keys in kinds.items():
        lines += [f"{prefix}{name} = {{ {keys.format(name)} }}" for name in names]
    for network, prefix in zip(("native", "veth"), kinds, strict=False):
        quoted = ", ".join(f'"{prefix}{name}"' for name in names)
        lines += ["", f"[networks.{network}]", f"hosts = [{quoted}]"]
    for link in links:
        devices = ", ".join(f'{name} = "{link}"' for name in names)
        lines += ["", f"[networks.{link}]", f"interfaces = {{ {devices} }}"]
    for placement, prefix, *hosts_of_roles in PLACEMENTS:
        if prefix in kinds:
            places = [f'"{prefix}{names[index]}"' for index in hosts_of_roles]
            lines += ["", f"[placements.{placement}]"]
            lines += [f"{role} = {host}" for role, host in zip(ROLES, places, strict=True)]
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def hosts(
    names: Sequence[str], folder: Path, links: Sequence[str] = ()
) -> Iterator[Mapping[str, int]]:
    """Yield host → pid of the process that holds its namespaces; `folder` gets the files of ssh.

    Each of the `links` joins all hosts by a device of its name. Raises MissingError without root
    or programs.
    """
    sshd, keygen = find_sshd()
    tools = programs()
    if os.geteuid():
        raise MissingError(
            f"servers in namespaces need root, because sshd changes users; found the user "
            f"{os.geteuid()}. Hosts of kind netns need no root"
        )
    folder.mkdir(parents=True, exist_ok=True)
    PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    make_key(keygen, folder / "user_key")
    with contextlib.ExitStack() as running:
        switch = Switch()
        running.callback(switch.close)
        pids = {}
        for name in names:
            hosts_file = folder / f"{name}_hosts"
            hosts_file.write_text(f"127.0.0.1 localhost {name}\n", encoding="utf-8")
            pids[name] = running.enter_context(namespaces(switch, name, hosts_file))
        addresses = {pid: SUBNET.format(n) for n, pid in enumerate(pids.values(), 1)}
        switch.join(DEVICE, addresses)
        switch.route_multicast(DEVICE, pids.values())
        for number, link in enumerate(links, 1):
            running.enter_context(emulated(link, number, pids, folder))
        known, client = "", ""
        for name, pid in pids.items():
            make_key(keygen, folder / f"{name}_key")
            known += f"{name} {(folder / f'{name}_key.pub').read_text()}"
            words = {"host": name, "folder": folder, "pid": pid, "sshd": sshd}
            (folder / f"{name}_config").write_text(SERVER.format(**words))
            client += CLIENT.format(**words, nsenter=tools["nsenter"])
        (folder / "known_hosts").write_text(known)
        (folder / "ssh_config").write_text(client)
        yield pids


@contextlib.contextmanager
def emulated(link: str, number: int, pids: Mapping[str, int], folder: Path) -> Iterator[None]:
    """Join the hosts by a link, which the frames from and to the first host pass."""
    require_tap_devices()
    (profile,) = links_like(Catalog().links, [link])
    ports = [
        Port(name, host == 1, Tap(pid, link, LINK_ADDRESS.format(number, host)))
        for host, (name, pid) in enumerate(pids.items(), 1)
    ]
    place = folder / link
    place.mkdir(exist_ok=True)
    emulator = Emulator(profile, LINK_SEED, ports, place)
    try:
        yield
    finally:
        emulator.close()


def find_sshd() -> tuple[str, str]:
    """Return the paths of sshd and ssh-keygen. Raises MissingError if one is not installed."""
    search = os.pathsep.join((os.environ.get("PATH", os.defpath), SYSTEM_PATHS))
    sshd, keygen = (shutil.which(name, path=search) for name in ("sshd", "ssh-keygen"))
    if sshd is None or keygen is None:
        raise MissingError(
            f"found no sshd and ssh-keygen in {search}; install them (Debian: apt install "
            "openssh-server)"
        )
    return sshd, keygen


def make_key(keygen: str, path: Path) -> None:
    """Create a pair of keys, unless an earlier start did."""
    if not path.exists():
        subprocess.run(
            [keygen, "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)],
            stdin=subprocess.DEVNULL, check=True,
        )  # fmt: skip


@contextlib.contextmanager
def namespaces(switch: Switch, name: str, hosts_file: Path) -> Iterator[int]:
    """Yield the pid of the process that holds a host's namespaces and ends its processes."""
    command = switch.host_command(HostSpec(name, NETNS), ["sh", "-c", HOLD], hosts_file)
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,  # so that Ctrl-C reaches only this program
    )  # fmt: skip
    assert process.stdin and process.stdout and process.stderr
    try:
        if process.stdout.readline() != "ready\n":
            raise WattwireError(f"host {name}: it did not start: {process.stderr.read().strip()}")
        yield process.pid
    finally:
        process.stdin.close()
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> int:
    """Serve until standard input ends. Return 3 if this machine cannot, with the reason."""
    parser = argparse.ArgumentParser(prog="python -m tools.sshd_rig", description=__doc__)
    parser.add_argument("count", metavar="N", type=int, help=f"{HOSTS_MIN} to {HOSTS_MAX} hosts")
    parser.add_argument("rig", metavar="OUT.toml", type=Path)
    parser.add_argument("--link", metavar="NAME", action="append", default=[], help="a network")
    parser.add_argument("--namespaces", action="store_true", help="also hosts of kind netns")
    options = parser.parse_args()
    if not HOSTS_MIN <= options.count <= HOSTS_MAX:
        parser.error(f"N: found {options.count}; allowed: {HOSTS_MIN} to {HOSTS_MAX}")
    path: Path = options.rig.absolute()
    if any(letter in str(path) for letter in ' \t"%'):
        parser.error(f"OUT.toml: found {path}; allowed: a path without spaces, quotes and %")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    path.unlink(missing_ok=True)
    names, folder = host_names(options.count), path.with_suffix(".ssh")
    try:
        with hosts(names, folder, options.link):
            part = path.with_suffix(".part")
            config = f"{folder.name}/ssh_config"
            part.write_text(
                rig_text(names, config, options.link, options.namespaces), encoding="utf-8"
            )
            part.rename(path)
            print("ready", flush=True)
            sys.stdin.read()
    except WattwireError as error:
        print(f"sshd_rig: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
