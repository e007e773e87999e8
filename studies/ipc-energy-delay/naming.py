"""Format platforms, technologies, languages and numbers for readers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

PLATFORM_TITLES = {"intel": "Intel", "arm": "ARM"}
IPC_TITLES = {"grpc": "gRPC", "rpc": "RPC", "rest": "REST"}
LANGUAGE_TITLES = {
    "csharp": "C#", "go": "Go", "java": "Java", "javascript": "JavaScript", "php": "PHP",
    "python": "Python", "ruby": "Ruby",
}  # fmt: skip


def named(ipc: str, language: str) -> dict[str, str]:
    """An implementation as the first cells of a row."""
    return {"technology": IPC_TITLES[ipc], "language": LANGUAGE_TITLES[language]}


def placed(platform: str, metered: str) -> dict[str, str]:
    """A platform and where its meter was, as the first cells of a row."""
    return {"platform": PLATFORM_TITLES[platform], "meter at": metered}


def digits(value: float, places: int) -> str:
    """A number with all its digits, as it is compared with printed ones."""
    text = f"{round(value, places):.{places}f}".replace("-", "−")
    return text.rstrip("0").rstrip(".") if places else text


def median(values: Sequence[float], places: int) -> str | None:
    """A median with all its digits; None of nothing."""
    return digits(statistics.median(values), places) if values else None
