"""Server and pong: grpcio's server with a thread pool."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import wattwire_pb2_grpc as stubs
from messages import GUARANTEE, LIBRARY, effective, to_message, to_payload
from wattwire_kit import Kit


class Calls(stubs.CallsServicer):
    """The procedures; all answer in the same way."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self.Bytes = self.Text = self.Record = self._answer

    def _answer(self, request: Any, context: grpc.ServicerContext) -> Any:
        reply = self._kit.serve(to_payload(request))
        if reply is None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "a request of another run")
        if isinstance(reply, str):
            reply = reply.encode()
        message = to_message(self._kit, reply)
        self._kit.served()
        return message


def server(kit: Kit) -> None:
    # Users of grpcio who give no number of threads get ThreadPoolExecutor's default.
    pool = ThreadPoolExecutor(kit.setting("server_workers") or None)
    opened = grpc.server(pool)
    stubs.add_CallsServicer_to_server(Calls(kit), opened)
    host = kit.spec["host.address"]
    if kit.spec["tls.authority"]:
        key, certificate = (
            Path(kit.spec[name]).read_bytes() for name in ("tls.key", "tls.certificate")
        )
        credentials = grpc.ssl_server_credentials([(key, certificate)])
        port = opened.add_secure_port(f"{host}:0", credentials)
    else:
        port = opened.add_insecure_port(f"{host}:0")
    opened.start()
    kit.listening([f"{host}:{port}"])
    workers: int = pool._max_workers
    kit.ready(None, LIBRARY, effective(kit, workers, keeps=True), GUARANTEE)
    kit.wait()
    opened.stop(None).wait()
