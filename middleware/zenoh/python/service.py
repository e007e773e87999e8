"""Service and pingpong patterns: a queryable answers, a client gets."""

from __future__ import annotations

import threading
from typing import Any

import zenoh
from messages import decoder, encoder
from session import Session, with_session
from wattwire_kit import Kit, SendFailed


@with_session(listens=True, connects=False)
def serve(kit: Kit, session: Session) -> None:
    key = zenoh.KeyExpr(f"{session.prefix}/service")
    congestion = session.congestion(zenoh.CongestionControl.BLOCK)
    options = {"express": True} if kit.setting("express") else {}
    encode, decode = encoder(kit), decoder(kit)
    answer, served = kit.serve, kit.served

    def on_query(query: zenoh.Query) -> None:
        payload = query.payload
        if payload is None:
            return
        reply = answer(decode(payload))
        if reply is not None:
            query.reply(key, encode(reply), **options)
            served()

    session.keep(session.zenoh.declare_queryable(key, on_query))
    session.ready(session.await_peers("server", "client"), congestion, "reliable")
    kit.wait()


@with_session(listens=False, connects=True)
def call(kit: Kit, session: Session) -> None:
    key = session.keep(session.zenoh.declare_keyexpr(f"{session.prefix}/service"))
    encode, decode = encoder(kit), decoder(kit)
    call_timeout_s = kit.spec["timeout_ns"] / 1e9
    congestion = session.congestion(zenoh.CongestionControl.BLOCK)
    # Every call pays for the conversion of each argument, so defaults are not passed.
    options: dict[str, Any] = {}
    if congestion != zenoh.CongestionControl.BLOCK:
        options["congestion_control"] = congestion
    if kit.setting("express"):
        options["express"] = True
    get = session.zenoh.get

    def call_once(buffer: Any, timeout_s: float) -> Any:
        begin_ns = kit.now()
        try:
            replies = get(key, payload=encode(buffer), timeout=timeout_s, **options)
            answer = replies.recv().ok
        except zenoh.ZError as error:
            # Zenoh ends a query early if the server has ended or did not answer.
            if kit.now() - begin_ns < timeout_s * 1e9:
                raise SendFailed(str(error)) from error
            return None
        # Ignore Zenoh's own error reply, which it creates at the timeout.
        return None if answer is None else decode(answer.payload)

    resolved = threading.Event()

    def begin(slot: Any, buffer: Any) -> None:
        def on_reply(reply: zenoh.Reply) -> None:
            if reply.ok is not None:
                kit.complete(slot, decode(reply.ok.payload))
                resolved.set()

        payload = encode(buffer)
        try:
            get(key, on_reply, payload=payload, timeout=call_timeout_s, **options)
        except zenoh.ZError as error:
            raise SendFailed(str(error)) from error

    def poll(timeout_s: float) -> None:
        resolved.wait(timeout_s)
        resolved.clear()

    matched = session.await_peers("client", "server")
    session.ready(matched, congestion, "reliable")
    if kit.spec["loop"] == "open" and kit.spec["outstanding_max"] > 1:
        kit.drive(begin, poll)
    else:
        kit.call_all(call_once)
