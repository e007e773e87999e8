"""Communicate with an agent process (agent/PROTOCOL.md): requests, replies, events."""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import Any

from wattwire.model.errors import AgentLostError, WattwireError
from wattwire.rig.programs import find_program

PROTOCOL = 2
REQUEST_TIMEOUT_S = 60.0
_LOST: dict[str, Any] = {"event": "agent_lost"}


class AgentError(WattwireError):
    """The agent refused or failed a request; `kind` is the protocol's kind of error."""

    def __init__(self, operation: str, kind: str, message: str) -> None:
        super().__init__(f"agent: {operation}: {message}")
        self.kind = kind


def find_agent() -> Path:
    """Return the agent's binary. Raises MissingError if it is not built."""
    return find_program("wattwire-agent", "WATTWIRE_AGENT", "agent")


class AgentClient:
    """A running agent. It is thread-safe, and every wait ends if the agent dies."""

    def __init__(
        self, state: Path, binary: Path | None = None, command: Sequence[str] = ()
    ) -> None:
        """Start an agent, with `command` where it is not enough to start the binary.

        The command ends in a process that serves the protocol on the command's standard input and
        output, such as `nsenter … wattwire-agent serve`.
        """
        self.binary = binary or find_agent()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._queues: dict[str, queue.Queue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._on_build: Callable[[str], None] | None = None
        self.lost = threading.Event()
        state.mkdir(parents=True, exist_ok=True)
        self._log = open(state / "agent.log", "ab")  # noqa: SIM115 - closed with the client
        self._process = subprocess.Popen(
            list(command) or [str(self.binary), "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # so that Ctrl-C reaches only the controller
        )
        threading.Thread(target=self._read, name="agent-reader", daemon=True).start()
        self.hello: dict[str, Any] = {}
        try:
            self.hello = self.request("hello", protocol=PROTOCOL, state=str(state))
        except WattwireError:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Return the agent's own pid on its host, which need not be that of the command."""
        return int(self.hello["pid"])

    # -- requests ----------------------------------------------------------------------------

    def submit(self, operation: str, **arguments: Any) -> Future[dict[str, Any]]:
        """Send a request without waiting, and return a future of the reply."""
        number = next(self._numbers)
        future: Future[dict[str, Any]] = Future()
        line = json.dumps({"id": number, "op": operation, **arguments}) + "\n"
        with self._lock:
            if self.lost.is_set():
                raise AgentLostError(f"agent: {operation}: the agent has ended")
            self._waiting[number] = future
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()
            except OSError as error:
                raise AgentLostError(
                    f"agent: {operation}: the pipe to the agent broke ({error})"
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
            raise AgentLostError(
                f"agent: {operation}: no reply within {reply_timeout_s:g} s"
            ) from None
        if not reply.get("ok"):
            error = reply.get("error", {})
            raise AgentError(operation, error.get("kind", "failed"), error.get("message", "?"))
        return reply

    # -- events ------------------------------------------------------------------------------

    def subscribe(self, process: str, events: queue.Queue[dict[str, Any]]) -> None:
        """Send the events of a process to the queue `events`. Every queue receives agent_lost."""
        with self._lock:
            self._queues[process] = events

    def unsubscribe(self, process: str) -> None:
        with self._lock:
            self._queues.pop(process, None)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                break  # incomplete line: the agent died while writing
            if "event" in message:
                self._dispatch(message)
            else:
                with self._lock:
                    future = self._waiting.pop(message.get("id"), None)
                if future is not None:
                    future.set_result(message)
        self._declare_lost()

    def _dispatch(self, event: dict[str, Any]) -> None:
        if event["event"] == "build":
            if self._on_build is not None:
                self._on_build(event.get("text", ""))
            return
        with self._lock:
            events = self._queues.get(event.get("process", ""))
        if events is not None:
            events.put(event)

    def _declare_lost(self) -> None:
        self.lost.set()
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            queues = list(self._queues.values())
        for future in waiting.values():
            future.set_exception(AgentLostError("the agent ended before its greeting"))
        for events in queues:
            events.put(_LOST)

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
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        if self._process.returncode != 0:
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
    if event["event"] == "agent_lost":
        raise AgentLostError("the agent died while wattwire was waiting for a process")
    return event
