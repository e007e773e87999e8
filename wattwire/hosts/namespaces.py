"""Start hosts in anonymous namespaces of this machine, and join them by virtual Ethernet devices.

The namespaces have no names and no files: the kernel removes them, with their devices and mounts,
when their last process ends. Each host's namespaces belong to its agent. The switch is one more
network namespace, with the bridge between the hosts; a process holds it that ends with its input.

A user without CAP_SYS_ADMIN gets the right to create these namespaces from a user namespace, which
belongs to the process of the switch. The agents run in further user namespaces, in which they have
the user's own id and no capability, as outside.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wattwire.hosts import kernel_links
from wattwire.hosts.kernel_links import NETEM, TBF
from wattwire.model.errors import MissingError, UsageError, WattwireError
from wattwire.model.links.profile import DIRECTIONS, Direction, Link
from wattwire.model.rig import HostSpec
from wattwire.rig.children import first_line, kill, last_words, short_command

PACKAGES = {
    "unshare": "util-linux", "nsenter": "util-linux", "mount": "mount", "hostname": "hostname",
    "ip": "iproute2", "tc": "iproute2",
}  # fmt: skip
"""Debian package of each program."""
SYSTEM_PATHS = ("/usr/sbin", "/sbin")
"""Folders of `ip`, which the PATH of ordinary users lacks."""
MTU_BYTES = 1500
MULTICAST = "224.0.0.0/4"
LOOPBACK_METRIC = 1000
"""A network's route for multicast has metric 0, so it precedes that of the loopback device."""
BRIDGE = "switch"
GROUP = 1
"""Number of the group of the bridge and its ports, which one command removes."""
END_TIMEOUT_S = 10.0
TUN = Path("/dev/net/tun")
_SET_UP = """
{hostname} "$1"
{mount} -t tmpfs -o mode=1777 tmpfs /dev/shm
{mount} --bind "$2" /etc/hosts
if [ -e /etc/machine-id ]; then
    tr -d - < /proc/sys/kernel/random/uuid > /dev/shm/machine-id
    {mount} --bind /dev/shm/machine-id /etc/machine-id
    rm /dev/shm/machine-id
fi
for switch in /proc/sys/net/ipv6/conf/*/disable_ipv6; do
    if [ -e "$switch" ]; then echo 1 > "$switch"; fi
done
{ip} link set lo up multicast on
{ip} route add {multicast} dev lo metric {metric}
shift 2
exec "$@"
"""
"""The host's name, its own shared memory and machine id, no IPv6, and multicast on `lo`.

Some libraries treat hosts with the same machine id as one host. They then ignore the addresses of
all interfaces that their own allowlist does not contain.

IPv6 would add frames of the kernel to every network: router solicitations and reports of groups.
"""
_IN_NEW_CLOCK = 'exec {nsenter} --time=/proc/self/ns/time_for_children -- "$@"'
"""Enter the time namespace that `unshare` created. Before Linux 6.3, only children would be in it,
and the agent would have another pid than the command."""


@functools.lru_cache
def programs() -> Mapping[str, str]:
    """Return the path of each program. Raises MissingError with the package that contains it."""
    search = os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_PATHS))
    paths = {name: shutil.which(name, path=search) for name in PACKAGES}
    for name, path in paths.items():
        if path is None:
            raise MissingError(
                f"hosts of kind netns need the program {name}, which is not in {search}; install "
                f"it (Debian: apt install {PACKAGES[name]})"
            )
    return {name: path for name, path in paths.items() if path is not None}


def user_namespace() -> tuple[str, ...]:
    """Return the options with which `unshare` may create the namespaces: none for root.

    Raises MissingError with the reasons and what grants the right.
    """
    unshare = programs()["unshare"]
    refusals = []
    for options in ((), ("--user", "--map-root-user")):
        done = short_command([unshare, *options, "--net", "--mount", "--uts", "true"])
        if done.returncode == 0:
            return options
        refusals.append(f"{' '.join(options) or 'as this user'}: {done.stderr.strip()}")
    raise MissingError(
        "hosts of kind netns need the right to create network namespaces; refused: "
        f"{'; '.join(refusals)}. Root has it (CAP_SYS_ADMIN and CAP_NET_ADMIN; in a container: "
        "--privileged), and so has every user where user namespaces are allowed: sysctl -w "
        "user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1 (Debian) "
        "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu). Hosts of kind ssh need neither."
    )


