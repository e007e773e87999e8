"""Draw figures as SVG and PDF files in the print sizes of journals, and as SVG for the page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from wattwire.model.errors import WattwireError
from wattwire.report.html import vega_bundle as library
from wattwire.report.parts import Figure
from wattwire.report.print import render_worker

REASON_MAX = 300
FORMAT = 1
"""Version of the rendered files. Increase it if the files change for an unchanged spec."""


class Drawer:
    """Draws figures to `folder` as ID.svg and ID.pdf in the background.

    Existing files with the same spec and library version are reused. On exit, files of other
    figures are removed. The page, SVG and PDF files use the same spec and library version, so they
    cannot differ.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.failed: dict[str, str] = {}
        """Figure id → reason for its failure. It is complete after `pictures` returns."""
        self._drawn: dict[str, Future[str | None]] = {}
        self._waiting = ThreadPoolExecutor(1)  # queue of the drawing process
        folder.mkdir(parents=True, exist_ok=True)
        self._library = self._waiting.submit(library.for_pages)
        if next(folder.glob("*.svg"), None) is None:
            render_worker.shared()  # start before the analysis ends, because figures must be drawn

    def __enter__(self) -> Drawer:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._waiting.shutdown(cancel_futures=kind is not None)
        if kind is None:
            for drawing in self._drawn.values():
                drawing.result()  # waits: the end of the drawing process
            self._remove_stale()

    def begin(self, figures: Sequence[Figure]) -> None:
        """Start drawing `figures` and return immediately."""
        for figure in figures:
            self._drawn[figure.id] = self._waiting.submit(self._draw, figure)

    def pictures(self) -> dict[str, str]:
        """Wait for the figures and return their SVG for the page by figure id."""
        drawn = {
            name: picture.result()  # waits: the end of the drawing process
            for name, picture in self._drawn.items()
        }
        return {name: svg for name, svg in drawn.items() if svg is not None}

    def library(self) -> str:
        """Return the drawing library for the page."""
        return self._library.result()  # waits: the end of the drawing process

    def _draw(self, figure: Figure) -> str | None:
        """Draw a figure unless its files exist, and return its SVG, or None if drawing fails.

        After a failure, the page and the other figures are still drawn. Raises OSError if a file
        cannot be written.
        """
        mark = _mark(figure)
        svg, pdf = (self._folder / f"{figure.id}.{end}" for end in ("svg", "pdf"))
        if pdf.is_file() and svg.is_file():
            text = svg.read_text("utf-8")
            if text.endswith(mark):
                return render_worker.unsized(text.removesuffix(mark))
        pdf.unlink(missing_ok=True)
        for is_retry in (False, True):
            try:
                return render_worker.shared().draw(figure.spec, svg, pdf, mark)
            except ValueError as error:
                self.failed[figure.id] = _error_message(error)
                break
            except WattwireError:  # the process ended, perhaps because of this figure
                if is_retry:
                    self.failed[figure.id] = "the drawing process crashed twice at this figure"
        svg.unlink(missing_ok=True)
        pdf.unlink(missing_ok=True)
        return None

    def _remove_stale(self) -> None:
        for pattern in ("*.svg", "*.pdf"):
            for path in self._folder.glob(pattern):
                if path.stem not in self._drawn:
                    path.unlink()


class Undrawn:
    """Replaces Drawer if only the browser draws the charts.

    It removes the figure files of an earlier report.
    """

    def __init__(self, folder: Path) -> None:
        self.failed: dict[str, str] = {}
        for path in (*folder.glob("*.svg"), *folder.glob("*.pdf")):
            path.unlink()

    def __enter__(self) -> Undrawn:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def begin(self, figures: Sequence[Figure]) -> None:
        """Do nothing."""

    def pictures(self) -> dict[str, str]:
        """Return no pictures."""
        return {}

    def library(self) -> str:
        """Return the drawing library for the page."""
        return library.for_pages()


def _error_message(error: ValueError) -> str:
    """Return the library's error message without the stack trace."""
    lines = [line for line in str(error).splitlines() if line and not line.startswith("    at ")]
    return " ".join(lines)[:REASON_MAX]


def _mark(figure: Figure) -> str:
    """Return the comment in an SVG file with the digest of its spec and the library version."""
    content = json.dumps([figure.spec, library.VERSION, FORMAT], separators=(",", ":"))
    return f"<!-- wattwire {hashlib.sha256(content.encode()).hexdigest()} -->"
