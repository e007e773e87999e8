"""Figures as files: SVG and PDF in the sizes that journals print, and pictures for the page."""

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
"""To be raised when files of the same spec would turn out otherwise than before."""


class Drawer:
    """Draws figures to `folder` as ID.svg and ID.pdf beside what else is being done.

    A figure whose points and library are those of the file that is there stays as it is; files
    of other figures are removed at the end. The page's own spec is drawn, at a fixed library
    version: page, SVG and PDF cannot differ.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.failed: dict[str, str] = {}
        """Why a figure could not be drawn, by its id; complete once `pictures` has returned."""
        self._drawn: dict[str, Future[str | None]] = {}
        self._waiting = ThreadPoolExecutor(1)  # for the process that draws
        folder.mkdir(parents=True, exist_ok=True)
        self._library = self._waiting.submit(library.for_pages)
        if next(folder.glob("*.svg"), None) is None:
            render_worker.shared()  # there is something to draw: it starts while data are looked at

    def __enter__(self) -> Drawer:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._waiting.shutdown(cancel_futures=kind is not None)
        if kind is None:
            for one in self._drawn.values():
                one.result()
            self._remove_others()

    def begin(self, figures: Sequence[Figure]) -> None:
        """Begin to draw `figures`; returns at once."""
        for figure in figures:
            self._drawn[figure.id] = self._waiting.submit(self._draw, figure)

    def pictures(self) -> dict[str, str]:
        """The SVG for the page of every figure begun, by id, once they are drawn."""
        drawn = {name: picture.result() for name, picture in self._drawn.items()}
        return {name: svg for name, svg in drawn.items() if svg is not None}

    def library(self) -> str:
        """The drawing library for a page."""
        return self._library.result()

    def _draw(self, figure: Figure) -> str | None:
        """Draw a figure, unless it is there. One that cannot be drawn costs no other and no page.

        Raises OSError where a file cannot be written.
        """
        mark = _mark(figure)
        svg, pdf = (self._folder / f"{figure.id}.{end}" for end in ("svg", "pdf"))
        if pdf.is_file() and svg.is_file():
            there = svg.read_text("utf-8")
            if there.endswith(mark):
                return render_worker.unsized(there.removesuffix(mark))
        pdf.unlink(missing_ok=True)
        for again in (False, True):
            try:
                return render_worker.shared().draw(figure.spec, svg, pdf, mark)
            except ValueError as error:
                self.failed[figure.id] = _first_line(error)
                break
            except WattwireError:  # ended from outside, or by what it drew: then it ends again
                if again:
                    self.failed[figure.id] = "the process that draws ended twice at this figure"
        svg.unlink(missing_ok=True)
        pdf.unlink(missing_ok=True)
        return None

    def _remove_others(self) -> None:
        for pattern in ("*.svg", "*.pdf"):
            for path in self._folder.glob(pattern):
                if path.stem not in self._drawn:
                    path.unlink()


class Undrawn:
    """Stands where no figure is to be drawn: the page's charts are drawn by who looks at it.

    Files of an earlier report are removed, since they would show what no longer holds.
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
        """Draw nothing."""

    def pictures(self) -> dict[str, str]:
        """No picture of any figure."""
        return {}

    def library(self) -> str:
        """The drawing library for a page."""
        return library.for_pages()


def _first_line(error: ValueError) -> str:
    """The library's reason without the stack of its calls."""
    told = [line for line in str(error).splitlines() if line and not line.startswith("    at ")]
    return " ".join(told)[:REASON_MAX]


def _mark(figure: Figure) -> str:
    """What an SVG file says about what it was drawn from."""
    told = json.dumps([figure.spec, library.VERSION, FORMAT], separators=(",", ":"))
    return f"<!-- wattwire {hashlib.sha256(told.encode()).hexdigest()} -->"
