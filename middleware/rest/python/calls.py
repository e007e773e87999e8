"""Client and ping: POST with requests."""

from __future__ import annotations

from typing import Any

import requests
from bodies import content_type, decoded, encoded
from wattwire_kit import Kit
from wattwire_web import Caller, python_build


def client(kit: Kit) -> None:
    caller, type_ = Caller(kit), content_type(kit)

    def call(message: Any, timeout_s: float) -> Any:
        response = caller.post(encoded(message), type_, timeout_s)
        return None if response is None else decoded(kit, response.content)

    caller.run(call, ("requests", requests.__version__, python_build()))
