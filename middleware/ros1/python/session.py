"""A node at the run's master: registration, publishers, subscribers, READY, and the end."""

from __future__ import annotations

import logging
import os
import socket
import time
import xmlrpc.client
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

# The spec alone configures a node (C-01), so variables of a sourced ROS have no effect.
for _name in [name for name in os.environ if name.startswith("ROS")]:
    del os.environ[_name]

import rospy  # noqa: E402
from std_msgs.msg import String, UInt8MultiArray  # noqa: E402
from wattwire_kit import BadSpec, Kit, MiddlewareFailed, SendFailed  # noqa: E402


class Session:
    """A registered node. The constructor raises MiddlewareFailed if no master answers."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.type = String if kit.text else UInt8MultiArray
        self.latched = False
        self._prefix = f"/wattwire_{kit.spec['run']}"
        self._publisher: Any = None
        self._subscriber: Any = None
        self._outgoing = self.type()
        self.begin_ns = kit.now()
        host, port = self._endpoint()
        self._uri = f"http://{host}:{port}/"
        folder = os.path.abspath(kit.out)
        os.environ.update(
            ROS_MASTER_URI=self._uri,
            ROS_IP=kit.spec["host.address"],
            ROS_HOME=folder,
            ROS_LOG_DIR=folder,
        )
        self._ask_master(host, port)
        name = f"wattwire_{kit.spec['run']}_{kit.spec['node']}"
        rospy.init_node(name, argv=[], disable_signals=True)
        self._warnings = Warnings()
        for logger in ("rospy.internal", "rosout"):
            logging.getLogger(logger).addHandler(self._warnings)

    def _endpoint(self) -> tuple[str, int]:
        endpoints = self.kit.spec["peers.endpoints"]
        host, _, port = endpoints[0].rpartition(":") if endpoints else ("", "", "")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise BadSpec(
                "peers.endpoints", endpoints, "the master as HOST:PORT, first in the list"
            )
        return host, int(port)

    def _ask_master(self, host: str, port: int) -> None:
        """Raise MiddlewareFailed unless a master answers, because init_node waits without end."""
        try:
            socket.create_connection((host, port), self.kit.spec["ready_timeout_ms"] / 1e3).close()
            self._master("getPid")
        except (OSError, xmlrpc.client.Error) as error:
            raise MiddlewareFailed(
                f"no master at {self._uri} ({error}); is rosmaster running?"
            ) from error

    def _master(self, method: str) -> Any:
        """Return the value of the master's answer to a call without arguments."""
        proxy = xmlrpc.client.ServerProxy(self._uri)
        return getattr(proxy, method)(self._prefix)[2]

    # --- topics -------------------------------------------------------------------------------

    def name(self, topic: str) -> str:
        return f"{self._prefix}/{topic}"

    def publish_on(self, topic: str, latch: bool = False) -> None:
        self.latched = latch
        self._publisher = rospy.Publisher(
            self.name(topic), self.type, latch=latch, queue_size=self.kit.setting("queue_size")
        )

    def subscribe(self, topic: str, callback: Callable[[Any], object]) -> None:
        self._subscriber = rospy.Subscriber(
            self.name(topic),
            self.type,
            callback,
            queue_size=self.kit.setting("queue_size"),
            tcp_nodelay=self.kit.setting("tcp_nodelay"),
        )

    def publish(self, data: Any) -> None:
        """Publish a payload; rospy serializes it before it returns."""
        if self.kit.text and not isinstance(data, str):
            data = data.decode("utf-8", "replace")
        self._outgoing.data = data
        try:
            self._publisher.publish(self._outgoing)
        except rospy.ROSException as error:
            raise SendFailed(str(error)) from error

    # --- READY and the end --------------------------------------------------------------------

    def matched(self) -> int:
        """Return the number of connected peers; a relay's count begins with its successor."""
        readers = self._publisher.get_num_connections() if self._publisher else None
        writers = None
        if self._subscriber:
            # get_num_connections counts connections whose types are not compared yet.
            connections = self._subscriber.impl.connections
            writers = sum(connection.md5sum is not None for connection in connections)
        if self.kit.spec["role"] == "relay":
            return 1 + (writers or 0) if readers else 0
        return min(count for count in (readers, writers) if count is not None)

    def await_matched(self) -> int:
        """Wait for the peers; return the time since the constructor in ns."""

        def matched() -> int:
            if self._warnings.mismatch:
                raise TypeMismatch(self._warnings.mismatch)
            return self.matched()

        try:
            self.kit.await_peers(matched)
        except TypeMismatch as error:
            raise MiddlewareFailed(
                f"a peer has a topic of this run with another type: {error}; this cell uses "
                f"{self.type._type} ({self.type._md5sum})"
            ) from error
        except MiddlewareFailed as error:
            raise MiddlewareFailed(f"{error} {self._explanation()}") from error
        return self.kit.now() - self.begin_ns

    def _explanation(self) -> str:
        """Return what the master and rospy's warnings say about missing peers."""
        try:
            types = dict(self._master("getTopicTypes"))
            publishers, subscribers, _ = self._master("getSystemState")
        except (OSError, xmlrpc.client.Error) as error:
            return f"The master at {self._uri} no longer answers ({error})."
        if self._warnings.last:
            return f"rospy reports: {self._warnings.last}"
        for end in (self._publisher, self._subscriber):
            registered = types.get(end.name, self.type._type) if end else self.type._type
            if registered != self.type._type:
                return (
                    f"{end.name} has the type {registered} at the master; this cell publishes and "
                    f"subscribes {self.type._type} ({self.type._md5sum})."
                )
        nodes = {name for _, names in publishers + subscribers for name in names}
        if others := sorted(name for name in nodes if not name.startswith(self._prefix + "_")):
            return (
                f"The master at {self._uri} has nodes that are not of this run, such as "
                f"{others[0]}; is it the master of run {self.kit.spec['run']}?"
            )
        return f"The master at {self._uri} knows no other node."

    def ready(self, discovery_ns: int) -> None:
        has_peers = self._publisher or self._subscriber
        self.kit.ready(
            matched=self.matched() if has_peers else None,
            discovery_ns=discovery_ns,
            library=("rospy", version("rospy"), f"std_msgs {self.type._md5sum}"),
            effective={
                "tcp_nodelay": self._nodelay(),
                "latch": self.latched,
                "type": self.type._type,
                "protocol": "TCPROS",
                "transport": "tcp/ipv4",
            },
            guarantee=("best_effort", "per_sender", "drop_oldest"),
        )

    def _nodelay(self) -> bool:
        """Return the option of a publisher's connection, or the setting if there is none yet."""
        connections = self._publisher.impl.connections if self._publisher else []
        for connection in connections:
            option = connection.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            return bool(option)
        return bool(self.kit.setting("tcp_nodelay"))

    def close(self) -> None:
        """Let rospy's threads send what is queued; it has no call that waits for this."""
        if self._publisher:
            time.sleep(self.kit.spec["quiet_ms"] / 1e3)


class TypeMismatch(Exception):
    """A connection failed because the peer's type differs, which no retry changes."""


class Warnings(logging.Handler):
    """Keeps rospy's last warning or error, and the last on the types of a connection."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = self.mismatch = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()
        if "md5sum" in self.last or "types do not match" in self.last:
            self.mismatch = self.last
