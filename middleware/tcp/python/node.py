"""TCP node: length-prefixed frames, one or two connections for each pair of nodes."""

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
