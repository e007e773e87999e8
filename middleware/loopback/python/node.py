"""Loopback node: datagrams of AF_UNIX between processes of one host."""

from wattwire_kit import run

run(
    publisher="topic:publish",
    subscriber="topic:subscribe",
    client="service:client",
    server="service:server",
    ping="service:client",
    pong="service:server",
    action_client="action:client",
    action_server="action:server",
    source="topic:publish",
    relay="pipeline:relay",
    sink="topic:subscribe",
    member="members:member",
)
