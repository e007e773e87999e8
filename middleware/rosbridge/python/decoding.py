"""Decode the messages of the bridge: JSON, or CBOR with fields or with a serialized message."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from typing import Any

import cbor2
from wattwire_kit import MiddlewareFailed

COMPRESSIONS = {"json": "none", "cbor": "cbor", "cbor-raw": "cbor-raw"}
"""Value of the setting `encoding` → value of `compression` in a subscribe."""
_LAYOUT = struct.Struct("<II")
_LENGTH = struct.Struct("<I")


class NoMessage(Exception):
    """Bytes that are no message of the protocol; the text states the reason."""


class Decoder:
    """The decoder of one client, by the encoding to which it has subscribed."""

    def __init__(self, encoding: str, is_text: bool) -> None:
        self._encoding = encoding
        self._is_text = is_text

    def fields(self, raw: str | bytes) -> dict[str, Any]:
        """Return the fields of an operation. Raise MiddlewareFailed if it is none.

        The bridge sends publications in the encoding and all other operations in JSON.
        """
        is_json = raw[:1] in ("{", b"{")
        try:
            fields = json.loads(raw) if is_json else self._map(raw)
            if not isinstance(fields, dict) or not isinstance(fields.get("op"), str):
                raise NoMessage("it has no op")
        except (ValueError, cbor2.CBORDecodeError, NoMessage) as error:
            raise _failed(raw, error) from error
        if is_json and fields["op"] == "publish" and self._encoding != "json":
            raise MiddlewareFailed(
                f"the bridge speaks no CBOR: subscribed with the compression "
                f"{COMPRESSIONS[self._encoding]!r}, it sent JSON. Use settings.encoding = 'json', "
                "or a bridge with CBOR"
            )
        return fields

    def _map(self, raw: str | bytes) -> Any:
        if self._encoding == "json" or isinstance(raw, str):
            raise NoMessage("allowed: an object of JSON")
        return cbor2.loads(raw)

    def payload(self, fields: dict[str, Any]) -> str | bytes:
        """Return the payload of a publication. Raise MiddlewareFailed if it has none."""
        try:
            message = fields["msg"]
            if self._encoding == "cbor-raw":
                return self._deserialized(message["bytes"])
            data = message["data"]
            if self._encoding == "json" and not self._is_text:
                return base64.b64decode(data, validate=True)
        except (LookupError, TypeError, binascii.Error, struct.error, NoMessage) as error:
            raise _failed(fields, error) from error
        if not isinstance(data, str if self._is_text else bytes):
            raise _failed(fields, NoMessage("data has another type"))
        return data

    def _deserialized(self, serialized: bytes) -> bytes:
        """Return the data of a std_msgs/UInt8MultiArray or std_msgs/String."""
        start = 0
        if not self._is_text:
            dimensions, _ = _LAYOUT.unpack_from(serialized)
            if dimensions:
                raise NoMessage(f"the layout has {dimensions} dimensions; allowed: none")
            start = _LAYOUT.size
        (length,) = _LENGTH.unpack_from(serialized, start)
        data = serialized[start + _LENGTH.size :]
        if len(data) != length:
            raise NoMessage(f"the data has {len(data)} bytes; its length says {length}")
        return data


def _failed(message: Any, error: Exception) -> MiddlewareFailed:
    return MiddlewareFailed(
        f"the bridge sent {message!r:.120}, which is no message of the protocol ({error!r})"
    )
