"""Refuse payloads that the messages of a setting cannot carry."""

from __future__ import annotations

from collections.abc import Iterable

from wattwire_kit import Kit, Unsupported


def check_fit(kit: Kit, setting: str, sizes_bytes: Iterable[int], otherwise: str) -> None:
    """Raise Unsupported if the run has no plain bytes of one of these sizes on a topic.

    `otherwise` is the level of the setting that carries other payloads.
    """
    allowed = {
        "pattern": ("topic", "pipeline"),
        "payload.encoding": ("bytes",),
        "payload.bytes": tuple(sizes_bytes),
        "payload.literal": ("",),
    }
    for key, values in allowed.items():
        if kit.spec[key] not in values:
            raise Unsupported(
                f"{key} {kit.spec[key]!r} with settings.{setting} = {kit.setting(setting)}; "
                f"allowed: {', '.join(map(repr, values))}; choose one, or "
                f"settings.{setting} = {otherwise}"
            )
