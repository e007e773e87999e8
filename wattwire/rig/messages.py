"""Validate what an agent writes (agent/PROTOCOL.md). A far host may write anything."""

from __future__ import annotations

from typing import Any

Form = Any
"""A type or a tuple of types, [form] for a list, or {key: form} for an object with these keys."""
NUMBER = (int, float)
ANY = object
NULL = type(None)
_READING = dict.fromkeys(("monotonic_ns", "realtime_ns", "boottime_ns", "monotonic_after_ns"), int)
_ADJUSTMENT = {
    "rate_ppm": (*NUMBER, NULL), "error_us_max": (int, NULL), "synchronised": (bool, NULL),
}  # fmt: skip
REPLIES: dict[str, Form] = {
    "hello": {
        **dict.fromkeys(("version", "build", "boot_id", "time_namespace", "cache"), str),
        "protocol": int,
        "pid": int,
        "cgroup": {"rung": str, "lost": [str]},
        "rights": {},
        "cpu_latency": {"path": str, "absent": (str, NULL)},
        "meters": [{"name": str, "state": str, "quantities": [{"name": str}]}],
    },
    "fingerprint": {"facts": [{"key": str, "value": ANY, "check": str}]},
    "have": {"missing": [str]},
    "list": {"files": [{"path": str, "size": int, "sha256": str}]},
    "which": {"paths": {}},
    "command": {"code": (int, NULL), "signal": (int, NULL), "output": str},
    "connects": {"connects": bool},
    "disk": {"free_bytes": int},
    "addresses": {"interfaces": [{"name": str, "ipv4": [{"address": str}]}]},
    "build": {"directory": str},
    "ports": {"ports": [int]},
    "spawn": {"pid": int, "guard_pid": int},
    "meter_check": {"readings": [{"quantity": str, "unit": str, "value": NUMBER}], "info": {}},
    "members": {"members": [{}]},
    "sample_start": {"absent": [{"name": str, "reason": str}]},
    "sample_stop": {"marks": [{"name": str, "t_ns": int}]},
    "cpus": {"allowed": [int], "cpus": [{"cpu": int}]},
    "stay_off": {"cpus": [int]},
    "hold_cpu_latency": {"path": str, "us": int},
    "clock": {"triples": [_READING], "adjustment": _ADJUSTMENT},
    "clock_listen": {"port": int},
    "load": dict.fromkeys(
        ("busy_ns", "steal_ns", "total_ns", "cpus", "tick_ns", "other_demand_ns"), NUMBER
    ),
    "fetch": {"base64": str, "size": int, "sha256": str},
    "clean": {"killed": [int], "removed": [str]},
}
"""Operation → the fields of its reply that the controller reads."""
EVENTS: dict[str, Form] = {
    "line": {"process": str, "text": str},
    "exit": {"process": str, "code": (int, NULL), "signal": (int, NULL)},
    "guard_lost": {"process": str},
    "build": {"text": str},
}
_ERROR = {"kind": str, "message": str}
EXCERPT_CHARACTERS = 80


def message_problem(message: Any) -> str:
    """Return the fault of a reply or an event as text, or ""."""
    if not isinstance(message, dict):
        return f"found {_excerpt(message)}; allowed: an object"
    if "event" in message:
        kind = message["event"]
        if not isinstance(kind, str) or not isinstance(message.get("process", ""), str):
            return f"found {_excerpt(message)}; allowed: an event with a name and a process"
        return problem_in(message, EVENTS.get(kind, {}), kind)
    if not isinstance(message.get("id"), int | None) or not isinstance(message.get("ok"), bool):
        return f"found {_excerpt(message)}; allowed: a reply with an integer id and ok"
    return "" if message["ok"] else problem_in(message.get("error"), _ERROR, "error")


def problem_in(value: Any, form: Form, place: str) -> str:
    """Return the first fault of a value, with its place and what is allowed, or ""."""
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return f"{place}: found {_excerpt(value)}; allowed: an object"
        for key, inner in form.items():
            if key not in value:
                return f"{place}: {key} is missing"
            if problem := problem_in(value[key], inner, f"{place}.{key}"):
                return problem
        return ""
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"{place}: found {_excerpt(value)}; allowed: a list"
        items = (problem_in(item, form[0], f"{place}[{at}]") for at, item in enumerate(value))
        return next(filter(None, items), "")
    kinds = form if isinstance(form, tuple) else (form,)
    # In Python, a boolean is an integer.
    is_allowed = isinstance(value, kinds) and (
        not isinstance(value, bool) or bool in kinds or ANY in kinds
    )
    return "" if is_allowed else f"{place}: found {_excerpt(value)}; allowed: {_names(kinds)}"


def _names(kinds: tuple[type, ...]) -> str:
    return " or ".join("null" if kind is NULL else kind.__name__ for kind in kinds)


def _excerpt(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= EXCERPT_CHARACTERS else text[:EXCERPT_CHARACTERS] + "…"
