"""Publishers and subscribers of the bridge's ROS node, which its clients share."""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from collections.abc import Callable, Sized
from typing import Any

import rosgraph
import rospy
from messages import COMPRESSIONS, Encoded, Refused, message_class

Send = Callable[[Encoded], None]
Receivers = dict[object, tuple[str, Send]]
"""A topic's client → the compression of its messages, and the function that queues one."""
RETIRE_S = 10.0
"""Time for which a topic stays advertised without clients. rospy's queues are then empty, and a
client that connects again finds its subscribers. rosbridge_suite uses the same time."""
TOPICS_MAX = 256
"""Maximum number of topics in each direction, of all clients together. Each has threads."""


class Publication:
    """A publisher and the clients that advertised its topic."""

    def __init__(self, kind: str, publisher: rospy.Publisher) -> None:
        self.kind = kind
        self.clients: set[object] = set()
        self.publisher = publisher

    def publish(self, message: Any) -> None:
        """Publish a message. Raise Refused for a value that ROS cannot serialize."""
        try:
            self.publisher.publish(message)
        except (rospy.ROSException, ValueError, OverflowError) as error:
            # rospy keeps the part that it has serialized, and would send it with the next message.
            self.publisher.impl.buff.seek(0)
            self.publisher.impl.buff.truncate(0)
            raise Refused(f"msg: {error}") from error

    def is_connected(self) -> bool:
        return bool(self.publisher.get_num_connections())


class Subscription:
    """A subscriber and the clients of its topic. A message is encoded once per compression."""

    def __init__(
        self, name: str, kind: str, receivers: Receivers, queue_size: int, tcp_nodelay: bool
    ) -> None:
        self.kind = kind
        self.receivers = receivers
        self._name = name
        self._subscriber = rospy.Subscriber(
            name, message_class(kind), self._on_message, queue_size=queue_size,
            tcp_nodelay=tcp_nodelay,
        )  # fmt: skip

    def _on_message(self, message: Any) -> None:
        """Send a message to the clients, on rospy's thread of the connection."""
        encoded: dict[str, Encoded] = {}
        for compression, send in list(self.receivers.values()):
            if compression not in encoded:
                encoded[compression] = COMPRESSIONS[compression](self._name, message)
            send(encoded[compression])

    def is_connected(self) -> bool:
        # get_num_connections counts connections whose types are not compared yet.
        connections = self._subscriber.impl.connections if self._subscriber.impl else []
        return any(connection.md5sum is not None for connection in connections)

    def close(self) -> None:
        self._subscriber.unregister()


class Topics:
    """The topics of all clients. Its methods may wait for the master; any thread may call them."""

    def __init__(self, queue_size: int, tcp_nodelay: bool) -> None:
        self._queue_size, self._tcp_nodelay = queue_size, tcp_nodelay
        self._lock = threading.Lock()
        self._publications: dict[str, Publication] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self.mismatches = Mismatches()
        for logger in ("rospy.internal", "rosout"):
            logging.getLogger(logger).addHandler(self.mismatches)

    def advertise(self, name: str, kind: str, is_latched: bool, client: object) -> Publication:
        """Add a client to the publishers of a topic. Raise Refused if its type differs."""
        _check_master()
        with self._lock:
            publication = self._publications.get(name)
            if publication is None:
                _check_room(self._publications)
                self.mismatches.forget(name)
                publication = Publication(kind, self._publisher(name, kind, is_latched))
                self._publications[name] = publication
            _check_kind(name, kind, publication.kind)
            publication.clients.add(client)
            return publication

    def _publisher(self, name: str, kind: str, is_latched: bool) -> rospy.Publisher:
        return rospy.Publisher(
            name, message_class(kind), latch=is_latched, queue_size=self._queue_size
        )

    def unadvertise(self, name: str, client: object) -> None:
        """Remove a client from the publishers of a topic, and retire an unused topic later."""
        with self._lock:
            publication = self._publications[name]
            publication.clients.discard(client)
            if not publication.clients:
                timer = threading.Timer(RETIRE_S, self._retire, (name, publication))
                timer.daemon = True
                timer.start()

    def _retire(self, name: str, publication: Publication) -> None:
        with self._lock:
            if not publication.clients and self._publications.get(name) is publication:
                del self._publications[name]
                publication.publisher.unregister()

    def subscribe(
        self, name: str, kind: str, compression: str, send: Send, client: object
    ) -> Subscription:
        """Add a client to the receivers of a topic. Raise Refused if its type differs."""
        _check_master()
        with self._lock:
            subscription = self._subscriptions.get(name)
            if subscription is None:
                _check_room(self._subscriptions)
                self.mismatches.forget(name)
                # A latched message may arrive at once, so the first client is added before.
                subscription = Subscription(
                    name, kind, {client: (compression, send)}, self._queue_size, self._tcp_nodelay
                )
                self._subscriptions[name] = subscription
            _check_kind(name, kind, subscription.kind)
            subscription.receivers[client] = (compression, send)
            return subscription

    def unsubscribe(self, name: str, client: object) -> None:
        with self._lock:
            subscription = self._subscriptions[name]
            subscription.receivers.pop(client, None)
            if not subscription.receivers:
                del self._subscriptions[name]
                subscription.close()


def _check_master() -> None:
    """Raise Refused unless the master answers, because rospy registers topics without end."""
    if not rosgraph.is_master_online():
        raise Refused(f"no master at {rosgraph.get_master_uri()}; is rosmaster running?")


def _check_room(topics: Sized) -> None:
    if len(topics) >= TOPICS_MAX:
        raise Refused(
            f"topic: this bridge has {len(topics)} topics; allowed: {TOPICS_MAX}. Those without "
            f"clients end after {RETIRE_S:g} s"
        )


def _check_kind(name: str, kind: str, present_kind: str) -> None:
    if kind != present_kind:
        raise Refused(
            f"type: found {kind!r}; allowed for {name}: {present_kind!r}, with which another "
            "client uses this topic"
        )


class Mismatches(logging.Handler):
    """rospy's reports of connections that failed because the types of a topic differ."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._reports: deque[str] = deque(maxlen=100)

    def emit(self, record: logging.LogRecord) -> None:
        report = record.getMessage()
        if "md5sum" in report or "types do not match" in report:
            self._reports.append(report)

    def of_topic(self, name: str) -> str:
        """Return the last report that names a topic, or ""."""
        return next((text for text in reversed(self._reports) if _names(text, name)), "")

    def forget(self, name: str) -> None:
        """Remove the reports that name a topic, which concern its earlier ends."""
        kept = [text for text in list(self._reports) if not _names(text, name)]
        self._reports = deque(kept, self._reports.maxlen)


def _names(report: str, name: str) -> bool:
    return re.search(re.escape(name) + r"(?![\w/])", report) is not None