def require_tap_devices() -> None:
    """Raise MissingError if this user cannot create TAP devices, which an emulated link needs."""
    if not TUN.exists():
        raise MissingError(f"a network with a link needs {TUN}, which is missing: modprobe tun")
    if not os.access(TUN, os.R_OK | os.W_OK):
        mode = TUN.stat().st_mode & 0o777
        raise MissingError(
            f"a network with a link needs {TUN}; found mode {mode:04o}, which refuses user "
            f"{os.geteuid()}; run as root, or grant it (mode 0666 is the default of udev): sudo "
            f'chmod 0666 {TUN}. Networks with link = "native" do not need it.'
        )


class Switch:
    """The namespace between the hosts. It and all devices vanish when this process ends."""

    def __init__(self) -> None:
        self._options = user_namespace()
        self._programs = programs()
        no_ipv6 = "/proc/sys/net/ipv6/conf/default/disable_ipv6"
        script = f"if [ -e {no_ipv6} ]; then echo 1 > {no_ipv6}; fi; echo ready; exec cat"
        self._process = subprocess.Popen(
            [self._programs["unshare"], *self._options, "--net", "sh", "-ec", script],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,  # so that Ctrl-C reaches only the controller
        )  # fmt: skip
        try:
            line = first_line(self._process)
        except TimeoutError:
            line = ""
        if line != "ready":
            raise WattwireError(f"switch of the hosts: {last_words(self._process)[1]}")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def remove_device(self, pid: int, device: str) -> None:
        """Remove a device of the host of an agent."""
        self._ip(pid, [f"link del dev {device}"])

    def host_command(self, spec: HostSpec, agent: Sequence[str], hosts_file: Path) -> list[str]:
        """Return the command that starts an agent in the namespaces of a host.

        Every step replaces its process by the next, so the agent is the command's process. The
        first word of `agent` is its program.
        `hosts_file` is /etc/hosts of the host.
        """
        paths = {name: shlex.quote(path) for name, path in self._programs.items()}
        set_up = _SET_UP.format(**paths, multicast=MULTICAST, metric=LOOPBACK_METRIC)
        command = [*self._enter(), self._programs["unshare"], "--net", "--mount", "--uts"]
        command += ["sh", "-ec", set_up, "sh", spec.name, str(hosts_file)]
        if spec.clock_offset_s:
            if not float(spec.clock_offset_s).is_integer():
                raise UsageError(
                    f"host {spec.name}: clock_offset_s: found {spec.clock_offset_s}; allowed: "
                    "whole seconds, because unshare (util-linux) accepts no others"
                )
            # Both clocks alike, because their difference is the time of suspension.
            offset = str(round(spec.clock_offset_s))
            command += [self._programs["unshare"], "--time", "--monotonic", offset]
            command += ["--boottime", offset, "sh", "-c", _IN_NEW_CLOCK.format(**paths), "sh"]
        if self._options:
            # In its own user namespace, the agent may not open sockets that see frames.
            command += [agent[0], "with-packet-sockets", self._programs["unshare"], "--user"]
            command += [f"--map-user={os.geteuid()}", f"--map-group={os.getegid()}"]
        return [*command, *agent]

    def entry_command(self, pid: int, has_clock: bool) -> list[str]:
        """Return a command that executes its arguments in the namespaces of the host of an agent.

        It replaces its process by theirs. `has_clock` states whether the host has its own clocks.
        """
        kinds = {
            "net": "net",
            "mount": "mnt",
            "uts": "uts",
            **({"time": "time"} if has_clock else {}),
        }
        return self._enter(*(f"--{option}=/proc/{pid}/ns/{kind}" for option, kind in kinds.items()))

    def join(self, device: str, addresses: Mapping[int, str]) -> None:
        """Connect hosts, given as pid → address/prefix, to a new bridge by devices of one name."""
        commands = [
            f"link add name {BRIDGE} group {GROUP} type bridge mcast_snooping 0",
            f"link set {BRIDGE} up",
        ]
        for port, pid in enumerate(addresses):
            commands.append(
                f"link add name port{port} group {GROUP} mtu {MTU_BYTES} type veth "
                f"peer name {device} mtu {MTU_BYTES} netns {pid}"
            )
            commands.append(f"link set port{port} master {BRIDGE} up")
        self._ip(self.pid, commands)
        for pid, address in addresses.items():
            self._ip(pid, [f"addr add {address} brd + dev {device}", f"link set {device} up"])

    def part(self) -> None:
        """Remove the bridge with the devices of all hosts."""
        with contextlib.suppress(WattwireError):  # they vanish with the switch anyway
            self._ip(self.pid, [f"link del group {GROUP}"])

    def route_multicast(self, device: str, pids: Iterable[int]) -> None:
        """Send multicast to a network, unless a socket names another interface."""
        for pid in pids:
            self._ip(pid, [f"route add {MULTICAST} dev {device}"])

    def close(self) -> None:
        """End the process that holds the namespace."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            kill(self._process)

    def _enter(self, *namespaces: str) -> list[str]:
        """Return a command that enters the user namespace of the switch, and further ones."""
        options = [*namespaces]
        if self._options:
            options += [f"--user=/proc/{self.pid}/ns/user", "--preserve-credentials"]
        return [self._programs["nsenter"], *options, "--"] if options else []

    def _ip(self, pid: int, commands: Sequence[str], program: str = "ip") -> None:
        """Execute commands of `ip` or `tc` in the network namespace of a process."""
        done = short_command(
            [*self._enter(f"--net=/proc/{pid}/ns/net"), self._programs[program], "-batch", "-"],
            input="\n".join(commands) + "\n",
        )
        if done.returncode:
            raise WattwireError(
                f"network between the hosts: {program}, in the namespace of process {pid}: "
                f"{' '.join(done.stderr.split())}"
            )

    # -- links of the kernel -----------------------------------------------------------------

    def require_kinds(self, kinds: Iterable[str]) -> None:
        """Raise MissingError if the kernel lacks a queueing discipline."""
        options = {TBF: "rate 1mbit burst 2000 limit 2000", NETEM: "delay 1ms"}
        for kind in sorted(kinds):
            add = f"qdisc add dev lo root {kind} {options[kind]}"
            try:
                self._ip(self.pid, [add, "qdisc del dev lo root"], "tc")
            except WattwireError as error:
                raise MissingError(
                    f'engine = "kernel" needs the queueing discipline {kind}; found: {error}. '
                    f"Load it (sudo modprobe sch_{kind}); if the kernel is built without it, set "
                    'engine = "emulator".'
                ) from error

    def limit(self, link: Link, device: str, pids: Sequence[int], near: Iterable[int]) -> None:
        """Send the frames of near hosts through a link, in both directions.

        `pids` are the hosts in the order of `join`, and `near` those at the near end.
        """
        for pid in near:
            for direction, (place, name) in self._senders(device, pids, pid).items():
                # One frame per buffer, because netem treats a buffer as a frame.
                self._ip(place, [f"link set dev {name} gso_max_segs 1"])
                lines = list(kernel_links.commands(_only(link, direction), name))
                if lines:
                    self._ip(place, lines, "tc")
        for pid in pids:
            self._ip(pid, [f"link set dev {device} gso_max_segs 1"])

    def counters(self, device: str, pids: Sequence[int], pid: int) -> dict[str, Any]:
        """Return the counters of a near host's link by direction and queueing discipline."""
        counters = {}
        for direction, (place, name) in self._senders(device, pids, pid).items():
            done = short_command(
                [*self._enter(f"--net=/proc/{place}/ns/net"), self._programs["tc"],
                 "-s", "-json", "qdisc", "show", "dev", name]
            )  # fmt: skip
            counters[direction] = kernel_links.read_counters(done.stdout)
        return counters

    def _senders(self, device: str, pids: Sequence[int], pid: int) -> dict[str, tuple[int, str]]:
        """Return, by direction, the namespace and the device that sends the frames of a host."""
        up, down = DIRECTIONS
        return {up: (pid, device), down: (self.pid, f"port{list(pids).index(pid)}")}


def _only(link: Link, direction: str) -> Direction:
    return link.course(direction).segments[0].direction
