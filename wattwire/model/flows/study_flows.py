"""Parse `[[flow]]` tables, and divide a treatment with several flows into one part per flow.

A study with flows runs a sender and a receiver for each flow in the same run. A part is a treatment
with the pattern, the payload and the rate of one flow, so code for one pattern applies to it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wattwire.model.errors import UsageError, unknown
from wattwire.model.fields import given, listed_tables, needed, read_table
from wattwire.model.treatment import PAYLOAD_BYTES_MAX, SETTING, Level, Treatment

FLOWS = "flows"
"""Factor whose levels are sets of flows, such as "command+image"."""
FLOW = "flow"
"""Key of the study's tables, and first part of the keys of their levels."""
JOIN = "+"
"""Sign between the names of a set of flows."""
PLACE = "placement key (a placement maps it to a host)"
PLACE_SIGN = "@"
"""Sign between the name of a topology's node and its key of the placements."""
SENDER_WORD, RECEIVER_WORD = "sender", "receiver"
"""Default words of the placement for the ends of a flow."""
OWN_KEYS = ("payload_bytes", "rate_hz", "pattern")
"""Levels that each flow has for itself."""
RECEIVERS = "receivers"
"""Level of a flow of a topology: the nodes that receive it."""
PAYLOAD_BYTES, RATE_HZ = (8, PAYLOAD_BYTES_MAX), (1e-3, 1e6)
"""Smallest and largest values. A receiver identifies the sender by the first 8 bytes (C-21)."""
EXCLUDED_KEYS = (
    *OWN_KEYS, "interval_s", "clients", "loop", "count", "literal", "reply", "outstanding_max",
    "action_feedback", "server_language", "server_cell",
)  # fmt: skip
"""Keys that a study with flows must not set."""
COLUMN = re.compile(r"(?P<stem>\w+)\.flow\.(?P<flow>[A-Za-z][\w-]*)")
"""A column of one flow, such as latency_p50_us.flow.command."""
_NAME = re.compile(r"[A-Za-z][\w-]*")
_NAME_WORDS = "a name of letters, digits, _ and -, which begins with a letter"


@dataclass(frozen=True)
class FlowSpec:
    """A flow of a study: the messages of one sender to one receiver.

    `sender` and `receiver` are keys of the placement, whose hosts run the two ends. `settings` are
    those of this flow's nodes; they replace the study's settings.
    """

    name: str = needed(_NAME_WORDS, allows=_NAME.fullmatch)
    payload_bytes: int = given("an integer of {:,} to {:,}".format(*PAYLOAD_BYTES), 0, needed=True)
    rate_hz: float = given("a number of {:g} to {:,.0f}".format(*RATE_HZ), 0.0, needed=True)
    pattern: str = given("a pattern without replies", "topic", word="pattern")
    sender: str = given("a key of the placements", SENDER_WORD, word=PLACE, needed=True)
    receiver: str = given("a key of the placements", RECEIVER_WORD, word=PLACE, needed=True)
    settings: Mapping[str, Level] = given("a table of settings of the middleware", {})


@dataclass(frozen=True)
class TopologyFlow(FlowSpec):
    """A flow of a topology, from one of its nodes to several.

    `sender` and `receivers` are the names of nodes, each with PLACE_SIGN and a key of the placement
    if its host is not that of members.
    """

    receivers: tuple[str, ...] = ()


FLOWS_MAX = 500
"""Largest number of flows of a study. Every flow has at least two processes in the same run."""


def parse_flows(
    items: Any, patterns: Collection[str], places: Collection[str], where: str
) -> tuple[FlowSpec, ...]:
    """Parse and validate every `[[flow]]`.

    `patterns` are the patterns without replies, and `places` the keys of placements. Raises
    UsageError with the position, the value and the allowed values.
    """
    tables = listed_tables(items, FLOW, where)
    if len(tables) > FLOWS_MAX:
        raise UsageError(
            f"{where}: {FLOW}: found {len(tables):,} tables [[{FLOW}]]; allowed: {FLOWS_MAX} or "
            "less"
        )
    words = {"pattern": patterns, PLACE: places}
    defaults = {"sender": SENDER_WORD, "receiver": RECEIVER_WORD}
    flows = []
    for numbered_place, item in tables:
        name = item.get("name")
        has_name = isinstance(name, str) and name
        place = f"{where}: {FLOW} {name}" if has_name else numbered_place
        flows.append(read_table(FlowSpec, {**defaults, **item}, place, words))
        _check_range(flows[-1], place)
    for name, count in Counter(flow.name for flow in flows).items():
        if count > 1:
            raise UsageError(
                f"{where}: {FLOW}: found {count} flows with the name {name}; allowed: one. "
                "Rename the others, because a column and a factor level name a flow."
            )
    return tuple(flows)


def _check_range(flow: FlowSpec, place: str) -> None:
    for key, (low, high) in (("payload_bytes", PAYLOAD_BYTES), ("rate_hz", RATE_HZ)):
        value = getattr(flow, key)
        if not low <= value <= high:
            raise UsageError(f"{place}: {key}: found {value!r}; allowed: {low:,} to {high:,}")
    for name, level in flow.settings.items():
        if not isinstance(level, (str, int, float)):
            raise UsageError(
                f"{place}: settings.{name}: found {level!r}; allowed: one text, number or boolean"
            )


