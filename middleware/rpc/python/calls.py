"""Client and ping: JSON-RPC 2.0 requests by POST."""

from __future__ import annotations

import itertools
import json
from typing import Any

import requests
from wattwire_kit import Kit, Record, SendFailed
from wattwire_web import Caller, python_build


def client(kit: Kit) -> None:
    caller, ids = Caller(kit), itertools.count()

    def call(message: Any, timeout_s: float) -> Any:
        number = next(ids)
        record = isinstance(message, Record)
        body = {
            "jsonrpc": "2.0",
            "id": number,
            "method": "echo_record" if record else "echo",
            "params": [message.to_dict() if record else bytes(message).decode()],
        }
        response = caller.post(json.dumps(body).encode(), "application/json", timeout_s)
        if response is None:
            return None
        result = _result(response, number)
        return Record.from_object(result) if record else result if isinstance(result, str) else ""

    caller.run(call, ("requests", requests.__version__, python_build()))


def _result(response: requests.Response, number: int) -> Any:
    """Return the result, or None if the response is invalid or answers another call.

    Raise SendFailed if the response is an error.
    """
    try:
        content = response.json()
    except requests.JSONDecodeError:
        return None
    if not isinstance(content, dict):
        return None
    if content.get("error") is not None:
        raise SendFailed(f"JSON-RPC error {content['error']}")
    return content.get("result") if content.get("id") == number else None
