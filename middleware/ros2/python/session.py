"""The part that all roles share: a ROS node with the default executor, and its QoS."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from interfaces import check_message
from network import limit_to_interface
from process import (
    client_library,
    configure_process,
    domain_of,
    loaded_libraries,
    remove_dead_memory,
    transports_in_use,
)
from security import configure_security
from wattwire_kit import Kit, MiddlewareFailed


class Session:
    """A ROS node. `close` releases all its resources."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        check_message(kit)
        self.profile_sha256 = configure_process(kit)
        self.security = configure_security(kit)
        remove_dead_memory()
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.signals import SignalHandlerOptions
        from rclpy.task import Future

        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        self.prefix = f"/wattwire_{kit.spec['run']}"
        self.node = rclpy.create_node(f"wattwire_{kit.spec['role']}_{kit.spec['node']}")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self._over: Any = None
        self._end: Future = Future()
        self.created_ns = kit.now()  # the role's endpoints follow at once
        self.rmw = rclpy.get_rmw_implementation_identifier()
        if kit.setting("rmw") and self.rmw != kit.setting("rmw"):
            raise MiddlewareFailed(f"settings.rmw: wanted {kit.setting('rmw')}, loaded {self.rmw}")
        self.transports = transports_in_use(kit.setting("transports"), self.rmw)
        limit_to_interface(kit, self.rmw)

    def qos(self, durability: str = "volatile", part: Kit | None = None) -> Any:
        """Return the QoS profile of the settings of this node, or of a part of a member.

        ROS requires volatile services and actions.
        """
        from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

        setting = (part or self.kit).setting
        return QoSProfile(
            reliability=ReliabilityPolicy[setting("reliability").upper()],
            history=HistoryPolicy[setting("history").upper()],
            depth=setting("depth"),
            durability=DurabilityPolicy[durability.upper()],
        )

    def spin_once(self, timeout_s: float) -> None:
        self.executor.spin_once(timeout_sec=timeout_s)

    def spin_until_end(self) -> None:
        """Spin until the kit ends the window, or until `interrupt`.

        There is no timeout, because rclpy creates a timer for each wait that has one.
        """
        self.kit.on_end(self.interrupt)
        self.executor.spin_until_future_complete(self._end)

    def interrupt(self) -> None:
        """End `spin_until_end`. Any thread may call this, also before the spin."""
        self._end.set_result(None)

    def drive(self, act: Callable[[Any, bytearray], None]) -> None:
        """Call `act(slot, buffer)` for each slot, until STOP; replies run on this executor."""
        kit = self.kit
        if kit.spec["pacing"] == "native" and kit.spec["loop"] == "open":
            kit.wait_go()
            self._spin_native(act)
            kit.end_schedule(self.spin_once)
        else:
            kit.drive(act, self.spin_once)

    def _spin_native(self, act: Callable[[Any, bytearray], None]) -> None:
        """Spin with ticks of a ROS timer; no timeout of the cell wakes the executor."""
        from rclpy.task import Future

        kit = self.kit
        self._over = Future()

        def on_timer() -> None:
            slot = kit.tick()
            if slot is not None:
                act(slot, kit.begin(slot))
            self.settle()

        def on_stop() -> None:
            kit.wait_stop()
            if not self._over.done():
                self._over.set_result(None)

        threading.Thread(target=on_stop, name="wattwire-stop", daemon=True).start()
        kit.wait_timer_birth()
        timer = self.node.create_timer(kit.period_ns / 1e9, on_timer)
        self.executor.spin_until_future_complete(self._over)
        timer.cancel()

    def settle(self) -> None:
        """End a native schedule when its last message is resolved."""
        if self._over is not None and not self._over.done() and self.kit.finished():
            self._over.set_result(None)

    def await_clients(self, service: str) -> None:
        """Print READY of a server when the graph shows its clients; clients probe for the match."""
        kit = self.kit
        if not hasattr(self.node, "count_clients"):  # rclpy before Jazzy does not report clients
            self.ready(None, self.requested_qos())
            return

        def clients() -> int:
            return self.node.count_clients(service)

        kit.await_peers(clients, self.spin_once)
        self.ready(clients(), self.requested_qos())

    def ready(
        self,
        matched: int | None,
        granted: dict[str, Any],
        parts: Sequence[dict[str, Any]] = (),
    ) -> None:
        """Print READY with the QoS in force; `matched` is None if ROS does not report it.

        `parts` are the entries of a member's parts.
        """
        kit = self.kit
        reach = limit_to_interface(kit, self.rmw)  # the role's endpoints may have opened sockets
        discovery_ns = None if matched is None else kit.now() - self.created_ns
        reliable = granted["reliability"] == "reliable"
        effective = {
            "distribution": os.environ["WATTWIRE_ROS2_DISTRIBUTION"],
            "rmw": self.rmw,
            "libraries": loaded_libraries(),
            "transports": self.transports,
            "rmw_profile_sha256": self.profile_sha256,
            "domain": domain_of(kit),
            "discovery": reach,
            "executor_class": "SingleThreadedExecutor",
            **self.security,
            **granted,
        }
        overload = "block" if granted["history"] == "keep_all" else "drop_oldest"
        kit.ready(
            matched=matched,
            discovery_ns=discovery_ns,
            library=client_library(self.rmw),
            effective=effective,
            guarantee=(
                "reliable" if reliable and overload == "block" else "best_effort",
                "per_sender",
                overload,
            ),
            parts=parts,
        )

    def requested_qos(self, part: Kit | None = None) -> dict[str, Any]:
        names = ("reliability", "history", "depth", "durability")
        return {name: (part or self.kit).setting(name) for name in names}

    def granted_qos(self, topic: str, publishers: bool, part: Kit | None = None) -> dict[str, Any]:
        """Return the QoS of the endpoint of `topic` of this node, or of a part, from ROS's graph.

        Discovery carries reliability and durability. If the RMW does not report history and depth
        of its own endpoint, the requested values are returned.
        """
        node = self.node
        ends = "publishers" if publishers else "subscriptions"
        granted = self.requested_qos(part)
        for info in getattr(node, f"get_{ends}_info_by_topic")(topic):
            if info.node_name == node.get_name():
                for name in ("reliability", "history", "durability"):
                    value = getattr(info.qos_profile, name).name.lower()
                    if value != "unknown":
                        granted[name] = value
                if info.qos_profile.depth:
                    granted["depth"] = info.qos_profile.depth
        return granted

    def close(self) -> None:
        import rclpy

        self.executor.shutdown()
        self.node.destroy_node()
        with suppress(Exception):
            rclpy.shutdown()


def with_session(role: Callable[[Kit, Session], None]) -> Callable[[Kit], None]:
    """Run a role with a session that is always closed, because shared memory outlives a process."""

    def run(kit: Kit) -> None:
        session = Session(kit)
        try:
            role(kit, session)
        finally:
            session.close()

    return run
