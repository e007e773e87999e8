"""Define the points that `layerprof/` records and the layers between them, in a message's order."""

from __future__ import annotations

from dataclasses import dataclass

TRACED = (
    "client_publish", "rmw_begin", "stamp", "rmw_taken", "rcl_taken", "client_taken",
    "callback_start", "service",
)  # fmt: skip
"""Points that the tracepoints of the client library and the middleware give."""
ENTERED = ("rcl_publish", "notify", "rcl_take", "rmw_take", "timer")
"""Points at which a wrapped function of a table begins."""
SPANS = ("dds_write", "dds_take", "wait")
"""Points of a table that have the begin and the end of a call."""
SLEEP = "sleep"
"""The point at which a thread within `wait` begins to wait for a condition variable."""
WRAPPED = (*ENTERED, *SPANS, SLEEP)
POINTS = (*TRACED, *WRAPPED)
"""All points. A point's code in an event is its index here."""


LOST_EVENTS, UNMARKED, UNJOINED = "layers_lost", "layers_unmarked", "layers_unjoined"
NO_WINDOW = "layers_no_window"
"""Codes of the reasons why a run's layers are not used."""


@dataclass(frozen=True)
class Layer:
    """A part of a message's time. `category` is the name of the part of its figure in the paper."""

    name: str
    title: str
    category: str

    @property
    def column(self) -> str:
        """Return the name of the column of its times (ns)."""
        return f"{self.name}_ns"


LAYERS = (
    Layer("client_publish", "client library, publishing", "Publisher ROS2 Common"),
    Layer("rcl_publish", "rcl, publishing", "Publisher ROS2 Common"),
    Layer("rmw_publish", "rmw, publishing", "Publisher rmw"),
    Layer("dds_write", "DDS write", "DDS"),
    Layer("transport", "transport", "DDS"),
    Layer("wake_up", "wake-up", "Rclcpp Notification Delay"),
    Layer("executor", "executor", "Rclcpp Notification Delay"),
    Layer("rcl_take", "rcl, taking", "Subscriber ROS2 Common"),
    Layer("rmw_take", "rmw, taking", "Subscriber rmw"),
    Layer("dds_take", "DDS take", "DDS"),
    Layer("client_take", "client library, taking", "Subscriber ROS2 Common"),
)
"""Layers in the order of a message's way. Their times add up to its latency."""
OPTIONAL = ("client_publish", "client_take", "wake_up")
"""Names of layers that only some client libraries have, or that a subscription without waits lacks.
"""
PARTS = tuple(dict.fromkeys(layer.category for layer in LAYERS))
"""The parts of the paper's figure, each of one layer or more."""


@dataclass(frozen=True)
class Wrapper:
    """A function that a table replaces in an unmodified process.

    `library` and `callers` are patterns of file names. Without callers, all calls are recorded.
    `arguments` is the number of integer arguments and pointers, with the object of a method.
    """

    point: str
    library: str
    symbol: str
    arguments: int
    callers: tuple[str, ...] = ()
    table: str = ""
    """Path of the table, for messages."""
