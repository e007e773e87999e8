"""Service and pingpong patterns: a queryable answers, a client gets."""

from __future__ import annotations

from typing import Any

import zenoh
from session import Session, with_session
from wattwire_kit import Kit, SendFailed


@with_session(listens=True)
def serve(kit: Kit, session: Session) -> None:
    key = f"{session.prefix}/service"
    congestion = session.congestion(zenoh.CongestionControl.BLOCK)
    express = kit.setting("express")

    def on_query(query: zenoh.Query) -> None:
        payload = query.payload
        if payload is None:
            return
        reply = kit.serve(payload.to_string() if kit.text else payload.to_bytes())
        if reply is not None:
            query.reply(key, bytes(reply), express=express)
            kit.served()

    session.keep(session.zenoh.declare_queryable(key, on_query))
    session.ready(session.await_peers("server", "client"), congestion, "reliable")
    kit.wait()


@with_session(listens=False)
def call(kit: Kit, session: Session) -> None:
    key = session.keep(session.zenoh.declare_keyexpr(f"{session.prefix}/service"))
    options = {
        "congestion_control": session.congestion(zenoh.CongestionControl.BLOCK),
        "express": kit.setting("express"),
    }

    def call_once(buffer: bytearray, timeout_s: float) -> Any:
        payload = buffer.decode("ascii") if kit.text else bytes(buffer)
        deadline_ns = kit.now() + int(timeout_s * 1e9)
        try:
            replies = session.zenoh.get(key, payload=payload, timeout=timeout_s, **options)
            answer = replies.recv().ok
        except zenoh.ZError as error:
            # Zenoh ends a query early where the server is gone or did not answer.
            if kit.now() < deadline_ns:
                raise SendFailed(str(error)) from error
            return None
        if answer is None:  # Zenoh's own error reply at the timeout
            return None
        return answer.payload.to_string() if kit.text else answer.payload.to_bytes()

    matched = session.await_peers("client", "server")
    session.ready(matched, options["congestion_control"], "reliable")
    kit.call_all(call_once)
