"""Start an ssh server for tests, with keys of its own, as one or more hosts of this machine."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from wattwire.model.errors import MissingError
from wattwire.model.rig import Rig, read_rig

SYSTEM_PATHS = "/usr/local/sbin:/usr/sbin:/sbin"
PRIVILEGE_SEPARATION = Path("/run/sshd")
"""Folder that a server of root requires."""
START_S = 30.0
ALIAS = "edge"
SERVER = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
{more}
"""
CLIENT = """
Host {alias}
HostName 127.0.0.1
Port {port}
User {user}
IdentityFile {folder}/user_key
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile {folder}/known_hosts
GlobalKnownHostsFile /dev/null
"""


class Sshd:
    """A server, whose pid is 0 until it runs. `cache` is the cache of wattwire behind it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.pid = 0
        self.port = port
        self.cache = folder / "cache"
        self.attempts = self.cache / "attempts"
        self.config = folder / "ssh_config"
        self.known_hosts = folder / "known_hosts"

    def rig(self, *names: str, to: str = ALIAS) -> Rig:
        """Return a rig whose hosts are all behind this server."""
        hosts = {name: {"kind": "ssh", "to": to, "interface": "lo"} for name in names or (ALIAS,)}
        document = {"hosts": hosts, "ssh_config": str(self.config)}
        if len(hosts) > 1:
            document["networks"] = {"loop": {}}
        return read_rig(document, "rig.toml")

    def agents(self) -> list[int]:
        """Return the pids of the agents that run from the cache behind this server."""
        return [pid for pid in pids() if str(self.cache) in executable(pid)]


def pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]


def executable(pid: int) -> str:
    """Return the path of a process's program, or "" if it has ended."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe")
    return ""


def find_sshd() -> str:
    """Return the path of the server. Raises MissingError if it is not installed."""
    found = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATHS}")
    if found is None or shutil.which("ssh-keygen") is None:
        raise MissingError("sshd is not installed (Debian: apt install openssh-server)")
    return found


@contextlib.contextmanager
def serving(
    folder: Path,
    environment: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
    more: str = "",
) -> Iterator[Sshd]:
    """Start a server whose sessions have more variables of the environment.

    `prefix` is a command that executes the server, such as unshare.
    """
    program = find_sshd()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sshd = prepare(folder, port, f"[127.0.0.1]:{port}", environment, more)
    if os.geteuid() == 0:
        PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    with open(folder / "sshd.log", "wb") as log:
        server = subprocess.Popen(
            [*prefix, program, "-D", "-e", "-f", str(folder / "sshd_config")],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        wait_listening(port, server, folder / "sshd.log")
        sshd.pid = server.pid
        yield sshd
    finally:
        server.terminate()
        server.wait()


def prepare(
    folder: Path,
    port: int,
    alias: str,
    environment: Mapping[str, str] | None = None,
    more: str = "",
) -> Sshd:
    """Write the keys and configurations of a server, which has this alias in `known_hosts`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("host_key", "user_key"):
        make_key(folder / name)
    host_key = (folder / "host_key.pub").read_text()
    (folder / "known_hosts").write_text(f"{alias} {host_key}")
    variables = {"WATTWIRE_CACHE": str(folder / "cache"), **(environment or {})}
    set_env = "SetEnv " + " ".join(f'"{key}={value}"' for key, value in variables.items())
    words = {
        "alias": ALIAS, "folder": folder, "more": f"{set_env}\n{more}",
        "user": pwd.getpwuid(os.geteuid()).pw_name, "port": port,
    }  # fmt: skip
    server = SERVER if port else SERVER.replace("Port {port}\n", "")
    (folder / "sshd_config").write_text(server.format(**words))
    (folder / "ssh_config").write_text(CLIENT.format(**words))
    return Sshd(folder, port)


def make_key(path: Path) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)],
        stdin=subprocess.DEVNULL, check=True,
    )  # fmt: skip


def wait_listening(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline_s = time.monotonic() + START_S
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        if server.poll() is not None or time.monotonic() > deadline_s:
            raise MissingError(f"sshd did not start: {log.read_text()}")
        time.sleep(0.02)
