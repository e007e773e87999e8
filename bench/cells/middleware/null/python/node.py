"""A node without a middleware. Its sender sends nothing; its receiver generates the messages."""

from wattwire_kit import run

run(
    roles={"publisher": "topic:publish", "subscriber": "topic:subscribe"},
    settings={"arrivals": int},
    capabilities=("encoding.bytes", "pacing.kit", "loop.open"),
)
