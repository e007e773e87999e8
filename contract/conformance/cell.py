"""Define the cell under test, the clauses of the contract, and the results of the suite."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from .host import HERE, Place

CLAUSES = {
    "C-01": "the command line of a node has only --spec and --out",
    "C-02": "a bad spec key ends the node with 2, and the error names the key",
    "C-03": "a spec beyond the cell's declaration ends the node with 3",
    "C-04": "a middleware failure ends the node with 4",
    "C-05": "descriptor 3 carries only the contract's lines",
    "C-06": "LISTENING is printed by the roles that accept connections, and by no other role",
    "C-07": "READY reports the matched peers and the values in force",
    "C-08": "a node accepts a start 50 ms ahead and rejects a start in the past with 2",
    "C-09": "end of input and SIGTERM end the node, even if it is blocked",
    "C-10": "the open loop keeps its schedule and the intended times",
    "C-11": "the closed loop makes its calls back to back",
    "C-12": "calls end at their timeout, and the number of open calls is bounded",
    "C-13": "exactly the records of the warm-up are flagged",
    "C-14": "SENT reports the result of the schedule",
    "C-15": "STOP ends senders, and receivers drain until quiet or linger",
    "C-16": "DONE's counts match the files, and the node exits with 0",
    "C-17": "sequences consist of node and counter, and probes are not recorded",
    "C-18": "messages of two runs never mix, and foreign messages are counted",
    "C-19": "payloads of every size arrive unchanged (bytes)",
    "C-20": "payloads of every size arrive unchanged (text)",
    "C-21": "corrupt payloads are counted and flagged, foreign payloads are not recorded",
    "C-22": "a literal payload carries no sequence and is counted",
    "C-23": "replies are echo, ack or literal, and clients check them",
    "C-24": "sample files have the contract's header",
    "C-25": "records have the contract's fields",
    "C-26": "records that do not fit are counted as overflow",
    "C-27": "times are read from the host's monotonic clock as the table defines",
    "C-28": "pingpong is a service with one client and the reply echo",
    "C-29": "every subscriber receives every message once",
    "C-30": "an action answers with its feedback and its result",
    "C-32": "records of every size arrive unchanged, and receivers check them",
    "C-33": "calls of an async client overlap, and each reply goes to its own call",
    "C-34": "an unrecorded server declares itself, and its clients provide the counts",
    "C-35": "over TLS a client trusts only the run's authority",
    "C-36": "a call that ends with an error is failed, not received or corrupt",
    "C-37": "a relay sends every message of its run once, unchanged and in order, and records it",
    "C-39": "point clouds of every size arrive unchanged, and a part of a point is refused with 3",
    "C-40": "an encrypting reply has the request's blocks in AES-128, and clients check it",
    "C-41": "a member's parts send and receive as nodes of their own, and bad parts are refused",
    "C-42": "the lines of a member have an entry for each part, and each part has a sample file",
    "C-43": "a secured node accepts only peers with a certificate of the run's authority",
    "C-44": "velocity commands arrive unchanged, and payloads that do not fit are refused with 3",
    "C-38": "a node listens only on the address of its host, and rejects a bad address with 2",
}


def _no_service() -> AbstractContextManager[list[str]]:
    return contextlib.nullcontext([])


class Wire(Protocol):
    """A peer on a middleware's wire that uses no kit: `middleware/MW/wire.py`.

    `Wire(token)` may listen; `endpoint` is its entry in a node's peers.endpoints. The kinds are 0
    (message), 1 (request) and 2 (reply). `receive` returns the `sender`, to which the reply must be
    sent.
    """

    endpoint: str

    def send(self, kind: int, number: int, data: bytes, endpoint: str) -> None:
        """Send one message, request or reply. Raise OSError if no listener is at `endpoint`."""

    def receive(self, timeout_s: float) -> tuple[int, int, bytes, str] | None:
        """Return the next (kind, number, data, sender), or None at the timeout."""

    def close(self) -> None:
        """Release all resources."""


def wire_of(folder: Path) -> Callable[[str], Wire] | None:
    """Return the class Wire of a middleware's `wire.py`, or None if there is no such file."""
    path = folder / "wire.py"
    if not path.is_file():
        return None
    module = types.ModuleType(f"wire of {folder.name}")
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    return module.Wire


EXPIRED, OTHER_AUTHORITY, OTHER_ADDRESS = "expired", "of another authority", "of another address"
"""Faults of a certificate. A node with one trusts the peers of the run all the same."""


