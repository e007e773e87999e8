"""Conversion of ROS messages to JSON and CBOR, and from JSON, by the types of their fields."""

from __future__ import annotations

import base64
import io
import json
import math
import re
import time
from collections.abc import Callable
from typing import Any

import genpy
from genpy.message import get_message_class

try:
    import cbor2
except ImportError:  # the bridge then speaks only JSON
    cbor2 = None

BYTE_ARRAY = re.compile(r"(?:uint8|char)\[\d*\]")
ARRAY = re.compile(r"(?P<element>.+)\[\d*\]")
SCALARS: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "string": (str,),
    **dict.fromkeys(("float32", "float64"), (int, float)),
    **dict.fromkeys(("byte", "char"), (int,)),
    **dict.fromkeys([f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)], (int,)),
}
TIMES = ("time", "duration")


class Refused(Exception):
    """An operation or a message that the bridge rejects; the text states the reason."""


def message_class(kind: str) -> Any:
    """Return the class of a message type. Raise Refused for a type that is not installed."""
    try:
        message_type = get_message_class(kind)
    except Exception as error:  # the loaders raise various types for malformed names
        raise Refused(f"type: found {kind!r}: {error}") from error
    if message_type is None:
        raise Refused(f"type: found {kind!r}; allowed: an installed type, such as std_msgs/String")
    return message_type


def as_json(topic: str, message: Any) -> str:
    return json.dumps({"op": "publish", "topic": topic, "msg": plain(message, is_binary=False)})


def as_cbor(topic: str, message: Any) -> bytes:
    operation = {"op": "publish", "topic": topic, "msg": plain(message, is_binary=True)}
    encoded: bytes = cbor2.dumps(operation)
    return encoded


def as_raw_cbor(topic: str, message: Any) -> bytes:
    """Return an operation with the message as ROS serializes it, and the time of its arrival."""
    serialized = io.BytesIO()
    message.serialize(serialized)
    now_ns = time.time_ns()
    fields = {"bytes": serialized.getvalue(), "secs": now_ns // 10**9, "nsecs": now_ns % 10**9}
    encoded: bytes = cbor2.dumps({"op": "publish", "topic": topic, "msg": fields})
    return encoded


Encoded = str | bytes
COMPRESSIONS: dict[str, Callable[[str, Any], Encoded]] = {"none": as_json}
"""Value of `compression` in a subscribe → the function that encodes a message of a topic."""
if cbor2 is not None:
    COMPRESSIONS |= {"cbor": as_cbor, "cbor-raw": as_raw_cbor}


def plain(message: Any, is_binary: bool) -> dict[str, Any]:
    """Return the fields of a message as values of JSON, or of CBOR if `is_binary`.

    Arrays of bytes are in base64 in JSON. Numbers that JSON lacks are null.
    """
    kinds = zip(message.__slots__, message._slot_types, strict=True)
    return {name: _plain(getattr(message, name), kind, is_binary) for name, kind in kinds}


def _plain(value: Any, kind: str, is_binary: bool) -> Any:
    if BYTE_ARRAY.fullmatch(kind):
        return bytes(value) if is_binary else base64.b64encode(bytes(value)).decode("ascii")
    if array := ARRAY.fullmatch(kind):
        return [_plain(element, array["element"], is_binary) for element in value]
    if isinstance(value, genpy.TVal):
        return {"secs": value.secs, "nsecs": value.nsecs}
    if isinstance(value, genpy.Message):
        return plain(value, is_binary)
    if isinstance(value, float) and not (is_binary or math.isfinite(value)):
        return None
    return value


def filled(kind: str, values: Any, place: str) -> Any:
    """Return a message of a type with these values of JSON; other fields have their defaults.

    Raise Refused with the place of an unknown field or a value of another type.
    """
    message = message_class(kind)()
    kinds = dict(zip(message.__slots__, message._slot_types, strict=True))
    if not isinstance(values, dict):
        raise Refused(f"{place}: found {values!r:.80}; allowed: an object of type {kind}")
    for name, value in values.items():
        if name not in kinds:
            raise Refused(f"{place}: unknown field {name!r}; {kind} has {', '.join(kinds)}")
        setattr(message, name, _filled(kinds[name], value, f"{place}.{name}"))
    return message


def _filled(kind: str, value: Any, place: str) -> Any:
    if BYTE_ARRAY.fullmatch(kind):
        return _bytes(value, place)
    if array := ARRAY.fullmatch(kind):
        if not isinstance(value, list):
            raise Refused(f"{place}: found {value!r:.80}; allowed: a list")
        numbered = enumerate(value)
        return [_filled(array["element"], each, f"{place}[{at}]") for at, each in numbered]
    if kind in TIMES:
        return _time(kind, value, place)
    if kind not in SCALARS:
        return filled(kind, value, place)
    if value is None and kind.startswith("float"):
        return math.nan
    is_truth = isinstance(value, bool) and kind != "bool"
    if is_truth or not isinstance(value, SCALARS[kind]):
        raise Refused(f"{place}: found {value!r:.80}; allowed: {kind}")
    return value


def _bytes(value: Any, place: str) -> bytes:
    problem: object = "another type"
    try:
        if isinstance(value, str):
            return base64.b64decode(value, validate=True)
        if isinstance(value, list):
            return bytes(value)
    except (TypeError, ValueError) as error:
        problem = error
    allowed = "allowed: bytes in base64, or a list of integers from 0 to 255"
    raise Refused(f"{place}: found {value!r:.80} ({problem}); {allowed}")


def _time(kind: str, value: Any, place: str) -> Any:
    fields = value if isinstance(value, dict) else {}
    numbers = [fields.get(name) for name in ("secs", "nsecs")]
    if set(fields) != {"secs", "nsecs"} or any(type(number) is not int for number in numbers):
        raise Refused(f'{place}: found {value!r:.80}; allowed: {{"secs": …, "nsecs": …}}')
    return (genpy.Time if kind == "time" else genpy.Duration)(*numbers)
