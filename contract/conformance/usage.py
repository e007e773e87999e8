"""Scenarios for command line, spec, capabilities, and a start in the past (C-01 to C-04, C-08)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .cell import Broken, CellUnderTest, Problem, Skipped
from .group import AT_ONCE_S, HANG_S, pair
from .process import NodeProcess
from .roles import CALLING_ROLES, PATTERNS
from .scenario import Bench, Scenario
from .schema import breaches
from .spec import (
    DECLARED,
    ENCODINGS,
    HOST_ADDRESS,
    PAYLOAD_BYTES_MAX,
    READY_TIMEOUT_MS,
    UNKNOWN_SETTING,
    bad_specs,
    base_spec,
    encodings_of,
    open_loop,
    setting_names,
)

SHARDS = 4
REPLIES = ("echo", "ack", "literal", "encrypt")


def refusal(
    node: NodeProcess,
    code: int,
    clause: str,
    case: str,
    timeout_s: float = HANG_S,
    other_code: int | None = None,
) -> tuple[list[Problem], dict[str, Any]]:
    """Wait for a node that must reject its spec; return the breaches and its ERROR object.

    The node must exit with `code` or, if it is not None, with `other_code`.
    """
    exit_code = node.wait_exit(timeout_s)
    node.kill()
    where = f"{node.label}: {case}"
    if exit_code is None or exit_code not in (code, other_code):
        state = "did not end" if exit_code is None else f"ended with {exit_code}"
        expected = code if other_code is None else f"{code} or {other_code}"
        text = f"{where}: expected exit code {expected}, but the node {state}; {node.last_output()}"
        return [Problem(clause, text)], {}
    error = node.fields("ERROR")
    if not error:
        text = f"{where}: exit code {exit_code} without an ERROR line; {node.last_output()}"
        return [Problem(clause, text)], {}
    problems = [Problem("C-05", f"{where}: ERROR: {text}") for text in breaches("error", error)]
    if error.get("code") != exit_code:
        text = f"{where}: ERROR reports code {error.get('code')}, expected {exit_code}"
        problems.append(Problem(clause, text))
    if any(line.fields is None for line in node.lines):
        problems.append(Problem("C-05", f"{where}: descriptor 3 carries other text"))
    return problems, error


def bad_keys(shard: int) -> Scenario:
    def check(bench: Bench) -> list[Problem]:
        pattern = bench.cell.patterns[0]
        roles = PATTERNS[pattern].roles
        role = roles[shard % len(roles)]
        cases = list(bad_specs(bench.lone_spec(pattern, role)))
        problems: list[Problem] = []
        for change, key, spec in cases[shard::SHARDS]:
            case = f"{key}: {change}"
            refusal_problems, error = refusal(bench.single(spec), 2, "C-02", case)
            problems += refusal_problems
            if not refusal_problems:
                faults = _error_faults(error, key, spec)
                problems += [Problem("C-02", f"{role}: {case}: {fault}") for fault in faults]
        return problems

    return Scenario(f"bad-keys-{shard}", ("C-02",), check)


def _error_faults(error: dict[str, Any], key: str, spec: dict[str, Any]) -> Iterator[str]:
    """Yield a text for each fault of the ERROR object of a spec with this bad key."""
    if error.get("key") != key:
        yield f"the ERROR line names {error.get('key')!r}"
    if key == UNKNOWN_SETTING:
        for name in setting_names(spec):
            if name not in str(error.get("reason")):
                yield f"the reason of the ERROR line lacks the declared setting {name}"


def command_line(bench: Bench) -> list[Problem]:
    pattern = bench.cell.patterns[0]
    problems: list[Problem] = []
    for role in PATTERNS[pattern].roles:
        for extra in (["--verbose"], ["extra"]):
            node = bench.single(bench.lone_spec(pattern, role), extra)
            problems += refusal(node, 2, "C-01", f"{extra[0]!r} on the command line")[0]
    broken = bench.single({})
    problems += refusal(broken, 2, "C-02", "an empty spec")[0]
    return problems


def _replied(kind: str) -> dict[str, Any]:
    """Return the changes to a spec for a reply; an encrypting reply needs whole blocks (C-40)."""
    return {"reply": kind, **({"payload__bytes": 72} if kind == "encrypt" else {})}


def _undeclared(cell: CellUnderTest) -> list[tuple[str, dict[str, Any]]]:
    """Return (name, spec) for each role, capability, size and setting that the cell lacks."""
    cases: list[tuple[str, dict[str, Any]]] = []
    for name, roles in PATTERNS.items():
        if name not in cell.patterns:
            cases += [(f"role {role}", base_spec(cell, name, role)) for role in roles.roles]
    for pattern in cell.patterns:
        sender = PATTERNS[pattern].sender
        for name, changes in _changes_by_capability(pattern).items():
            if name not in cell.capabilities:
                cases.append((name, base_spec(cell, pattern, sender, **changes)))
    for encoding in ENCODINGS:
        longest = cell.bytes_max(encoding)
        if (
            f"encoding.{encoding}" in cell.capabilities
            and longest is not None
            and longest < PAYLOAD_BYTES_MAX
        ):
            spec = base_spec(cell, cell.patterns[0], PATTERNS[cell.patterns[0]].sender)
            spec.update({"payload.encoding": encoding, "payload.bytes": longest + 1})
            cases.append((f"payload.bytes above {longest} with {encoding}", spec))
        shortest = cell.bytes_min(encoding)
        if f"encoding.{encoding}" in cell.capabilities and shortest:
            spec = base_spec(cell, cell.patterns[0], PATTERNS[cell.patterns[0]].sender)
            spec.update({"payload.encoding": encoding, "payload.bytes": shortest - 1})
            cases.append((f"payload.bytes below {shortest} with {encoding}", spec))
    cases += _beyond_levels(cell)
    for name, value in cell.excluded.items():
        spec = base_spec(cell, cell.patterns[0], PATTERNS[cell.patterns[0]].sender)
        cases.append((f"{name} = {value!r}", {**spec, f"settings.{name}": value}))
    return cases


def _changes_by_capability(pattern: str) -> dict[str, dict[str, Any]]:
    """Return the changes to a sender's spec that require a capability (capability → changes)."""
    changes: dict[str, dict[str, Any]] = {
        f"encoding.{kind}": {"payload__encoding": kind, "payload__bytes": 128}
        for kind in encodings_of(pattern)
    }
    changes["pacing.native"] = {"pacing": "native"}
    changes["literal"] = {"payload__literal": "Hello World"}
    if PATTERNS[pattern].is_of_calls:
        changes["async_client"] = {"outstanding_max": 2, **open_loop(40, 5)}
    if not PATTERNS[pattern].is_one_way:
        changes.update({f"reply.{kind}": _replied(kind) for kind in REPLIES})
    return changes


