"""Reach a host over ssh: copy the agent there by its content hash, and start it.

The program ssh of OpenSSH makes the connection, so the user's configuration, keys, agents and jump
hosts apply. Its process lives as long as the agent, and its pipes carry the agent protocol. A shell
of the host executes `_SCRIPT`, which starts the agent of the host's cache, or receives one.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import ipaddress
import os
import platform
import secrets
import shutil
import threading
import time
from collections.abc import Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from wattwire.catalog.home import home
from wattwire.hosts.agent_sources import packed_sources, source_hash
from wattwire.hosts.host import Host
from wattwire.model.errors import MissingError, WattwireError
from wattwire.model.rig import SHARED, HostSpec
from wattwire.rig.agent import AgentClient, find_agent
from wattwire.rig.agent_pipe import AgentPipe, LineTooLongError

CONNECT_TIMEOUT_S = 15
START_TIMEOUT_S = 60.0
"""Time until the host's shell answers, with the authentication."""
BUILD_TIMEOUT_S = 1800.0
PATIENCE_S = 30.0
"""Silence after which an agent ends. ssh notices a dead connection within 20 s (see OPTIONS)."""
KEPT_DAYS = 30
"""Age at which an earlier agent is removed from a host, when another one is copied there."""
PIECE_BYTES = 64 << 10
POLL_S = 0.2
CANCEL_TIMEOUT_S = 30.0
"""Time until cancelled connections have ended."""
LAST_LINES = 4
NOISE_LINES_MAX = 200
LOGIN_LINE_BYTES_MAX = 64 << 10
LOGIN_BYTES_MAX = 16 << 20
"""Bytes of a line, and of all lines, that a host may write before its agent serves."""
OPTIONS = {
    "BatchMode": "yes",  # asks nothing, because no user would answer
    "StrictHostKeyChecking": "yes",
    "ConnectTimeout": CONNECT_TIMEOUT_S,
    "ControlMaster": "no",  # the connection ends with its process
    "ControlPath": "none",
    "ServerAliveInterval": 5,
    "ServerAliveCountMax": 3,
    "ClearAllForwardings": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "RemoteCommand": "none",
    "LogLevel": "INFO",
}
COMMAND = "exec sh -c 'IFS= read -r line && eval \"$line\"'"
"""What the login shell of any kind executes: a POSIX shell, which reads `_SCRIPT` as one line."""
_SCRIPT = r"""
set -f;
mark="MARK"; name="NAME";
say() { printf "%s %s\n" "$mark" "$*"; };
fail() { say failed "$@"; rm -rf "$part"; exit 1; };
lacking() { lack=""; for p in "$@"; do
    command -v "$p" >/dev/null 2>&1 || lack="$lack $p"; done; [ -n "$lack" ]; };
receive() {
    if lacking mkdir head gzip sha256sum chmod mv rm; then fail lacks $lack; fi;
    find "$cache/agents" -mindepth 1 -maxdepth 1 -mtime +DAYS -exec rm -rf {} + 2>/dev/null;
    why=$(mkdir -p "$folder" 2>&1) || fail write $why;
    why=$({ head -c "$1" | gzip -dc > "$part"; } 2>&1) || fail write $why;
    set -- $(sha256sum < "$part");
    [ "$1" = "$name" ] || fail damaged $1;
    why=$(chmod 755 "$part" 2>&1 && mv -f "$part" "$agent" 2>&1) || fail write $why;
};
build() {
    PATH="$PATH:$HOME/.cargo/bin";
    if lacking cargo cc mkdir head tar gzip mv rm; then fail lacks $lack; fi;
    why=$(mkdir -p "$part" 2>&1) || fail write $why;
    why=$({ head -c "$1" | tar -xzf - -C "$part"; } 2>&1) || fail write $why;
    export WATTWIRE_PATH="$part/more" CARGO_TARGET_DIR="$part/target";
    cd "$part" && cargo build --release --locked -p wattwire-agent </dev/null >&2 || fail build;
    cd "$cache" && mv -f "$part/target/release/wattwire-agent" "$agent" && rm -rf "$part";
};
cache="${WATTWIRE_CACHE:-${XDG_CACHE_HOME:+$XDG_CACHE_HOME/wattwire}}";
cache="${cache:-${HOME:+$HOME/.cache/wattwire}}";
say machine $(uname -sm 2>&1);
say address $SSH_CONNECTION;
say cache "$cache";
if [ -e "$cache" ] && { [ ! -O "$cache" ] ||
    [ -n "$(find -H "$cache" -prune -perm -002 2>/dev/null)" ]; }; then say other; exit 1; fi;
if [ -z "$cache" ]; then say none; exit 1; fi;
trap "exit 1" HUP INT TERM;
trap 'if [ -n "$part" ]; then rm -rf "$part"; fi' EXIT;
while :; do
    folder="$cache/agents/$name"; agent="$folder/wattwire-agent"; part="$folder/$mark"; why="";
    if [ -e "$agent" ] && why=$("$agent" version 2>&1 </dev/null); then
        say serve; trap - HUP INT TERM EXIT; exec "$agent" serve; fi;
    say wanted $why;
    IFS=" " read -r word rest || exit 1;
    case "$word" in
        use) name="$rest";;
        put) receive "$rest";;
        build) ( build "$rest" ) || exit 1;;
        *) exit 1;;
    esac;
done
"""
_REMEDIES = {
    "Could not resolve hostname": "Check hosts.{name}.to, or HostName in the configuration of ssh.",
    "REMOTE HOST IDENTIFICATION HAS CHANGED": "The host has another key than known_hosts. If it "
    "was installed again, remove its old key (ssh-keygen -R HOST) and connect once by hand; "
    "otherwise, another machine answers.",
    "Host key verification failed": "Connect once by hand (ssh {to}), compare the fingerprint, and "
    "accept the key.",
    "Permission denied": "Allowed: a key without a passphrase, because no user can enter one. Copy "
    "a key to the host (ssh-copy-id {to}), or load it into the agent of ssh (ssh-add).",
    "Connection refused": "Start the ssh server of the host, or set its Port in the configuration "
    "of ssh.",
    "timed out": "Check that the host is on, and that no firewall drops the packets to its port.",
    "No route to host": "Check the address, and that the host is on.",
    "Network is unreachable": "Check the address and the routes of this machine.",
    "not responding": "Check the connection to the host.",
}
"""Text in the messages of ssh → what to do."""


