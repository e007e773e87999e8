"""Client and ping: a stub on one channel, or on a channel a call without keep_alive."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import grpc
import wattwire_pb2_grpc as stubs
from messages import GUARANTEE, LIBRARY, effective, method, to_message, to_payload
from wattwire_kit import Kit, SendFailed, Slot

TIMED_OUT = grpc.StatusCode.DEADLINE_EXCEEDED


def client(kit: Kit) -> None:
    keeps, name = kit.setting("keep_alive") != "off", method(kit)
    channel = _channel(kit)
    kept = getattr(stubs.CallsStub(channel), name)

    def call(payload: Any, timeout_s: float) -> Any:
        message = to_message(kit, payload)
        try:
            if keeps:
                return to_payload(kept(message, timeout=timeout_s))
            with _channel(kit) as own:
                return to_payload(getattr(stubs.CallsStub(own), name)(message, timeout=timeout_s))
        except grpc.RpcError as error:
            _check_timeout(error)
            return None

    discovery_ns = kit.probe(call)
    workers = kit.setting("server_workers")
    kit.ready(1, LIBRARY, effective(kit, workers, keeps), GUARANTEE, discovery_ns)
    if kit.spec["outstanding_max"] > 1 and kit.spec["loop"] == "open":
        _overlap(kit, channel if keeps else None)
    else:
        kit.call_all(call)
    channel.close()


def _channel(kit: Kit) -> grpc.Channel:
    endpoint = kit.spec["peers.endpoints"][0]
    if not kit.spec["tls.authority"]:
        return grpc.insecure_channel(endpoint)
    authority = Path(kit.spec["tls.authority"]).read_bytes()
    return grpc.secure_channel(endpoint, grpc.ssl_channel_credentials(authority))


def _check_timeout(error: Any) -> None:
    """Raise SendFailed if a call failed (C-36); a call that reached its deadline timed out."""
    if error.code() is not TIMED_OUT:
        raise SendFailed(f"{error.code().name}: {error.details()}")


def _overlap(kit: Kit, channel: grpc.Channel | None) -> None:
    """Make overlapping calls with grpcio's futures, which a thread of grpcio completes (C-33).

    Without `channel`, each call has its own channel.
    """
    done = threading.Semaphore(0)
    timeout_s = kit.spec["timeout_ns"] / 1e9

    def ended(slot: Slot, future: Any, own: grpc.Channel | None) -> None:
        try:
            kit.complete(slot, to_payload(future.result()))
        except grpc.RpcError as error:
            try:
                _check_timeout(error)
            except SendFailed:
                kit.fail(slot)
        if own is not None:
            own.close()
        done.release()

    def begin(slot: Slot, buffer: Any) -> None:
        own = None if channel is not None else _channel(kit)
        procedure = getattr(stubs.CallsStub(channel or own), method(kit))
        future = procedure.future(to_message(kit, buffer), timeout=timeout_s)
        future.add_done_callback(lambda future: ended(slot, future, own))

    kit.drive(begin, lambda wait_s: done.acquire(timeout=wait_s))
