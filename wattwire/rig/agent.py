"""Communicate with an agent process (agent/PROTOCOL.md): requests, replies, events."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattwire.model.errors import AgentLostError, UsageError, WattwireError
from wattwire.rig import cache
from wattwire.rig.agent_pipe import AgentPipe
from wattwire.rig.messages import REPLIES, message_problem, problem_in
from wattwire.rig.programs import find_program

PROTOCOL = 2
REQUEST_TIMEOUT_S = 60.0
LOST = "agent_lost"
HEARTBEATS = 6
"""Number of lines that keep an agent alive, in each period of its patience."""
EVENTS_MAX = 200_000
"""Number of unread events, above which an agent floods its controller."""
LAST_LINES = 2
"""Number of lines of an agent's standard error in the message about its end."""


class AgentError(WattwireError):
    """The agent refused or failed a request; `kind` is the protocol's kind of error."""

    def __init__(self, operation: str, kind: str, message: str, agent: str = "agent") -> None:
        super().__init__(f"{agent}: {operation}: {message}")
        self.kind = kind
        self.reason = message


Bootstrap = Callable[[AgentPipe], str]
"""Make the process behind a pipe an agent, and return the agent's folder on its host. Raises
WattwireError if that is not possible.
"""


def find_agent() -> Path:
    """Return the agent's binary. Raises MissingError if it is not built."""
    return find_program("wattwire-agent", "WATTWIRE_AGENT", "agent")


def described_tree(folder: Path) -> dict[str, Any]:
    """Return `facts` and `meters` of a machine, as in replies, from its files in `folder`/0.

    Raise UsageError if the folder contains no such files.
    """
    if not (folder / "0").is_dir():
        raise UsageError(
            f"{folder}: found no folder 0; allowed: a folder whose subfolder 0 has the proc and "
            "sys of a machine"
        )
    command = [str(find_agent()), "describe", str(folder)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=REQUEST_TIMEOUT_S)
    described: dict[str, Any] = json.loads(done.stdout)
    return described


@dataclass(frozen=True)
class Traffic:
    """Bytes that the controller sent and received."""

    sent_bytes: int
    received_bytes: int

    def since(self, before: Traffic) -> Traffic:
        """Return the bytes since an earlier reading."""
        return Traffic(
            self.sent_bytes - before.sent_bytes, self.received_bytes - before.received_bytes
        )


