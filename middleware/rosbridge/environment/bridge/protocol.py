"""The operations of the rosbridge protocol, version 2, for one client.

The bridge supports advertise, unadvertise, publish, subscribe, unsubscribe and set_level. It
answers operations that it rejects with a status of the level error. For clients with the level
info, it also confirms each advertise and subscribe when its topic has a connection to another end.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from messages import COMPRESSIONS, Encoded, Refused, filled
from outbox import Outbox
from topics import Publication, Subscription, Topics

LEVELS = ("none", "error", "warning", "info")
OPERATIONS = ("advertise", "unadvertise", "publish", "subscribe", "unsubscribe", "set_level")
UNSUPPORTED = {"throttle_rate": 0, "fragment_size": None}
"""Options of subscribe of which this bridge supports only one value."""
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
            self._status("error", f"{fields.get('op', 'message')}: {error}", fields.get("id"))

    def _status(self, level: str, text: str, operation_id: Any) -> None:
        if LEVELS.index(level) > LEVELS.index(self._level):
            return
        fields = {"op": "status", "level": level, "msg": text}
        if operation_id is not None:
            fields["id"] = operation_id
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
        self._confirm(fields, topic, publication)

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
        if compression not in COMPRESSIONS:
            allowed = ", ".join(COMPRESSIONS)
            raise Refused(f"compression: found {compression!r:.80}; allowed: {allowed}")
        self._subscriptions[topic] = subscription = await asyncio.to_thread(
            self._topics.subscribe, topic, kind, compression, self.deliver, self
        )
        self._confirm(fields, topic, subscription)

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

    # --- confirmations ------------------------------------------------------------------------

    def _confirm(self, fields: dict[str, Any], topic: str, end: Publication | Subscription) -> None:
        """Report the first connection of a topic, or that the types of its ends differ."""
        key = (fields["op"], topic)
        self._end_confirmation(*key)
        report = self._report_connection(topic, end, fields.get("id"))
        self._confirmations[key] = asyncio.create_task(report)

    async def _report_connection(
        self, topic: str, end: Publication | Subscription, operation_id: Any
    ) -> None:
        while not end.is_connected():
            if mismatch := self._topics.mismatches.of_topic(topic):
                self._status(
                    "error", f"{topic} has an end of another type: {mismatch}", operation_id
                )
                return
            await asyncio.sleep(LOOK_S)
        self._status("info", "connected", operation_id)

    def _end_confirmation(self, name: str, topic: str) -> None:
        if task := self._confirmations.pop((name, topic), None):
            task.cancel()

    # --- the end ------------------------------------------------------------------------------

    async def _end_publication(self, topic: str) -> None:
        self._end_confirmation("advertise", topic)
        del self._publications[topic]
        await asyncio.to_thread(self._topics.unadvertise, topic, self)

    async def _end_subscription(self, topic: str) -> None:
        self._end_confirmation("subscribe", topic)
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