def _withheld(cell: CellUnderTest) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, spec) for specs that the cell supports, but whose declaration lacks something.

    A node must refuse them like others, because it has no list of its own (C-03).
    """
    pattern = cell.patterns[0]
    good = base_spec(cell, pattern, PATTERNS[pattern].sender)
    plain: dict[str, dict[str, Any]] = {f"loop.{good['loop']}": {}, f"pacing.{good['pacing']}": {}}
    for name, changes in {**plain, **_changes_by_capability(pattern)}.items():
        if name in cell.capabilities:
            others = [other for other in cell.capabilities if other != name]
            spec = base_spec(cell, pattern, good["role"], **changes)
            yield name, {**spec, f"{DECLARED}capabilities": others}
    roles = [role for role in good[f"{DECLARED}roles"] if role != good["role"]]
    yield f"role {good['role']}", {**good, f"{DECLARED}roles": roles}
    size = good["payload.bytes"]
    sizes_max = {f"{DECLARED}{kind}_bytes_max": size - 1 for kind in ("payload", "record")}
    yield f"payload.bytes above {size - 1}", {**good, **sizes_max}
    if good["payload.encoding"] in ("bytes", "text"):
        yield f"payload.bytes below {size + 1}", {**good, f"{DECLARED}payload_bytes_min": size + 1}
    for name, value in list(cell.settings.items())[:1]:
        yield f"{name} = {value!r}", {**good, f"{DECLARED}allowed.{name}": [_other(value)]}


def _other(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    return value + "x" if isinstance(value, str) else value + 1


def _beyond_levels(cell: CellUnderTest) -> list[tuple[str, dict[str, Any]]]:
    """Return (name, spec) for each spec key whose value a level of a setting does not support."""
    cases: list[tuple[str, dict[str, Any]]] = []
    for setting, level, supported in levels_of(cell):
        spec = supported_spec(cell, setting, level, supported)
        others: dict[str, list[Any]] = {
            "payload.bytes": [size + 1 for size in supported.get("payload.bytes", [])[:1]],
            "payload.encoding": [
                kind for kind in encodings_of(spec["pattern"])
                if f"encoding.{kind}" in cell.capabilities
            ],
            "payload.literal": ["Hello World"],
        }  # fmt: skip
        for key in supported:
            values = [value for value in others.get(key, []) if value not in supported[key]]
            for value in values[:1]:
                name = f"{key} = {value!r} with settings.{setting} = {level}"
                cases.append((name, {**spec, key: value}))
        for pattern in set(cell.patterns) - set(supported.get("pattern", cell.patterns)):
            name = f"pattern {pattern} with settings.{setting} = {level}"
            cases.append((name, supported_spec(cell, setting, level, supported, pattern)))
    return cases


def levels_of(cell: CellUnderTest) -> Iterator[tuple[str, str, Mapping[str, Sequence[Any]]]]:
    """Yield the levels of settings that support only some specs, each with these values."""
    for setting, levels in cell.only.items():
        for level, supported in levels.items():
            yield setting, level, supported


def supported_spec(
    cell: CellUnderTest,
    setting: str,
    level: str,
    supported: Mapping[str, Sequence[Any]],
    pattern: str = "",
) -> dict[str, Any]:
    """Return a sender's spec with a level of a setting and the first of the supported values."""
    patterns = [name for name in cell.patterns if name in supported.get("pattern", cell.patterns)]
    pattern = pattern or patterns[0]
    spec = base_spec(cell, pattern, PATTERNS[pattern].sender)
    values = {key: values[0] for key, values in supported.items() if key != "pattern"}
    return {**spec, **values, f"settings.{setting}": level}


