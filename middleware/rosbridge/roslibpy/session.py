"""A client of the bridge on roslibpy: connection, topics, READY, and loss of the bridge."""

from __future__ import annotations

import base64
import binascii
import logging
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import roslibpy
from clients import bridge_endpoint, data_in_json, effective, message_type
from roslibpy.core import RosTimeoutError
from wattwire_kit import Kit, MiddlewareFailed

AWAIT_CONNECTION = "/rosbridge/await_connection"
UNHANDLED_STATUS = 'No handler registered for operation "status"'


class Session:
    """A connected client. The constructor raises MiddlewareFailed if no bridge answers."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.begin_ns = kit.now()
        self._prefix = f"/wattwire_{kit.spec['run']}"
        self._publisher: Any = None
        self._is_ready = False
        self._failure = ""
        self._failed = threading.Event()
        self._connected: set[str] = set()
        self._topics: list[str] = []
        logging.getLogger("roslibpy").addHandler(Errors(self._on_error))
        host, port = bridge_endpoint(kit)
        self._endpoint = f"websocket {host}:{port}"
        self._ros = roslibpy.Ros(host, port)
        try:
            self._ros.run(kit.spec["ready_timeout_ms"] / 1e3)
        except RosTimeoutError as error:
            raise MiddlewareFailed(
                f"no bridge at {self._endpoint} ({error}); is it running?"
            ) from error
        # The library would connect again, and lose messages without a report.
        self._ros.on("close", lambda _protocol: self._fail("the bridge was lost"))

    # --- failures, which only the main thread can raise ---------------------------------------

    def _fail(self, reason: str) -> None:
        self._failure = self._failure or reason
        self._failed.set()

    def _on_error(self, error: str, is_status: bool) -> None:
        """Fail because the library reports an error, unless the service reports the reason.

        The library reports the arrival of a status, but not its text.
        """
        if not is_status:
            self._fail(error)
        elif self._is_ready:
            self._fail("the bridge reports an error whose text roslibpy hides")

    def poll(self, timeout_s: float) -> None:
        """Wait, and raise MiddlewareFailed if a callback or the connection has failed."""
        if self._failed.wait(timeout_s):
            raise MiddlewareFailed(self._failure)

    # --- topics -------------------------------------------------------------------------------

    def _topic(self, name: str, **options: Any) -> Any:
        topic = f"{self._prefix}/{name}"
        self._topics.append(topic)
        return roslibpy.Topic(self._ros, topic, message_type(self.kit), **options)

    def publish_on(self, topic: str, latch: bool = False) -> None:
        self._publisher = self._topic(topic, latch=latch)
        self._publisher.advertise()

    def subscribe(self, topic: str, on_payload: Callable[[Any], object]) -> None:
        self._topic(topic).subscribe(lambda message: on_payload(self._payload(message)))

    def _payload(self, message: Any) -> str | bytes:
        try:
            data = message["data"]
            if self.kit.text and isinstance(data, str):
                return data
            return base64.b64decode(data, validate=True)
        except (LookupError, TypeError, binascii.Error) as error:
            raise MiddlewareFailed(
                f"the bridge sent {message!r:.120}, which is no {message_type(self.kit)}"
            ) from error

    def publish(self, data: Any) -> None:
        """Hand a message over to the library's thread, which does not report that it was sent."""
        if self._failure:
            raise MiddlewareFailed(self._failure)
        self._publisher.publish({"data": data_in_json(self.kit, data)})

    # --- READY and the end --------------------------------------------------------------------

    def await_connected(self) -> int:
        """Wait until the bridge answers that the topics are connected; return the time in ns.

        The library hides the bridge's statuses, so this client calls the bridge's service. The
        time counts from the constructor.
        """
        service = roslibpy.Service(self._ros, AWAIT_CONNECTION, "rosbridge/AwaitConnection")
        for topic in self._topics:
            service.call(
                roslibpy.ServiceRequest({"topic": topic}),
                callback=lambda _values, topic=topic: self._connected.add(topic),
                errback=lambda reason: self._fail(f"the bridge reports: {reason}"),
            )
        count = self.kit.spec["peers.count"]
        is_connected = lambda: len(self._connected) == len(self._topics)  # noqa: E731
        self.kit.await_peers(lambda: count if is_connected() else 0, self.poll)
        return self.kit.now() - self.begin_ns

    def ready(self, discovery_ns: int) -> None:
        self._is_ready = True
        self.kit.ready(
            matched=None,
            discovery_ns=discovery_ns,
            library=("roslibpy", version("roslibpy"), f"autobahn {version('autobahn')}"),
            effective=effective(self.kit, self._endpoint),
            guarantee=("best_effort", "per_sender", "drop_oldest"),
        )

    def close(self) -> None:
        """Let the bridge read and publish what was sent, which it does not confirm, and leave."""
        if self._publisher:
            time.sleep(self.kit.spec["quiet_ms"] / 1e3)
        self._ros.terminate()


class Errors(logging.Handler):
    """Passes on errors that the library logs, such as the exceptions of callbacks."""

    def __init__(self, on_error: Callable[[str, bool], object]) -> None:
        super().__init__(logging.ERROR)
        self._on_error = on_error

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, MiddlewareFailed):
            self._on_error(str(error), False)
            return
        text = str(error.args[0] if error and error.args else record.getMessage())
        self._on_error(f"roslibpy reports: {text}", text == UNHANDLED_STATUS)
