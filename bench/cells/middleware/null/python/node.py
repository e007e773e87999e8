"""A node without a middleware. Its sender sends nothing; its receiver generates the messages."""

from wattwire_kit import run

run(publisher="topic:publish", subscriber="topic:subscribe")