def connect(spec: HostSpec, config: str, state: Path, cancelled: threading.Event) -> Host:
    """Return a host of kind ssh with its agent. `state` is the folder of its log, here.

    `config` is the configuration file of ssh, or "" for the user's own. Raises MissingError if the
    host cannot be reached or used, and WattwireError if it is `cancelled` before it is ready.
    """
    binary = portable_agent()
    start = Start(spec, binary, cancelled)
    agent = AgentClient(
        state, binary, ssh_command(spec, config), spec.name, start, patience_s=PATIENCE_S
    )
    if start.is_copy and agent.hello["build"] != start.name:
        agent.close()
        raise MissingError(
            f"host {spec.name}: {start.file}: found another agent than the one that was copied "
            f"there: sha256 {agent.hello['build']}; expected {start.name}. Remove the file."
        )
    return Host(spec, agent, clock_address=start.address, connection=start.connection)


def connect_all(specs: Collection[HostSpec], config: str, state: Path) -> dict[str, Host]:
    """Return hosts by name, which connect at the same time.

    If one cannot, none stays connected, and the error contains the message of each that cannot.
    """
    if not specs:
        return {}
    cancelled = threading.Event()
    with ThreadPoolExecutor(len(specs)) as threads:
        futures = {
            spec.name: threads.submit(connect, spec, config, state / spec.name, cancelled)
            for spec in specs
        }
        try:
            while wait(futures.values(), POLL_S).not_done:
                pass
        except BaseException:
            cancelled.set()
            wait(futures.values(), CANCEL_TIMEOUT_S)
            _close(futures.values())
            raise
    errors = [error for future in futures.values() if (error := future.exception())]
    if not errors:
        return {name: future.result(0) for name, future in futures.items()}
    _close(futures.values())
    if len(errors) == 1 or not all(isinstance(error, WattwireError) for error in errors):
        raise errors[0]
    raise MissingError("\n".join(str(error) for error in errors))


def _close(futures: Iterable[Future[Host]]) -> None:
    for future in futures:
        if future.done() and future.exception(0) is None:
            future.result(0).agent.close()


def portable_agent() -> Path:
    """Return the statically linked agent if `make agent` has built it, else the usual one.

    A static agent needs no C library on its host. It must not be older than the usual one.
    """
    binary = find_agent()
    target = home() / "target"
    static = target / f"{platform.machine()}-unknown-linux-musl" / "release" / binary.name
    if binary != target / "release" / binary.name or not os.access(static, os.X_OK):
        return binary
    return static if static.stat().st_mtime >= binary.stat().st_mtime else binary


