"""A node without a middleware: its sender sends nothing; its receiver gets generated messages."""

from wattwire_kit import run

run(
    roles={"publisher": "topic:publish", "subscriber": "topic:subscribe"},
    settings={"arrivals": int},
    capabilities=("encoding.bytes", "pacing.kit", "loop.open"),
)
