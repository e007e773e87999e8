"""UDP node: one datagram per message, blocking sockets."""

from wattwire_kit import run

run(
    publisher="topic:publish",
    subscriber="topic:subscribe",
    client="service:client",
    server="service:server",
    ping="service:client",
    pong="service:server",
    source="topic:publish",
    relay="pipeline:relay",
    sink="topic:subscribe",
)