def ssh_command(spec: HostSpec, config: str) -> list[str]:
    """Return the command that executes a shell on a host. Raises MissingError without ssh."""
    program = shutil.which("ssh")
    if program is None:
        raise MissingError(
            f"host {spec.name}: hosts of kind ssh need the program ssh, which is not in PATH; "
            "install it (Debian: apt install openssh-client)"
        )
    values: dict[str, object] = dict(OPTIONS)
    if spec.management == SHARED:  # ssh asks for signs of life in the window, too
        values["ServerAliveInterval"] = 0
    options = [word for key, value in values.items() for word in ("-o", f"{key}={value}")]
    file = ["-F", config] if config else []
    return [program, "-T", *options, *file, spec.to, COMMAND]


class Start:
    """The dialogue that ends with an agent behind the pipe of ssh."""

    def __init__(self, spec: HostSpec, binary: Path, cancelled: threading.Event) -> None:
        self._spec = spec
        self._binary = binary
        self._cancelled = cancelled
        self._mark = f"wattwire-{secrets.token_hex(8)}"
        self._noise: list[str] = []
        self._left_bytes = LOGIN_BYTES_MAX
        self._facts: dict[str, str] = {}
        self.name = _hash_of(binary)
        """Folder of the agent below `<cache>/agents`: the content hash of a copied binary."""

    @property
    def is_copy(self) -> bool:
        """Return whether the agent is a copy of this machine's, rather than built on the host."""
        return self.name == _hash_of(self._binary)

    @property
    def file(self) -> str:
        """Return the path of the agent on its host."""
        return f"{self._facts['cache']}/agents/{self.name}/wattwire-agent"

    @property
    def address(self) -> str:
        """Return the host's address to which ssh connected, as the host sees it, or ""."""
        return self.connection[2] if self.connection else ""

    @property
    def connection(self) -> tuple[str, ...]:
        """Return the addresses and ports of the host's SSH_CONNECTION, or ()."""
        words = self._facts.get("address", "").split()
        try:
            peer, peer_port, own, own_port = words
            peer, own = (str(ipaddress.ip_address(address)) for address in (peer, own))
            return (peer, str(int(peer_port)), own, str(int(own_port)))
        except ValueError:
            return ()

    def __call__(self, pipe: AgentPipe) -> str:
        """Make the shell behind the pipe an agent; return the agent's folder on the host."""
        self._pipe = pipe
        script = " ".join(line.strip() for line in _SCRIPT.strip().splitlines())
        words = {"MARK": self._mark, "NAME": self.name, "DAYS": str(KEPT_DAYS)}
        for word, value in words.items():
            script = script.replace(word, value, 1)
        self._send(script.encode() + b"\n")
        word, why = self._answer(START_TIMEOUT_S)
        if missing := {"machine", "cache"} - self._facts.keys():
            raise self._error(f"its shell stated no {' and no '.join(sorted(missing))}")
        if not self._facts["cache"].startswith("/"):
            raise self._error(
                f"found the cache folder {self._facts['cache']!r}; allowed: an absolute path. Set "
                "WATTWIRE_CACHE or HOME on the host."
            )
        if word == "other":
            raise self._error(
                f"{self._facts['cache']}: another user of the host can write to the cache folder, "
                "and could put an agent into it. Set WATTWIRE_CACHE on the host to another folder."
            )
        if word != "serve":
            self._bring(why)
        return f"{self._facts['cache']}/agents"

    def _bring(self, why: str) -> None:
        """Copy this machine's agent to the host, or build one there."""
        here = f"{platform.system()} {platform.machine()}"
        if self._facts["machine"] == here and not why:
            data = _compressed(self._binary)
            word, why = self._request(b"put", data)
            if word == "serve":
                return
        reason = f"{here} does not run there ({why})" if why else f"this machine is {here}"
        self.name = source_hash(self._facts["machine"])
        self._send(f"use {self.name}\n".encode())
        if self._answer(START_TIMEOUT_S)[0] == "serve":
            return
        sources = packed_sources()
        if sources is None:
            raise self._error(
                f"found {self._facts['machine']}, but {reason}, and this installation has no "
                "sources of the agent to build it on the host. Use wattwire from a clone, or a "
                "host with this machine's architecture and C library."
            )
        word, why = self._request(b"build", sources, BUILD_TIMEOUT_S, reason)
        if word != "serve":
            raise self._error(f"the agent that was built there does not run: {why}")

    # -- the dialogue ------------------------------------------------------------------------

    def _request(
        self, word: bytes, data: bytes, timeout_s: float = START_TIMEOUT_S, reason: str = ""
    ) -> tuple[str, str]:
        """Send data and return the answer. Raises MissingError if the host refuses them."""
        self._send(b"%s %d\n" % (word, len(data)))
        for begin in range(0, len(data), PIECE_BYTES):
            self._send(data[begin : begin + PIECE_BYTES])
        answer, text = self._answer(timeout_s)
        if answer == "failed":
            raise self._failed(text, reason)
        return answer, text

    def _failed(self, text: str, reason: str) -> WattwireError:
        step, _, rest = text.partition(" ")
        folder = f"{self._facts['cache']}/agents"
        why = f"It has to be built there, because {reason}. " if reason else ""
        if step == "lacks":
            return self._error(
                f"{why}The agent cannot be brought there without the programs "
                f"{', '.join(rest.split())}, which are not in the PATH of the host. Install them."
            )
        if step == "build":
            return self._error(
                f"{why}cargo could not build the agent there: {self._messages()}. Build it there "
                "by hand, with `make agent` in a clone, to see the reason."
            )
        if step == "damaged":
            return self._error(f"{folder}: the copy of the agent is damaged: sha256 {rest}")
        return self._error(
            f"{folder}: the agent could not be written: {rest}. Free disk space, or set "
            "WATTWIRE_CACHE on the host to another folder."
        )

    def _send(self, data: bytes) -> None:
        """Send data. If the other side has ended, its answer contains the reason."""
        if self._cancelled.is_set():
            raise self._error("cancelled")
        try:
            self._pipe.write(data)
        except OSError:
            return

    def _answer(self, timeout_s: float) -> tuple[str, str]:
        """Return the next word of the script with its text, and note the facts before it."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            line = self._next_line(deadline_s, timeout_s)
            self._left_bytes -= len(line)
            if self._left_bytes < 0:
                text = f"more than {LOGIN_BYTES_MAX:,} bytes of output at login"
                raise self._error(f"ssh {self._spec.to}: {text}")
            before, mark, text = line.partition(self._mark + " ")
            if not mark:  # output of the login shell
                self._noise = [*self._noise, before][-NOISE_LINES_MAX:]
                continue
            word, _, rest = text.partition(" ")
            if word in ("machine", "address", "cache"):
                self._facts[word] = rest
                continue
            return word, rest

    def _next_line(self, deadline_s: float, timeout_s: float) -> str:
        while True:
            if self._cancelled.is_set():
                raise self._error("cancelled")
            if time.monotonic() > deadline_s:  # also while the host writes something else
                raise self._error(
                    f"ssh {self._spec.to}: no answer within {timeout_s:g} s"
                    f"{self._heard()}. Check that `ssh {self._spec.to} true` ends without asking."
                )
            try:
                line = self._pipe.read_line(POLL_S, LOGIN_LINE_BYTES_MAX)
            except TimeoutError:
                continue
            except LineTooLongError as error:
                raise self._error(f"ssh {self._spec.to}: found {error}") from None
            if not line:
                raise self._ended()
            return line.decode(errors="replace").rstrip("\r\n")

    # -- messages ----------------------------------------------------------------------------

    def _error(self, text: str) -> WattwireError:
        return MissingError(f"host {self._spec.name}: {text}")

    def _messages(self) -> str:
        """Return the last messages of ssh and of the host's programs."""
        lines = [line for line in self._pipe.messages() if line.strip("@ ")]
        return "; ".join(lines[-LAST_LINES:])

    def _heard(self) -> str:
        """Return what ssh and the login shell said, as a part of a sentence."""
        said = "; ".join(line for line in (*self._noise[-2:], self._messages()) if line.strip())
        return f": {said}" if said else ""

    def _ended(self) -> WattwireError:
        """Return the error for a connection that ended before the agent served."""
        to, code = self._spec.to, self._pipe.wait(POLL_S)
        text = "\n".join(self._pipe.messages())
        for message, remedy in _REMEDIES.items():
            if message in text:
                advice = remedy.format(name=self._spec.name, to=to)
                return self._error(f"ssh {to}: {self._messages()}. {advice}")
        if self._facts or code == 255:
            return self._error(f"ssh {to}: the connection ended (code {code}){self._heard()}")
        return self._error(
            f"ssh {to}: found no POSIX shell: the command of wattwire ended with code {code}"
            f"{self._heard()}. Allowed: an account that may execute `sh` over ssh."
        )


@functools.lru_cache
def _hash_of(binary: Path) -> str:
    return hashlib.sha256(binary.read_bytes()).hexdigest()


_COMPRESSING = threading.Lock()
_compressed_by_path: dict[Path, bytes] = {}


def _compressed(binary: Path) -> bytes:
    """Return a binary as a gzip stream, compressed once for all hosts."""
    with _COMPRESSING:
        if binary not in _compressed_by_path:
            _compressed_by_path[binary] = gzip.compress(binary.read_bytes(), 6, mtime=0)
        return _compressed_by_path[binary]
