"""The operations of the rosbridge protocol, version 2, for one client.

The bridge supports advertise, unadvertise, publish, subscribe, unsubscribe and set_level. It
answers operations that it rejects with a status of the level error. For clients with the level
info, it also confirms each advertise and subscribe when its topic has a connection to another end.
Some libraries hide statuses from their users, so call_service reaches a service that answers when
a topic of the client has these connections.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Sequence
from typing import Any

from messages import COMPRESSIONS, Encoded, Refused, filled
from outbox import Outbox
from topics import Publication, Subscription, Topics

LEVELS = ("none", "error", "warning", "info")
OPERATIONS = (
    "advertise", "unadvertise", "publish", "subscribe", "unsubscribe", "set_level", "call_service",
)  # fmt: skip
AWAIT_CONNECTION = "/rosbridge/await_connection"
"""The only service, which the bridge itself provides: {"topic": …} → {"connected": true}."""
UNSUPPORTED = {"throttle_rate": 0, "fragment_size": None}
"""Options of subscribe of which this bridge supports only one value."""
End = Publication | Subscription
LOOK_S = 0.005
"""Period of looks for a connection, because rospy reports only those of publishers."""


class Client:
    """One client; `close` ends what it advertised and subscribed."""

    def __init__(self, topics: Topics, outbox: Outbox, message_bytes_max: int | None) -> None:
        self._topics = topics
        self._outbox = outbox
        self._message_bytes_max = message_bytes_max
        self._level = LEVELS[1]
        self._publications: dict[str, Publication] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._refusals: dict[str, str] = {}
        self._confirmations: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def handle(self, raw: str | bytes) -> None:
        """Execute one operation, or answer it with an error."""
        fields: dict[str, Any] = {}
        try:
            fields = parsed(raw)
            name = fields.get("op")
            if name not in OPERATIONS:
                raise Refused(f"op: found {name!r}; allowed: {', '.join(OPERATIONS)}")
            if name == "publish":
                self._publish(fields)
            else:
                await getattr(self, f"_{name}")(fields)
        except Refused as error:
            if fields.get("op") == "call_service":
                self._respond(fields, False, str(error))
                return
            reason = f"{fields.get('op', 'message')}: {error}"
            self._status("error", reason, fields.get("id"))
            if fields.get("op") in ("advertise", "subscribe"):
                self._refusals[str(fields.get("topic"))] = reason

    def _status(self, level: str, text: str, operation_id: Any) -> None:
        if LEVELS.index(level) > LEVELS.index(self._level):
            return
        fields = {"op": "status", "level": level, "msg": text}
        if operation_id is not None:
            fields["id"] = operation_id
        self._outbox.put(json.dumps(fields))

    def _respond(self, call: dict[str, Any], is_executed: bool, values: Any) -> None:
        """Answer a call of a service; `values` of a failed call is the reason."""
        fields = {"op": "service_response", "service": call.get("service"), "values": values}
        fields |= {"result": is_executed, **({"id": call["id"]} if "id" in call else {})}
        self._outbox.put(json.dumps(fields))

    def deliver(self, message: Encoded) -> None:
        """Queue a message of a topic for the client; any thread may call this method."""
        limit = self._message_bytes_max
        if limit is None or len(message) <= limit:  # JSON is written in ASCII
            self._outbox.put(message)
            return
        text = f"publish: a message has {len(message)} bytes; allowed over this transport: {limit}"
        self._status("error", f"{text}. Use TCP or WebSocket, or shorter messages", None)

    # --- operations ---------------------------------------------------------------------------

    async def _set_level(self, fields: dict[str, Any]) -> None:
        level = fields.get("level")
        if level not in LEVELS:
            raise Refused(f"level: found {level!r}; allowed: {', '.join(LEVELS)}")
        self._level = level

    async def _advertise(self, fields: dict[str, Any]) -> None:
        topic, kind = text_of(fields, "topic"), text_of(fields, "type")
        is_latched = bool(fields.get("latch", False))
        self._publications[topic] = publication = await asyncio.to_thread(
            self._topics.advertise, topic, kind, is_latched, self
        )
        report = self._report_connection(topic, publication, fields.get("id"))
        self._confirm("advertise", topic, report)

    async def _unadvertise(self, fields: dict[str, Any]) -> None:
        topic = text_of(fields, "topic")
        self._own(self._publications, topic, "advertised")
        await self._end_publication(topic)

    def _publish(self, fields: dict[str, Any]) -> None:
        topic = text_of(fields, "topic")
        publication = self._own(self._publications, topic, "advertised")
        message = filled(publication.kind, fields.get("msg", {}), "msg")
        publication.publish(message)

    async def _subscribe(self, fields: dict[str, Any]) -> None:
        topic, kind = text_of(fields, "topic"), text_of(fields, "type")
        for option, supported in UNSUPPORTED.items():
            if fields.get(option, supported) != supported:
                value = fields[option]
                raise Refused(f"{option}: found {value!r}; this bridge supports only {supported!r}")
        compression = fields.get("compression", "none")
        if not isinstance(compression, str) or compression not in COMPRESSIONS:
            allowed = ", ".join(COMPRESSIONS)
            raise Refused(f"compression: found {compression!r:.80}; allowed: {allowed}")
        self._subscriptions[topic] = subscription = await asyncio.to_thread(
            self._topics.subscribe, topic, kind, compression, self.deliver, self
        )
        report = self._report_connection(topic, subscription, fields.get("id"))
        self._confirm("subscribe", topic, report)

    async def _unsubscribe(self, fields: dict[str, Any]) -> None:
        topic = text_of(fields, "topic")
        self._own(self._subscriptions, topic, "subscribed")
        await self._end_subscription(topic)

    @staticmethod
    def _own(own: dict[str, Any], topic: str, past: str) -> Any:
        if topic not in own:
            allowed = ", ".join(own) or "none"
            raise Refused(
                f"topic: found {topic!r}, which this client has not {past}; allowed: {allowed}"
            )
        return own[topic]

    async def _call_service(self, fields: dict[str, Any]) -> None:
        service, arguments = text_of(fields, "service"), fields.get("args")
        if service != AWAIT_CONNECTION:
            raise Refused(f"service: found {service!r:.80}; allowed: {AWAIT_CONNECTION}")
        if not isinstance(arguments, dict):
            raise Refused(f'args: found {arguments!r:.80}; allowed: {{"topic": …}}')
        topic = text_of(arguments, "topic")
        own = (self._publications, self._subscriptions)
        ends: list[End] = [topics[topic] for topics in own if topic in topics]
        if not ends and topic in self._refusals:
            raise Refused(self._refusals[topic])
        if not ends:
            allowed = ", ".join({**self._publications, **self._subscriptions}) or "none"
            raise Refused(f"args.topic: found {topic!r:.80}; allowed: {allowed}")
        self._confirm("call_service", topic, self._respond_to_connection(topic, ends, fields))

    # --- confirmations ------------------------------------------------------------------------

    def _confirm(self, name: str, topic: str, report: Coroutine[Any, Any, None]) -> None:
        """Start to wait for the connections of a topic, in place of an earlier operation."""
        self._end_confirmation(name, topic)
        self._confirmations[name, topic] = asyncio.create_task(report)

    async def _await_connections(self, topic: str, ends: Sequence[End]) -> None:
        """Wait until each end is connected. Raise Refused if the types of the topic differ."""
        while not all(end.is_connected() for end in ends):
            if mismatch := self._topics.mismatches.of_topic(topic):
                raise Refused(f"{topic} has an end of another type: {mismatch}")
            await asyncio.sleep(LOOK_S)

    async def _report_connection(self, topic: str, end: End, operation_id: Any) -> None:
        try:
            await self._await_connections(topic, [end])
        except Refused as error:
            self._status("error", str(error), operation_id)
            return
        self._status("info", "connected", operation_id)

    async def _respond_to_connection(
        self, topic: str, ends: Sequence[End], call: dict[str, Any]
    ) -> None:
        try:
            await self._await_connections(topic, ends)
        except Refused as error:
            self._respond(call, False, str(error))
            return
        self._respond(call, True, {"connected": True})

    def _end_confirmation(self, name: str, topic: str) -> None:
        if task := self._confirmations.pop((name, topic), None):
            task.cancel()

    # --- the end ------------------------------------------------------------------------------

    async def _end_publication(self, topic: str) -> None:
        self._end_confirmation("advertise", topic)
        self._end_confirmation("call_service", topic)
        del self._publications[topic]
        await asyncio.to_thread(self._topics.unadvertise, topic, self)

    async def _end_subscription(self, topic: str) -> None:
        self._end_confirmation("subscribe", topic)
        self._end_confirmation("call_service", topic)
        del self._subscriptions[topic]
        await asyncio.to_thread(self._topics.unsubscribe, topic, self)

    async def close(self) -> None:
        for topic in list(self._publications):
            await self._end_publication(topic)
        for topic in list(self._subscriptions):
            await self._end_subscription(topic)


def parsed(raw: str | bytes) -> dict[str, Any]:
    """Return the fields of an operation in JSON. Raise Refused if it is no object."""
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Refused(f"found {raw!r:.80}; allowed: an object in JSON ({error})") from error
    if not isinstance(fields, dict):
        raise Refused(f"found {raw!r:.80}; allowed: an object in JSON")
    return fields


def text_of(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value:
        raise Refused(f"{key}: found {value!r:.80}; allowed: a string")
    return value