def flow_levels(flows: Sequence[FlowSpec]) -> dict[str, Level]:
    """Return the fixed levels of a study with these flows: `pattern`, `flows`, `flow.NAME.KEY`.

    A setting is the level `flow.NAME.settings.SETTING`.
    A treatment therefore contains its flows, and its key changes with them.
    """
    patterns = sorted({flow.pattern for flow in flows})
    levels: dict[str, Level] = {"pattern": JOIN.join(patterns)}
    levels[FLOWS] = JOIN.join(flow.name for flow in flows)
    for position, flow in enumerate(flows):
        own = {**asdict(flow), "position": position}
        del own["name"]
        own |= {f"{SETTING}{name}": level for name, level in own.pop("settings").items()}
        if isinstance(flow, TopologyFlow):
            own[RECEIVERS] = JOIN.join(own.pop(RECEIVERS))
            del own["receiver"]
        levels |= {f"{FLOW}.{flow.name}.{key}": value for key, value in own.items()}
    return levels


def names_in(level: object) -> list[str]:
    """Return the names in a level of FLOWS."""
    return str(level).split(JOIN)


def has_flow_of(column: str, levels: Mapping[str, Any]) -> bool:
    """Return whether a treatment has the flow of a column; true for other columns."""
    of_flow = COLUMN.fullmatch(column)
    return of_flow is None or of_flow["flow"] in names_in(levels.get(FLOWS, ""))


@dataclass(frozen=True)
class Member:
    """A node of a topology: a process with the ends of several flows.

    `place` is its key of the placement; "" is that of all members.
    """

    name: str
    place: str = ""


@dataclass(frozen=True)
class FlowPart:
    """A part of a treatment: the flow `name`, or the whole treatment if `name` is "".

    `position` is the flow's place among all `of` flows of the study.
    """

    name: str
    treatment: Treatment
    position: int = 0
    of: int = 1

    @property
    def sender(self) -> str:
        """Return the word of the placement for the sender's host; "" for the role's own host."""
        return self._word("sender", SENDER_WORD)

    @property
    def receiver(self) -> str:
        """Return the word of the placement for the receiver's host; "" for the role's own host."""
        return self._word("receiver", RECEIVER_WORD)

    def _word(self, key: str, default: str) -> str:
        word = str(self.treatment.get(f"{FLOW}.{self.name}.{key}", default))
        return "" if word == default else word

    @property
    def members(self) -> tuple[Member, ...]:
        """Return the nodes of a topology that have this flow, its sender first; () for others."""
        receivers = self.treatment.get(f"{FLOW}.{self.name}.{RECEIVERS}")
        if receivers is None:
            return ()
        words = [str(self.treatment[f"{FLOW}.{self.name}.sender"]), *names_in(receivers)]
        return tuple(Member(*word.split(PLACE_SIGN)) for word in words)

    @property
    def own_settings(self) -> dict[str, Level]:
        """Return the settings in the flow's own table, which replace those of the study."""
        prefix = f"{FLOW}.{self.name}.{SETTING}"
        levels = dict(self.treatment.levels) if self.name else {}
        return {k.removeprefix(prefix): v for k, v in levels.items() if k.startswith(prefix)}

    def token(self, token: str) -> str:
        """Return the token in the names of this flow's topics (C-18), from the run's token."""
        return f"{token}f{self.position}" if self.name else token


def flow_parts(treatment: Treatment) -> list[FlowPart]:
    """Return one part for each flow of a treatment, or the treatment as its only part."""
    levels = dict(treatment.levels)
    if FLOWS not in levels:
        return [FlowPart("", treatment)]
    by_flow: dict[str, dict[str, Level]] = {}
    common: dict[str, Level] = {}
    for key, level in levels.items():
        first, _, rest = key.partition(".")
        if first == FLOW and rest:
            name, _, own_key = rest.partition(".")
            by_flow.setdefault(name, {})[own_key] = level
        else:
            common[key] = level
    parts = []
    for name in names_in(levels[FLOWS]):
        own = by_flow[name]  # without the levels of the other flows, which would be quadratic
        part = {**common, **{key: own[key] for key in OWN_KEYS}}
        part |= {key: level for key, level in own.items() if key.startswith(SETTING)}
        part |= {f"{FLOW}.{name}.{key}": level for key, level in own.items()}
        if RECEIVERS in own:
            part["clients"] = len(names_in(own[RECEIVERS]))
        treatment = Treatment.of({}, part)
        parts.append(FlowPart(name, treatment, int(own["position"]), len(by_flow)))
    return parts


def check_name(flows: Iterable[FlowSpec], name: str, place: str) -> None:
    """Raise UsageError if a study with these flows has no flow `name`."""
    known = [flow.name for flow in flows]
    if not known:
        raise UsageError(
            f"{place}: the study has no flow {name}, because it has no table [[{FLOW}]]"
        )
    if name not in known:
        raise unknown(place, FLOW, name, known)
