"""Uninvited nodes: nodes of the same cell that try to take part in a run without its credentials.

Each of them is a copy of a node of the run, on the same host, with the same token, and so with the
same topic or service.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wattwire.hosts.host import Host
from wattwire.model.deployment import NODE, Deployment, Process
from wattwire.model.setting_purposes import SECURED, SECURITY, UNSECURED
from wattwire.rig.agent import AgentError
from wattwire.rig.builds import CellBuild
from wattwire.run.credentials import KEYS
from wattwire.run.node_specs import RunNode, check_spec
from wattwire.run.proof import WAIT_S
from wattwire.run.run_processes import BrokenContractError, RunProcesses

OPEN, ANONYMOUS, STRANGER = "open", "anonymous", "stranger"
KINDS = {
    OPEN: "has security off",
    ANONYMOUS: "shows no certificate",
    STRANGER: "shows a certificate of another authority",
}
"""Kinds of uninvited nodes, with what each of them does. Only OPEN exists in an open treatment."""
TRY_MS = 600_000
"""Their time until READY, so that they try until the run ends them."""
RETRY_S = 0.5
"""Pause before nodes that were refused try again."""
END_S = 5.0
REFUSED_BY_MIDDLEWARE = 4
"""Exit code of a node whose middleware failed, as it does without access (C-04)."""


@dataclass(frozen=True)
class Uninvited:
    """An uninvited node with its spec, and its host: that of the `original`."""

    kind: str
    node: RunNode
    host: str
    original: str

    @property
    def process(self) -> str:
        """Return the name of its process."""
        return self.node.process


def uninvited_copies(
    nodes: Sequence[RunNode], deployment: Deployment, is_secured: bool
) -> list[Uninvited]:
    """Return an uninvited sender and receiver of each kind, copies of those of the first flow."""
    flow = deployment.flows[0]
    by_number = {node.node: node for node in nodes}
    number = max(by_number)
    copies = []
    for kind in KINDS if is_secured else (OPEN,):
        for original in (by_number[flow.receivers[0]], by_number[flow.sender]):
            number += 1
            process = f"uninvited-{kind}-{original.role}"
            spec = {**original.spec, **_changes(original, kind, number)}
            node = replace(original, node=number, process=process, spec=spec)
            host = deployment.host_of(original)
            copies.append(Uninvited(kind, node, host, original.process))
    return copies


def _changes(original: RunNode, kind: str, number: int) -> dict[str, Any]:
    setting = original.program.middleware.setting_with(SECURITY)
    changes = {
        "node": number,
        "ready_timeout_ms": TRY_MS,
        # One peer is enough for READY, because a hole may be open to one of them only.
        "peers.count": min(1, original.spec["peers.count"]),
        f"settings.{setting}": UNSECURED if kind == OPEN else SECURED,
    }
    if original.sends:  # its own messages must not be taken for those of the run on the link
        changes["payload.seed"] = original.spec["payload.seed"] ^ 1
    return changes


class UninvitedNodes:
    """The uninvited nodes of a run. `end` ends them."""

    def __init__(
        self,
        uninvited: Sequence[Uninvited],
        hosts: Mapping[str, Host],
        deployment: Deployment,
        token: str,
        folder: Path,
    ) -> None:
        self.uninvited = uninvited
        self._processes = RunProcesses(
            hosts,
            Deployment(
                tuple(Process(each.process, NODE, each.host) for each in uninvited),
                hosts=deployment.hosts,
            ),
            token,
            folder,
        )
        self._breaches: dict[str, str] = {}
        self._tries = dict.fromkeys(self._names, 0)

    def host_of(self, process: str) -> Host:
        """Return the host of an uninvited node."""
        return self._processes.host_of(process)

    def start(
        self,
        builds: Mapping[str, CellBuild],
        endpoints: Mapping[str, list[str]],
        credentials: Mapping[str, Mapping[str, str]],
    ) -> None:
        """Start them, and wait until each is READY, at most WAIT_S. Those that end start again.

        `endpoints` and `credentials` belong to processes; credentials are spec key → path.
        """
        commands = {}
        for each in self.uninvited:
            host, out = self.host_of(each.process), self._processes.out_of(each.process)
            build = builds[each.node.program.known_as]
            content = {
                **each.node.spec,
                "peers.endpoints": endpoints[each.process],
                **dict.fromkeys(KEYS, ""),
                **credentials.get(each.process, {}),
            }
            check_spec(content)
            host.make_folder(out)
            spec = out / "spec.json"
            host.write(spec, json.dumps(content, indent=1).encode())
            argv = [*build.argv, "--spec", str(spec), "--out", str(out)]
            commands[each.process] = argv, build.env
        deadline_s, waiting = time.monotonic() + WAIT_S, self._names
        while waiting:
            for name in waiting:
                self._processes.spawn(name, *commands[name])
                self._tries[name] += 1
            self._wait("READY", waiting, deadline_s)
            time.sleep(max(0.0, min(RETRY_S, deadline_s - time.monotonic())))
            waiting = self._refused() if time.monotonic() < deadline_s else []

    def _refused(self) -> list[str]:
        """Return the nodes that have ended before READY, without those that broke the contract."""
        states, ready = self._processes.states, self._with_line("READY")
        ended = [name for name in self._names if states[name].exit is not None]
        return [name for name in ended if name not in ready and name not in self._breaches]

    def go(self, starts_ns: Mapping[str, int]) -> None:
        """Send GO to those that are READY; `starts_ns` maps each host to its start."""
        ready = self._with_line("READY")
        texts = {name: f"GO {starts_ns[self.host_of(name).name]}" for name in ready}
        self._processes.write_all(texts)

    def stop(self, linger_s: float) -> None:
        """Send STOP to those that are READY, and wait until they are DONE."""
        self._processes.drain()
        ready = self._with_line("READY")
        self._processes.write_all(dict.fromkeys(ready, "STOP"))
        self._wait("DONE", ready, time.monotonic() + linger_s + END_S)

    def end(self) -> None:
        """Kill those that are left, and no other process of the run."""
        self._processes.ending = True
        with contextlib.suppress(AgentError):
            self._processes.kill_alive()
        self._processes.unsubscribe()

    def to_json(self) -> list[dict[str, Any]]:
        """Return an entry for each node: its kind, how far it came, and what it received.

        A node that broke the contract or crashed before READY never tried, so it proves nothing:
        what it received is None.
        """
        return [self._entry(each) for each in self.uninvited]

    @property
    def _names(self) -> list[str]:
        return [each.process for each in self.uninvited]

    def _with_line(self, keyword: str) -> list[str]:
        states = self._processes.states
        return [n for n in self._names if n in states and keyword in states[n].lines]

    def _wait(self, keyword: str, names: Iterable[str], deadline_s: float) -> None:
        """Wait until the nodes have printed a line or ended. A breach of the contract is an end."""
        while True:
            try:
                self._processes.wait_for(keyword, list(names), deadline_s, strict=False)
            except BrokenContractError as error:
                self._breaches[error.process] = error.problem
            else:
                return

    def _entry(self, each: Uninvited) -> dict[str, Any]:
        state = self._processes.states.get(each.process)
        lines = state.lines if state else {}
        is_ready, done, breach = "READY" in lines, lines.get("DONE"), each.process in self._breaches
        exit_code = state.exit.get("code") if state and state.exit else None
        has_crashed = bool(state and state.exit) and exit_code != REFUSED_BY_MIDDLEWARE
        tried = is_ready or (state is not None and not breach and not has_crashed)
        end = "was refused until the end of the run"
        if breach:
            end = self._breaches[each.process]
        elif is_ready:
            end = "was READY"
        elif state is None or state.exit is not None:
            end = self._processes.describe_exit(each.process) if state else "was not started"
        # A node that tried and was never READY has subscribed to nothing.
        received = int(done.get("received") or 0) if done else None if is_ready or not tried else 0
        return {
            "process": each.process,
            "kind": each.kind,
            "role": each.node.role,
            "host": each.host,
            "tries": self._tries[each.process],
            "tried": tried,
            "ready": is_ready,
            "end": end,
            "received": received,
            "sent": int(lines.get("SENT", {}).get("sent") or 0),
        }
