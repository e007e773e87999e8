"""The roles, settings and capabilities that the cells in Python declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wattwire_kit import run


def main(allowed: Mapping[str, Sequence[str]] | None = None) -> None:
    """Run the node of a cell. `allowed` has the settings of which it supports only some values."""
    run(
        roles={
            "publisher": "topic:publish",
            "subscriber": "topic:subscribe",
            "ping": "pingpong:ping",
            "pong": "pingpong:pong",
        },
        settings={
            "server": str,
            "encoding": str,
            "wait": str,
            "tcp_nodelay": bool,
            "queue_size": int,
        },
        capabilities=(
            "encoding.bytes",
            "encoding.text",
            "pacing.kit",
            "loop.open",
            "loop.closed",
            "reply.echo",
            "reply.ack",
            "reply.literal",
            "literal",
        ),
        payload_bytes_max=8_388_608,
        allowed=allowed,
    )
