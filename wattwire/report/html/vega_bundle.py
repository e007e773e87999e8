"""The drawing library that a page carries, kept in the user's cache: making it takes seconds."""

from __future__ import annotations

import contextlib
import hashlib
import os
from importlib import metadata
from pathlib import Path

from wattwire.model.paths import cache_folder

SNIPPET = "window.vegaEmbed = vegaEmbed;"
VERSION = metadata.version("vl-convert-python")


def for_pages() -> str:
    """The library, safe inside a script element.

    Read from the cache where this version is there whole; a cache that cannot be written is
    done without.
    """
    kept = cache_folder() / "blobs" / f"page-library-{VERSION}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        digest, _, text = kept.read_text("utf-8").partition("\n")
        if digest == _digest(text):
            return text
    text = _made()
    with contextlib.suppress(OSError):
        _keep(kept, text)
    return text


def _made() -> str:
    import vl_convert  # noqa: PLC0415 - slow to load, and most pages find the library made

    return str(vl_convert.javascript_bundle(SNIPPET)).replace("</script", "<\\/script")


def _digest(text: str) -> str:
    return "// " + hashlib.sha256(f"{SNIPPET}\n{text}".encode()).hexdigest()


def _keep(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(f"{_digest(text)}\n{text}", "utf-8")
    partial.replace(path)