class AgentClient:
    """A running agent. It is thread-safe, and every wait ends if the agent dies."""

    def __init__(
        self,
        state: Path,
        binary: Path | None = None,
        command: Sequence[str] = (),
        host: str = "",
        bootstrap: Bootstrap | None = None,
        patience_s: float = 0.0,
    ) -> None:
        """Start an agent, with `command` where it is not enough to start the binary.

        The command ends in a process that serves the protocol on the command's standard input and
        output, such as `nsenter … wattwire-agent serve`. `host` is named in messages. `bootstrap`
        makes the command an agent on another machine, and returns the agent's folder there. An
        agent with a patience ends when this controller is silent for so long.
        """
        if bootstrap is None:
            cache.require_own(cache.folder())
        self.binary = binary or find_agent()
        self.name = f"host {host}: agent" if host else "agent"
        self._is_far = bootstrap is not None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._queues: dict[str, queue.Queue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._on_build: Callable[[str], None] | None = None
        self.lost = threading.Event()
        self._patience_s = patience_s
        self._silent_until_s = 0.0
        self._fault = ""
        self.hello: dict[str, Any] = {}
        words = list(command) or [str(self.binary), "serve"]
        self._pipe = AgentPipe(words, state / "agent.log", self._is_far)
        try:
            folder = str(state) if bootstrap is None else bootstrap(self._pipe)
        except BaseException:
            self._pipe.close(0.0)
            raise
        threading.Thread(target=self._read, name="agent-reader", daemon=True).start()
        try:
            self.hello = self.request("hello", protocol=PROTOCOL, state=folder)
            if patience_s:
                self._keep_alive(patience_s)
        except WattwireError:
            self.close()
            raise

    @functools.cached_property
    def cpus(self) -> dict[str, Any]:
        """Return the reply to `cpus`. The CPUs that an agent inherited do not change."""
        return self.request("cpus")

    @property
    def pid(self) -> int:
        """Return the agent's own pid on its host, which need not be that of the command."""
        return int(self.hello["pid"])

    # -- requests ----------------------------------------------------------------------------

    def submit(self, operation: str, **arguments: Any) -> Future[dict[str, Any]]:
        """Send a request without waiting, and return a future of the reply."""
        number = next(self._numbers)
        future: Future[dict[str, Any]] = Future()
        line = json.dumps({"id": number, "op": operation, **arguments}, ensure_ascii=False) + "\n"
        try:
            data = line.encode()
        except UnicodeEncodeError as error:  # a path whose bytes are no text
            text = ascii(line[max(0, error.start - 40) : error.end + 10])
            raise UsageError(
                f"{self.name}: {operation}: found {text}; allowed: paths in UTF-8"
            ) from None
        with self._lock:
            if self.lost.is_set():
                raise AgentLostError(f"{self.name}: {operation}: the agent has ended{self._why()}")
            self._waiting[number] = future
            try:
                self._pipe.write(data)
            except OSError as error:
                raise AgentLostError(
                    f"{self.name}: {operation}: the pipe to the agent broke ({error}){self._why()}"
                ) from error
        return future

    def request(
        self, operation: str, reply_timeout_s: float = REQUEST_TIMEOUT_S, **arguments: Any
    ) -> dict[str, Any]:
        """Send a request and return its reply. Raise AgentError or AgentLostError."""
        return self.reply(operation, self.submit(operation, **arguments), reply_timeout_s)

    def reply(
        self,
        operation: str,
        future: Future[dict[str, Any]],
        reply_timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> dict[str, Any]:
        """Return the reply to a submitted request. Raise AgentError or AgentLostError."""
        try:
            reply = future.result(reply_timeout_s)
        except FutureTimeoutError:
            # A silent agent is no better than one that has ended: another one replaces it.
            self._fault = f"{operation}: no reply within {reply_timeout_s:g} s"
            self._declare_lost()
            raise AgentLostError(f"{self.name}: {self._fault}") from None
        if not reply.get("ok"):
            error = reply.get("error", {})
            kind, message = error.get("kind", "failed"), error.get("message", "?")
            raise AgentError(operation, kind, message, self.name)
        if problem := problem_in(reply, REPLIES.get(operation, {}), operation):
            raise AgentError(operation, "protocol", problem, self.name)
        return reply

    def _keep_alive(self, patience_s: float) -> None:
        """Let the agent end after a silence, and be silent for less until it has ended.

        A broken connection then leaves nothing running, even if it is never closed.
        """
        self.request("heartbeat", patience_s=patience_s)
        period_s = patience_s / HEARTBEATS
        threading.Thread(
            target=self._beat, args=(period_s,), name="agent-heartbeat", daemon=True
        ).start()

    @contextlib.contextmanager
    def silence(self, seconds: float) -> Iterator[None]:
        """Send no heartbeat for up to `seconds`, for which the agent's patience grows.

        Only requests of the caller then use the connection. A dead controller is noticed later.
        """
        if not self._patience_s:
            yield
            return
        self.request("heartbeat", patience_s=self._patience_s + seconds)
        self._silent_until_s = time.monotonic() + seconds
        try:
            yield
        finally:
            self._silent_until_s = 0.0
            if not self.lost.is_set():
                self.request("heartbeat", patience_s=self._patience_s)

    def traffic(self) -> Traffic:
        """Return the bytes since the start of the agent that its pipe has carried."""
        return Traffic(self._pipe.sent_bytes, self._pipe.received_bytes)

    @property
    def command_pid(self) -> int:
        """Return the pid of the command on this machine that leads to the agent."""
        return self._pipe.pid

    def _beat(self, period_s: float) -> None:
        while not self.lost.wait(period_s):
            if time.monotonic() < self._silent_until_s:
                continue
            try:
                with self._lock:
                    self._pipe.write(b"\n")
            except OSError:
                return

    # -- events ------------------------------------------------------------------------------

    def subscribe(self, process: str, events: queue.Queue[dict[str, Any]]) -> None:
        """Send the events of a process to the queue `events`. Every queue receives agent_lost."""
        with self._lock:
            self._queues[process] = events

    def unsubscribe(self, process: str) -> None:
        with self._lock:
            self._queues.pop(process, None)

    def _read(self) -> None:
        try:
            for line in self._pipe.lines():
                try:
                    message = json.loads(line)
                except (ValueError, RecursionError):
                    break  # incomplete line: the agent died while writing
                if problem := message_problem(message):
                    self._fault = f"it broke the protocol: {problem}"
                    break
                self._take(message)
        except (WattwireError, queue.Full) as error:
            self._fault = f"it wrote {str(error) or f'more than {EVENTS_MAX:,} unread events'}"
        finally:
            self._declare_lost()

    def _take(self, message: dict[str, Any]) -> None:
        if "event" in message:
            self._dispatch(message)
            return
        if message.get("id") is None:  # it could not read a request, which would wait in vain
            raise WattwireError(f"no reply to a request: {message.get('error')}")
        with self._lock:
            future = self._waiting.pop(message["id"], None)
        if future is not None:
            future.set_result(message)

    def _dispatch(self, event: dict[str, Any]) -> None:
        if event["event"] == "build":
            if self._on_build is not None:
                self._on_build(event.get("text", ""))
            return
        with self._lock:
            events = self._queues.get(event.get("process", ""))
        if events is not None:
            if events.qsize() > EVENTS_MAX:
                raise queue.Full
            events.put(event)

    def _declare_lost(self) -> None:
        self.lost.set()
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            queues = list(self._queues.values())
        for future in waiting.values():
            future.set_exception(
                AgentLostError(f"{self.name}: it ended before its reply{self._why()}")
            )
        for events in queues:
            events.put({"event": LOST, "agent": self.name, "why": self._why()})

    def _why(self) -> str:
        """Return the agent's last messages, or those of the program that leads to it, as text."""
        lines = [*self._pipe.messages()[-LAST_LINES:], *filter(None, [self._fault])]
        return f": {'; '.join(lines)}" if lines else ""

    # -- building ----------------------------------------------------------------------------

    def build(
        self,
        key: str,
        files: list[tuple[str, Path, str]],
        commands: list[list[str]],
        env: dict[str, str],
        timeout_s: int,
        progress: Callable[[str], None] | None = None,
    ) -> dict[str, Any]:
        """Lay out `files` (relative path, local file, sha256), and run `commands` once per key."""
        reply = self.request("have", hashes=sorted({digest for _, _, digest in files}))
        missing = set(reply["missing"])
        for _, path, digest in files:
            if digest in missing:
                missing.discard(digest)
                self.request("put", hash=digest, path=str(path))
        listed = [
            {"path": relative, "hash": digest, "mode": path.stat().st_mode & 0o777}
            for relative, path, digest in files
        ]
        self._on_build = progress
        try:
            return self.request(
                "build",
                reply_timeout_s=timeout_s + 60.0,
                key=key,
                files=listed,
                commands=commands,
                env=env,
                timeout_s=timeout_s,
            )
        finally:
            self._on_build = None

    def built(self, key: str) -> dict[str, Any] | None:
        """Return the reply of `build` for the build with this key, or None if it is missing."""
        try:
            return self.request("build", key=key, cached_only=True)
        except AgentError as error:
            if error.kind != "absent":
                raise
            return None

    def close(self, patience_s: float = 10.0) -> None:
        """Stop the agent, which ends all its processes."""
        if self._lock.acquire(timeout=patience_s):  # otherwise, a write hangs
            self._pipe.end_input()
            self._lock.release()
        if self._pipe.close(patience_s) != 0 and not self._is_far:
            self._remove_cgroup()

    def _remove_cgroup(self) -> None:
        """Remove the cgroup of a killed agent. If it has processes, their guards remove it."""
        path = self.hello.get("cgroup", {}).get("path")
        if path:
            with contextlib.suppress(OSError):
                Path(path).rmdir()


def wait_event(events: queue.Queue[dict[str, Any]], deadline_s: float) -> dict[str, Any] | None:
    """Return the next event, or None if none arrives before `deadline_s` (time.monotonic).

    Raise AgentLostError if the agent has ended.
    """
    try:
        event = events.get(timeout=max(0.0, deadline_s - time.monotonic()))
    except queue.Empty:
        return None
    if event["event"] == LOST:
        raise AgentLostError(
            f"{event['agent']}: it ended while wattwire was waiting for a process{event['why']}"
        )
    return event