def undeclared(bench: Bench) -> list[Problem]:
    problems: list[Problem] = []
    for name, spec in (*_undeclared(bench.cell), *_withheld(bench.cell)):
        spec["peers.endpoints"] = list(bench.endpoints)
        # A kit that has no code for chains does not know their key `hop` (C-02).
        other_code = 2 if "hop" in spec else None
        node = bench.single(spec)
        problems += refusal(node, 3, "C-03", f"undeclared {name}", other_code=other_code)[0]
    return problems


def past_start(bench: Bench) -> list[Problem]:
    problems: list[Problem] = []
    pattern = bench.cell.patterns[0]
    with bench.group(pattern, pair(bench.cell, bench.cell, pattern)) as group:
        group.start()
        for node in group.nodes:
            node.go(time.monotonic_ns() - 1_000_000_000)
        for node in group.nodes:
            problems += refusal(node, 2, "C-08", "a start one second ago", AT_ONCE_S)[0]
    return problems


def dead_endpoints(bench: Bench, pattern: str) -> list[str]:
    """Return the endpoints of the services and of a killed listener."""
    role = bench.cell.listening_role(pattern)
    if role == "none":
        return list(bench.endpoints)
    listener = bench.single(bench.lone_spec(pattern, role))
    try:
        line = listener.wait_line("LISTENING", READY_TIMEOUT_MS / 1000 + HANG_S)
        if line is None or line.fields is None:
            raise Broken("C-06", f"{listener.label}: no LISTENING line; {listener.last_output()}")
        return [*bench.endpoints, *line.fields["endpoints"]]
    finally:
        listener.kill()


def no_peer(bench: Bench) -> list[Problem]:
    """Check nodes without a peer: a client must end with 4.

    Other roles may become READY if they report that they do not know their peers (`matched` null).
    """
    problems: list[Problem] = []
    for pattern in bench.cell.patterns:
        listening = bench.cell.listening_role(pattern)
        for role in PATTERNS[pattern].roles:
            if role == listening:
                continue
            spec = bench.lone_spec(pattern, role, ready_timeout_ms=1_000)
            spec["peers.endpoints"] = dead_endpoints(bench, pattern)
            node = bench.single(spec)
            ready = node.wait_line("READY", 1.0 + HANG_S)
            if ready is not None and ready.fields is not None:
                node.kill()
                calls = role in CALLING_ROLES
                if calls or ready.fields.get("matched") is not None:
                    text = f"{node.label}: READY reports matched {ready.fields.get('matched')}, "
                    problems.append(Problem("C-04", text + "but there is no peer"))
                continue
            problems += refusal(node, 4, "C-04", "there is no peer")[0]
    return problems


def service_lost(bench: Bench) -> list[Problem]:
    """Check that nodes end with 4 if no service process listens at the endpoint."""
    if not bench.endpoints:
        raise Skipped("the middleware has no service process")
    problems: list[Problem] = []
    pattern = bench.cell.patterns[0]
    for role in PATTERNS[pattern].roles:
        spec = bench.lone_spec(pattern, role, ready_timeout_ms=1_000)
        spec["peers.endpoints"] = [f"{HOST_ADDRESS}:9" for _ in bench.endpoints]
        problems += refusal(bench.single(spec), 4, "C-04", "there is no service process")[0]
    return problems


def scenarios() -> list[Scenario]:
    return [
        *(bad_keys(shard) for shard in range(SHARDS)),
        Scenario("command-line", ("C-01",), command_line),
        Scenario("undeclared", ("C-03",), undeclared),
        Scenario("past-start", ("C-08",), past_start),
        Scenario("no-peer", ("C-04",), no_peer),
        Scenario("service-lost", ("C-04",), service_lost),
    ]
