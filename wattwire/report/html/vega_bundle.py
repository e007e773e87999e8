"""Bundle the drawing library of a page, and cache it because bundling takes seconds."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from importlib import metadata
from pathlib import Path

from wattwire.model.errors import MissingError
from wattwire.model.paths import cache_folder

SNIPPET = "window.vegaEmbed = vegaEmbed;"
VERSION = metadata.version("vl-convert-python")


def for_pages() -> str:
    """Return the code of the library, escaped for a script element.

    The code comes from the user's cache if the cache contains an intact copy of this version. An
    unwritable cache is ignored.
    """
    try:
        cache_file = cache_folder() / "blobs" / f"page-library-{VERSION}.js"
    except MissingError:
        return _bundle()
    with contextlib.suppress(OSError, UnicodeDecodeError):
        digest, _, text = cache_file.read_text("utf-8").partition("\n")
        is_own = cache_file.stat().st_uid in (os.geteuid(), 0)
        if digest == _digest(text) and is_own:
            return text
    text = _bundle()
    with contextlib.suppress(OSError):
        _store(cache_file, text)
    return text


def _bundle() -> str:
    import vl_convert  # noqa: PLC0415 - slow to load, and usually cached

    return str(vl_convert.javascript_bundle(SNIPPET)).replace("</script", "<\\/script")


def _digest(text: str) -> str:
    return "// " + hashlib.sha256(f"{SNIPPET}\n{text}".encode()).hexdigest()


def _store(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{secrets.token_hex(8)}.partial")
    partial.write_text(f"{_digest(text)}\n{text}", "utf-8")
    partial.replace(path)