@dataclass(frozen=True)
class Security:
    """How a cell is secured (C-43).

    - `setting` is its setting with the role `security`, and `absent` the reason why it has no
      effect on this host, or "".
    - `issuer` returns a new authority: a function that writes credentials with a fault, or with ""
      for none, to a new folder, and returns the spec keys with their paths.
    - `service` runs the middleware's service processes with credentials (spec key → path), and
      yields their endpoints.
    - `checks_addresses` states whether nodes check the address of a peer's certificate.
    """

    setting: str
    issuer: Callable[[], Callable[[Path, str], dict[str, str]]]
    service: Callable[[Mapping[str, str]], AbstractContextManager[list[str]]]
    absent: str = ""
    checks_addresses: bool = True


@dataclass(frozen=True)
class CellUnderTest:
    """A built cell: the command of its nodes and the declarations of its manifests.

    - `argv`: the command before `--spec`; `env`: additions to the caller's environment.
    - `listens`: per pattern the role that prints LISTENING, or "none".
    - `settings`: the middleware's settings without their prefix, at the values of the test;
      `allowed`: all supported values of a setting, if the manifests list them; `excluded`: values
      that this cell does not support, by setting.
    - `wire_name`: the cell's wire if the middleware has several; only cells with the same name
      can communicate. `wire`: returns a peer without a kit for a run's token; None if the
      middleware's folder has none.
    - `error_replies`: whether the server answers rejected requests with an error (C-36).
    - `tls_setting`: the setting that enables TLS, or "".
    - `security`: how the cell is secured; None if the middleware has no such setting.
    - `message_setting`: the setting that selects the type of messages (C-44), or "";
      `velocity_absent`: the reason why it has no velocity commands on this host, or "".
    - `prompt`: spec keys that keep calls from waiting for an acknowledgement (RFC 896), for
      scenarios that need a steady pace.
    - `only`: the levels of settings that support only some specs, each with the supported values
      (setting → level → spec key → values).
    - `service`: returns a context manager that runs the middleware's service processes and yields
      their endpoints.
    - `places`: the hosts on which the nodes of a scenario run, in turn. Single nodes and service
      processes run on the first.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    patterns: Sequence[str] = ()
    capabilities: Sequence[str] = ()
    listens: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    payload_bytes_max: int | None = None
    record_bytes_max: int | None = None
    payload_bytes_min: int = 0
    wire_name: str = ""
    error_replies: bool = False
    tls_setting: str = ""
    security: Security | None = None
    message_setting: str = ""
    velocity_absent: str = ""
    prompt: Mapping[str, Any] = field(default_factory=dict)
    allowed: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    excluded: Mapping[str, Any] = field(default_factory=dict)
    only: Mapping[str, Mapping[str, Mapping[str, Sequence[Any]]]] = field(default_factory=dict)
    wire: Callable[[str], Wire] | None = None
    service: Callable[[], AbstractContextManager[list[str]]] = _no_service
    places: Sequence[Place] = (HERE,)

    @property
    def middleware(self) -> str:
        return self.name.partition("/")[0]

    @property
    def folder(self) -> str:
        """Return the name of the cell's folder, which is usually its language."""
        return self.name.partition("/")[2]

    def bytes_max(self, encoding: str) -> int | None:
        """Return the longest payload of the cell in an encoding, in bytes; None without a limit."""
        if encoding == "record" and self.record_bytes_max is not None:
            return self.record_bytes_max
        return self.payload_bytes_max

    def bytes_min(self, encoding: str) -> int:
        """Return the shortest payload of the cell in an encoding, in bytes.

        A text has two characters per byte (C-20).
        """
        return {"bytes": 1, "text": 2}.get(encoding, 0) * self.payload_bytes_min

    def listening_role(self, pattern: str) -> str:
        return self.listens.get(pattern, "none")


@dataclass(frozen=True)
class Problem:
    """One breach of a clause; the text names the place, the value and the allowed values."""

    clause: str
    text: str

    def __str__(self) -> str:
        return f"{self.clause}: {self.text}"


@dataclass(frozen=True)
class ClauseResult:
    """The result of one clause: `status` is passed, failed or skipped; `detail` gives the reason.

    `clause` is the number of a clause, or `pair` for a pair of languages. For a pair, `name` is
    `pair[middleware: sender -> receiver]`, and `detail` names the broken clauses.
    """

    clause: str
    name: str
    status: str
    detail: str = ""
    problems: tuple[Problem, ...] = ()


class Broken(Exception):
    """A breach of a clause after which a scenario cannot continue."""

    def __init__(self, clause: str, text: str) -> None:
        super().__init__(f"{clause}: {text}")
        self.problem = Problem(clause, text)


class Skipped(Exception):
    """The reason why a scenario does not apply to this cell."""
