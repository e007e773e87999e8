"""The part of the kit that all roles share: spec, opening, counts and the end."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic_ns, sleep
from typing import Any

from .constants import GUARANTEES, PROBE, ROLE_CODES, SENDERS, UNKNOWN_PEER
from .dialogue import Dialogue
from .payload import Payload
from .record import RecordPayload
from .recorder import Recorder
from .schedule import NEVER_NS
from .spec import SETTING, MiddlewareFailed

NAP_NS = 100_000_000
"""Maximum time between two checks for STOP during a wait."""
Poll = Callable[[float], object]
# The kit rewrites one outgoing message; arriving messages may have any of these types.
Message = Any  # bytearray, or Record if payload.encoding is record
Call = Callable[[Message, float], Any]


class SendFailed(Exception):
    """The middleware rejected this message, or the call failed (C-36); the run continues."""


class Core:
    """The base class of the kit; times are in ns.

    Only this class and the constructors of its subclasses read the spec, never code that runs for
    each message.
    """

    now = staticmethod(monotonic_ns)

    def __init__(
        self, spec: Mapping[str, Any], dialogue: Dialogue, process_start_ns: int, out: str = ""
    ) -> None:
        self.spec = spec
        self.out = out
        self.encoding: str = spec["payload.encoding"]
        self.text = self.encoding == "text"
        self.period_ns: int = spec["period_ns"]
        self._dialogue = dialogue
        self._process_start_ns = process_start_ns
        self._role: str = spec["role"]
        self._is_sender = self._role in SENDERS
        # A sender's arrivals are replies, which carry its own node.
        nodes = [spec["node"]] if self._is_sender else spec["peers.nodes"]
        shape: Any = RecordPayload if self.encoding == "record" else Payload
        self._payload = shape(spec, nodes)
        self.carries_seq: bool = self._payload.carries_seq
        self._recorder = Recorder(spec["record.capacity"])
        self._lock = threading.RLock()
        peers = spec["peers.nodes"]
        self._peer = peers[0] if len(peers) == 1 else UNKNOWN_PEER
        self._start_ns = self._warm_until_ns = NEVER_NS
        self._warmup_ns: int = spec["warmup_ns"]
        self._quiet_ns = spec["quiet_ms"] * 1_000_000
        self._linger_ns = spec["linger_ms"] * 1_000_000
        self._sent = self._received = self._foreign = self._corrupt = self._probes = 0
        self._current_seq = -1
        self._arrival_ns = 0
        # Valid arrivals are counted without the lock, because next() is atomic in the interpreter.
        self._arrivals = itertools.count()

    def setting(self, name: str) -> Any:
        return self.spec[f"{SETTING}{name}"]

    def _settings(self) -> dict[str, Any]:
        """Return the requested settings, which are in force unless the library reports others."""
        return {
            key.removeprefix(SETTING): value
            for key, value in self.spec.items()
            if key.startswith(SETTING)
        }

    def sending_topic(self) -> str:
        """Return `topic`, or the name of the channel of a pipeline on which this node sends."""
        return self._topic(1)

    def receiving_topic(self) -> str:
        """Return `topic`, or the name of the channel of a pipeline on which this node receives."""
        return self._topic(0)

    def _topic(self, hops: int) -> str:
        is_pipeline = self.spec["pattern"] == "pipeline"
        return f"channel_{self.spec['hop'] + hops}" if is_pipeline else "topic"

    # --- opening ---------------------------------------------------------------------------

    def listening(self, endpoints: Sequence[str]) -> None:
        self._dialogue.line("LISTENING", {"endpoints": list(endpoints)})

    def _ready_deadline_ns(self) -> int:
        return self._process_start_ns + self.spec["ready_timeout_ms"] * 1_000_000

    def await_peers(self, count_now: Callable[[], int], poll: Poll | None = None) -> int:
        """Wait until `count_now()` reaches peers.count; return the elapsed ns."""
        begin_ns = monotonic_ns()
        while (matched := count_now()) < self.spec["peers.count"]:
            if monotonic_ns() > self._ready_deadline_ns():
                raise MiddlewareFailed(
                    f"matched {matched} of {self.spec['peers.count']} peers within "
                    f"ready_timeout_ms = {self.spec['ready_timeout_ms']}; are they running?"
                )
            (poll or sleep)(0.001)
        return monotonic_ns() - begin_ns

    def probe(self, call: Call) -> int:
        """Send probes until a reply arrives (C-07); return the elapsed ns."""
        begin_ns, last_error = monotonic_ns(), ""
        while (left_ns := self._ready_deadline_ns() - monotonic_ns()) > 0:
            self._current_seq = self.spec["node"] << 48 | PROBE
            self._payload.stamp(self._current_seq, monotonic_ns())
            self._probes += 1
            try:
                if call(self._payload.buffer, min(left_ns / 1e9, 0.25)) is not None:
                    return monotonic_ns() - begin_ns
            except (SendFailed, OSError) as error:
                last_error = f"; last error: {error}"
            sleep(0.005)
        limit = f"ready_timeout_ms = {self.spec['ready_timeout_ms']}"
        raise MiddlewareFailed(f"no reply to a probe within {limit}{last_error}")

    def ready(
        self,
        matched: int | None,
        library: tuple[str, str, str],
        effective: Mapping[str, Any],
        guarantee: tuple[str, str, str],
        discovery_ns: int | None = None,
        parts: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Print READY. `parts` are the entries of a member's parts (C-42)."""
        for word, allowed in zip(guarantee, GUARANTEES, strict=True):
            if word not in allowed:
                raise ValueError(f"guarantee: found {word!r}; allowed: {', '.join(allowed)}")
        fields = {
            "matched": matched,
            "startup_ns": monotonic_ns() - self._process_start_ns,
            "discovery_ns": discovery_ns,
            "library": dict(zip(("name", "version", "build"), library, strict=True)),
            "effective": {**self._settings(), **effective},
            "guarantee": dict(zip(("delivery", "ordering", "overload"), guarantee, strict=True)),
            **({"parts": list(parts)} if parts else {}),
        }
        self._dialogue.line("READY", fields)

    def wait_go(self, poll: Poll | None = None) -> int:
        """Return the window's start in ns, or 0 if STOP arrived first."""
        while self._dialogue.start_ns is None and self._dialogue.stop_ns is None:
            if poll is not None:
                poll(0.01)
            else:
                self._dialogue.go_or_stop.wait()
        self._learn_start()
        return self._dialogue.start_ns or 0

    def _learn_start(self) -> None:
        if self._dialogue.start_ns is not None and self._start_ns == NEVER_NS:
            self._start_ns = self._dialogue.start_ns
            self._warm_until_ns = self._start_ns + self._warmup_ns

    # --- the end ---------------------------------------------------------------------------

    def wait_stop(self, poll: Poll | None = None) -> None:
        while not self._dialogue.stop.is_set():
            if poll is None:
                self._dialogue.stop.wait()
            else:
                poll(0.1)

    def _left_s(self) -> float:
        """Return the seconds until a receiver may end by quiet and linger (C-15).

        Before STOP, return the time until the next check.
        """
        stop_ns = self._dialogue.stop_ns
        if stop_ns is None:
            return NAP_NS / 1e9
        quiet_ns = max(self._last_arrival_ns(), stop_ns) + self._quiet_ns
        linger_ns = stop_ns + self._linger_ns
        return (min(quiet_ns, linger_ns) - monotonic_ns()) / 1e9

    def _last_arrival_ns(self) -> int:
        """Return the time of the last arrival, 0 without one."""
        return self._arrival_ns

    def poll(self, poll: Poll) -> None:
        """Call a receiver's `poll(timeout_s)` until the end."""
        while (left_s := self._left_s()) > 0:
            poll(min(left_s, NAP_NS / 1e9))

    def wait(self) -> None:
        """Block this thread until the end, while the library's own thread receives."""
        self._dialogue.stop.wait()
        self.poll(sleep)

    def on_end(self, function: Callable[[], object]) -> None:
        def watch() -> None:
            self.wait()
            function()

        threading.Thread(target=watch, name="wattwire-end", daemon=True).start()

    def add_counts(
        self, received: int, foreign: int, corrupt: int, probes: int, recorded: int, overflow: int
    ) -> None:
        """Add the counts of another process of this node, which wrote its own sample file."""
        self._received += received
        self._foreign += foreign
        self._corrupt += corrupt
        self._probes += probes
        self._recorder.recorded_elsewhere += recorded
        self._recorder.overflow_elsewhere += overflow

    def count_received(self) -> int:
        """Return the number of arrivals. Call this once, at the end: reading increments it."""
        return self._received + next(self._arrivals)

    def finish(self) -> None:
        """Write the samples and print DONE."""
        self._dialogue.line("DONE", self._write("samples.bin"))

    def _write(self, name: str) -> dict[str, int]:
        """Write the samples to the file `name`; return the counts of DONE."""
        with self._lock:
            spec, recorder = self.spec, self._recorder
            path = os.path.join(self.out, name)
            role = ROLE_CODES[self._role]
            recorder.write(path, role, spec["node"], spec["payload.seed"])
            fields = {"sent": self._sent, "received": self.count_received()}
            fields["recorded"] = recorder.recorded + recorder.recorded_elsewhere
            fields["overflow"] = recorder.overflow + recorder.overflow_elsewhere
            fields.update(foreign=self._foreign, corrupt=self._corrupt, probes=self._probes)
        return fields
