"""Service and pingpong patterns: ExchangeText or ExchangeBytes, one field each way."""

from __future__ import annotations

from typing import Any

from interfaces import field_of, service_type
from session import Session, with_session
from wattwire_kit import Kit


@with_session
def serve(kit: Kit, session: Session) -> None:

    def on_request(request: Any, response: Any) -> Any:
        reply = kit.serve(request.request)
        if reply is not None:
            response.reply = field_of(kit, reply)
        return response

    service = session.node.create_service(
        service_type(kit), f"{session.prefix}/service", on_request, qos_profile=session.qos()
    )
    hand_over = service.send_response

    def send_response(response: Any, header: Any) -> None:
        hand_over(response, header)
        kit.served()

    # The executor hands the reply over after the callback returns; only this method sees it.
    service.send_response = send_response
    session.await_clients(f"{session.prefix}/service")
    session.spin_until_end()


@with_session
def call(kit: Kit, session: Session) -> None:
    kind = service_type(kit)
    client = session.node.create_client(
        kind, f"{session.prefix}/service", qos_profile=session.qos()
    )

    def request_of(buffer: bytearray) -> Any:
        return kind.Request(request=field_of(kit, buffer))

    def call_once(buffer: bytearray, timeout_s: float) -> Any:
        future = client.call_async(request_of(buffer))
        session.executor.spin_until_future_complete(future, timeout_sec=timeout_s)
        if not future.done():
            client.remove_pending_request(future)
            return None
        return future.result().reply

    def call_slot(slot: Any, buffer: bytearray) -> None:
        future = client.call_async(request_of(buffer))

        def on_reply(done: Any) -> None:
            kit.complete(slot, done.result().reply)
            session.settle()

        future.add_done_callback(on_reply)

    kit.await_peers(lambda: int(client.service_is_ready()), session.spin_once)
    # The server may discover this client's reader after its writer, and the first replies are lost.
    kit.probe(call_once)
    session.ready(1, session.requested_qos())
    overlapping = kit.spec["loop"] == "open" and kit.spec["outstanding_max"] > 1
    if kit.spec["pacing"] == "native" or overlapping:
        session.drive(call_slot)
    else:
        kit.call_all(call_once)
