"""Represent a host of a run: its files, programs and sockets, all through its agent."""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from wattwire.hosts.clocks import PIPE, ClockComparison, Times
from wattwire.model.errors import WattwireError
from wattwire.model.hosts.clocks import ClockRelation
from wattwire.model.rig import SSH, HostSpec
from wattwire.rig.agent import AgentClient

READ_BYTES_MAX = 256 << 20
"""Bytes of a file that is read into memory, such as a log, which has at most 64 MiB."""
FREE_BYTES_MIN = 64 << 20
"""Bytes of the disk that the files of a far host leave free."""
PIECE_BYTES = 8 << 20
"""Bytes of a file in one reply of an agent."""
CONNECT_TIMEOUT_MS = 1000
FETCHES = 8
"""Number of files that are requested at once, so that a round trip is not needed for each."""
REPLY_S = 60.0
"""Time that a request may take in addition to the time that it grants a program."""

Wait = Callable[[], None]
"""Waits for the reply to a request. Raises AgentError or AgentLostError."""
Result = TypeVar("Result")
Piece = Callable[[], tuple[bytes, int]]


@dataclass
class Host:
    """A host with its agent.

    Hosts in namespaces share the files of this machine, but have sockets and a PATH of their own,
    so requests take the same way for all kinds of hosts.
    """

    spec: HostSpec
    agent: AgentClient
    relation: ClockRelation | None = None
    """Relation of its clock to the controller's in the current run; None for one clock."""
    comparison: ClockComparison | None = None
    """The exchanges of the current run, from which the relation is computed."""
    clock_address: str = ""
    """Address at which the controller may reach the host by UDP, for exchanges of clocks; "" for
    none. It is removed when UDP has not reached it.
    """
    connection: tuple[str, ...] = ()
    """Address and port of the client and of the server of ssh, as the host sees them; () for
    none."""

    @property
    def offset_ns(self) -> int:
        """Return its CLOCK_MONOTONIC minus the controller's at the start of the run."""
        return self.relation.knots[0].offset_ns if self.relation and self.relation.knots else 0

    @property
    def band_ns(self) -> int:
        """Return the largest error of `offset_ns`."""
        return self.relation.band_ns if self.relation else 0

    @property
    def round_trip_ns(self) -> int:
        """Return the time of an exchange with the host's agent; 0 if none was needed."""
        return self.relation.round_trip_ns if self.relation else 0

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def here(self) -> bool:
        """Return whether the host's files are files of this machine."""
        return self.spec.kind != SSH

    @property
    def pid(self) -> int:
        """Return the agent's pid, whose namespaces are those of the host (only if `here`)."""
        return self.agent.pid

    def relate_clock(self) -> None:
        """Measure the relation of its clock to the controller's before a run."""
        self.comparison = ClockComparison(self.agent, self.clock_address)
        self.comparison.exchange()
        self.relation = self.comparison.relation(is_complete=False)
        if self.comparison.way == PIPE:
            self.clock_address = ""

    @property
    def clock_exchanges(self) -> list[Times]:
        """Return the exchanges of the current run; none for the controller's clock."""
        return self.comparison.exchanges if self.comparison else []

    def relate_clock_again(self) -> ClockRelation:
        """Return the relation from the exchanges of the whole run, with those after it."""
        assert self.comparison is not None
        self.comparison.exchange()
        self.relation = self.comparison.relation()
        return self.relation

    # -- files -------------------------------------------------------------------------------

    def folder_of(self, folder: Path, token: str) -> Path:
        """Return where the host writes the files of an attempt that ends up in `folder`."""
        if self.here:
            return folder
        # Hosts of one machine may share a cache, but not the files of a run.
        return Path(self.agent.hello["cache"]) / "attempts" / f"{token}-{self.name}"

    def private_folder(self, token: str) -> Path:
        """Return where an attempt's private keys are on the host, never in a campaign's folder.

        The agent removes the folder when it ends, because a killed controller cannot.
        """
        return Path(self.agent.hello["cache"]) / "attempts" / f"{token}-{self.name}-private"

    def forget_private(self, token: str) -> None:
        """Remove the private keys of an attempt."""
        self.agent.request("remove", path=str(self.private_folder(token)))

    def make_folder(self, path: Path) -> None:
        """Create a folder with its parents."""
        self.submit_folder(path)()

    def write(self, path: Path, content: bytes, mode: int = 0o644) -> None:
        """Write a file, which appears complete or not at all."""
        self.submit_file(path, content, mode)()

    def submit_folder(self, path: Path) -> Wait:
        """Request a folder with its parents, before all later requests."""
        return self._submit("folder", path=str(path))

    def submit_file(self, path: Path, content: bytes, mode: int = 0o644) -> Wait:
        """Request that a file is written, before all later requests."""
        encoded = base64.b64encode(content).decode()
        return self._submit("write_file", path=str(path), base64=encoded, mode=mode)

    def _submit(self, operation: str, **arguments: Any) -> Wait:
        future = self.agent.submit(operation, **arguments)

        def wait() -> None:
            self.agent.reply(operation, future)

        return wait

    def read(self, path: Path) -> bytes:
        """Return the content of a file. Raises WattwireError for more than READ_BYTES_MAX bytes."""
        content = bytearray()
        while True:
            piece, size = self._piece(path, len(content))
            content += piece
            if len(content) >= size or not piece:
                return bytes(content)
            if len(content) > READ_BYTES_MAX:
                raise WattwireError(
                    f"host {self.name}: {path}: found more than {len(content):,} bytes; allowed: "
                    f"at most {READ_BYTES_MAX:,}"
                )

    def collect(
        self, far_folder: Path, folder: Path, is_own: Callable[[PurePosixPath], bool]
    ) -> None:
        """Copy the files of an attempt to this machine.

        `is_own` returns whether a file in the folder of the attempt is the host's to write. Raises
        WattwireError if one is damaged, is not, or if they are larger than the disk.
        """
        if self.here:
            return
        folder.mkdir(parents=True, exist_ok=True)
        files = self.agent.request("list", path=str(far_folder))["files"]
        self._check(files, far_folder, folder, is_own)
        for begin in range(0, len(files), FETCHES):
            some = files[begin : begin + FETCHES]
            pieces = [self._submit_piece(far_folder / file["path"], 0) for file in some]
            for file, first_piece in zip(some, pieces, strict=True):
                self._copy(far_folder, folder, file, first_piece)

    def _check(
        self,
        files: Sequence[dict[str, Any]],
        far_folder: Path,
        folder: Path,
        is_own: Callable[[PurePosixPath], bool],
    ) -> None:
        """Raise WattwireError if a listed name or the listed sizes are not allowed."""
        for file in files:
            path = PurePosixPath(file["path"])
            is_below = path.parts and not path.is_absolute() and ".." not in path.parts
            if not is_below or "\0" in str(path) or not is_own(path):
                raise WattwireError(
                    f"host {self.name}: files of the run: found the name {ascii(str(path))}; "
                    f"allowed: names of its own processes below {far_folder}"
                )
        size = sum(max(0, file["size"]) for file in files)
        free = shutil.disk_usage(folder).free - FREE_BYTES_MIN
        if size > free:
            raise WattwireError(
                f"host {self.name}: files of the run: found {size:,} bytes; allowed: at most "
                f"{max(0, free):,}, which are free here with a reserve of {FREE_BYTES_MIN:,}"
            )

    def forget(self, far_folder: Path) -> None:
        """Remove the files of an attempt from a far host."""
        if not self.here:
            self.agent.request("remove", path=str(far_folder))

    def _copy(
        self, far_folder: Path, folder: Path, listed: dict[str, Any], first_piece: Piece
    ) -> None:
        """Copy a file as the agent has listed it, of which the first bytes are requested."""
        relative, size = PurePosixPath(listed["path"]), listed["size"]
        far_file, file = far_folder / relative, folder / relative
        file.parent.mkdir(parents=True, exist_ok=True)
        copied = hashlib.sha256()
        with open(file, "wb") as target:
            piece, _ = first_piece()
            while piece:
                copied.update(piece)
                target.write(piece)
                piece = b"" if target.tell() >= size else self._piece(far_file, target.tell())[0]
        if copied.hexdigest() != listed["sha256"]:
            raise WattwireError(
                f"host {self.name}: {far_file}: {file.stat().st_size} of {size} bytes were copied, "
                "or the file changed while it was copied"
            )

    def _piece(self, path: Path, offset: int) -> tuple[bytes, int]:
        """Return bytes of a file, with the size of the whole file."""
        return self._submit_piece(path, offset)()

    def _submit_piece(self, path: Path, offset: int) -> Piece:
        """Request bytes of a file; return a function that waits for them and the file's size."""
        future = self.agent.submit("fetch", path=str(path), offset=offset, bytes=PIECE_BYTES)

        def wait() -> tuple[bytes, int]:
            reply = self.agent.reply("fetch", future)
            try:
                piece = base64.b64decode(reply["base64"])
            except ValueError:
                piece = b""
            if len(piece) > PIECE_BYTES or hashlib.sha256(piece).hexdigest() != reply["sha256"]:
                raise WattwireError(
                    f"host {self.name}: {path}: bytes from {offset} arrived damaged"
                )
            return piece, int(reply["size"])

        return wait

    def free_disk_bytes(self, path: Path) -> int:
        """Return the space that is free for this user on the file system of `path`."""
        return int(self.agent.request("disk", path=str(path))["free_bytes"])

    # -- programs and sockets ----------------------------------------------------------------

    def which(self, program: str) -> str | None:
        """Return the path of a program on the host, or None."""
        path = self.agent.request("which", names=[program])["paths"].get(program)
        return None if path is None else str(path)

    def command(
        self, argv: Sequence[str], timeout_s: float, env: dict[str, str] | None = None
    ) -> tuple[int, str]:
        """Execute a short program; return its exit code (−N for signal N) and
        its output."""
        reply = self.agent.request(
            "command", timeout_s + REPLY_S, argv=list(argv), env=env or {}, timeout_s=timeout_s
        )
        code = -reply["signal"] if reply["code"] is None else reply["code"]
        return code, reply["output"]

    def serves(self, address: str, port: int) -> bool:
        """Return whether a process of the host's network accepts TCP connections at an address."""
        reply = self.agent.request(
            "connects", address=address, port=port, timeout_ms=CONNECT_TIMEOUT_MS
        )
        return bool(reply["connects"])

    def has_address(self, device: str, address: str) -> bool:
        """Return whether a device of the host is up and has an IPv4 address."""
        entries = self.agent.request("addresses")["interfaces"]
        return any(
            entry["name"] == device
            and entry.get("up", True)
            and address in [known["address"] for known in entry["ipv4"]]
            for entry in entries
        )

    def interface_addresses(self) -> dict[str, str]:
        """Return the first IPv4 address of each interface that has one."""
        interfaces = self.agent.request("addresses")["interfaces"]
        return {entry["name"]: entry["ipv4"][0]["address"] for entry in interfaces if entry["ipv4"]}


def in_parallel(function: Callable[[Host], Result], hosts: Collection[Host]) -> list[Result]:
    """Return the results of a function of each host. They wait for their agents concurrently."""
    if len(hosts) < 2:
        return [function(host) for host in hosts]
    with ThreadPoolExecutor(len(hosts)) as threads:
        return list(threads.map(function, hosts))
