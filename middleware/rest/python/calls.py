"""Client and ping: POST with requests."""

from __future__ import annotations

from typing import Any

import requests
from bodies import content_type, decoded, encoded
from wattwire_kit import Kit
from wattwire_web import Caller, python_build

OK = 200


def client(kit: Kit) -> None:
    caller, type_ = Caller(kit), content_type(kit)

    def call(message: Any, timeout_s: float) -> Any:
        response = caller.post(encoded(message), type_, timeout_s)
        if response is None:
            return None
        return decoded(kit, response.content if response.status_code == OK else b"")

    caller.run(call, ("requests", requests.__version__, python_build()))
