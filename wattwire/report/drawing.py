"""Figures as files: SVG and PDF in the sizes that journals print, and pictures for the page."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import vl_convert

from wattwire.report import library
from wattwire.report.parts import Figure

COLUMN_MM = (84.0, 174.0)
"""Widths of print: one column, and both with the gap between."""
SINGLE_MAX_PX = 400
"""A picture up to this wide goes into one column; its smallest font is 7.1 pt there."""
REPEATED_MIN = 8
POINTS_PER_MM = 72 / 25.4
NOTHING = {"data": {"values": []}, "mark": "point"}
FORMAT = 1
"""To be raised when files of the same spec would turn out otherwise than before."""
PRINTED = re.compile(
    r'<svg ([^>]*?)width="[\d.]+mm" height="[\d.]+mm" viewBox="0 0 ([\d.]+) ([\d.]+)"'
)
SIZE = re.compile(r'<svg ([^>]*?)width="([\d.]+)" height="([\d.]+)"')
MARK = re.compile(r'<path (?:aria-[a-z]+="[^"]*" )*transform="translate\(([^)]*)\)" ([^>]*)/>')


class Drawer:
    """Draws figures to `folder` as ID.svg and ID.pdf beside what else is being done.

    A figure whose points and library are those of the file that is there stays as it is; files
    of other figures are removed at the end. The page's own spec is drawn, at a fixed library
    version: page, SVG and PDF cannot differ.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._drawn: dict[str, Future[str]] = {}
        self._written: list[Future[None]] = []
        # The drawing library does one thing at a time, so one thread drives it; another one
        # makes PDFs of what is drawn.
        self._pen, self._press = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        folder.mkdir(parents=True, exist_ok=True)
        self._library = self._pen.submit(library.for_pages)
        if next(folder.glob("*.svg"), None) is None:
            # There is something to draw: the library's engine starts while data are looked at.
            self._pen.submit(_svg_of, NOTHING)

    def __enter__(self) -> Drawer:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._pen.shutdown(cancel_futures=kind is not None)
        self._press.shutdown(cancel_futures=kind is not None)
        if kind is None:
            for one in self._written:
                one.result()
            self._remove_others()

    def begin(self, figures: Sequence[Figure]) -> None:
        """Begin to draw `figures`; returns at once."""
        for figure in figures:
            self._drawn[figure.id] = self._pen.submit(self._draw, figure)

    def pictures(self) -> dict[str, str]:
        """The SVG for the page of every figure begun, by id, once they are drawn."""
        return {name: drawn.result() for name, drawn in self._drawn.items()}

    def library(self) -> str:
        """The drawing library for a page."""
        return self._library.result()

    def _draw(self, figure: Figure) -> str:
        mark = _mark(figure)
        path, pdf = (self._folder / f"{figure.id}.{end}" for end in ("svg", "pdf"))
        if pdf.is_file() and path.is_file():
            there = path.read_text("utf-8")
            if there.endswith(mark):
                return unsized(there.removesuffix(mark))
        pdf.unlink(missing_ok=True)
        svg = small(_svg_of(figure.spec))
        path.write_text(sized(svg) + mark, "utf-8")
        self._written.append(self._press.submit(_write_pdf, svg, pdf))
        return svg

    def _remove_others(self) -> None:
        for pattern in ("*.svg", "*.pdf"):
            for path in self._folder.glob(pattern):
                if path.stem not in self._drawn:
                    path.unlink()


def start_engine() -> None:
    """Start the drawing library's engine beside what else is done: who draws finds it running.

    The thread is no daemon: one that ends in the middle of foreign code takes the process along.
    """
    threading.Thread(target=_svg_of, args=(NOTHING,), name="wattwire-engine").start()


def _svg_of(spec: Mapping[str, Any]) -> str:
    return str(vl_convert.vega_to_svg(vl_convert.vegalite_to_vega(dict(spec))))


def _mark(figure: Figure) -> str:
    """What an SVG file says about what it was drawn from."""
    told = json.dumps([figure.spec, library.VERSION, FORMAT], separators=(",", ":"))
    return f"<!-- wattwire {hashlib.sha256(told.encode()).hexdigest()} -->"


def _write_pdf(svg: str, path: Path) -> None:
    # The library takes an SVG's pixels for points, whatever unit they are given in.
    data = vl_convert.svg_to_pdf(sized(svg, "", POINTS_PER_MM))
    # Renamed into place: half a file must never look like a figure that is up to date.
    partial = path.with_suffix(".pdf.partial")
    partial.write_bytes(data)
    partial.replace(path)


def size_px(svg: str) -> tuple[float, float]:
    """Width and height that a picture was drawn at. Raises ValueError where it names none."""
    match = SIZE.search(svg)
    if match is None:
        raise ValueError("svg: no width and height in its first element")
    return float(match[2]), float(match[3])


def width_mm(svg: str) -> float:
    """The printed width for a picture: one column, or both."""
    return COLUMN_MM[0] if size_px(svg)[0] <= SINGLE_MAX_PX else COLUMN_MM[1]


def sized(svg: str, unit: str = "mm", per_mm: float = 1.0) -> str:
    """The picture at its printed width; its drawing stays as it is and is scaled as a whole."""
    width, height = size_px(svg)
    wide = width_mm(svg) * per_mm
    high = wide * height / width
    size = f'width="{wide:.2f}{unit}" height="{high:.2f}{unit}"'
    return SIZE.sub(rf"<svg \1{size}", svg, count=1)


def unsized(svg: str) -> str:
    """The picture of a file from `sized`, at the size that it was drawn at."""
    return PRINTED.sub(r'<svg \1width="\2" height="\3" viewBox="0 0 \2 \3"', svg, count=1)


def small(svg: str) -> str:
    """The same picture with marks that occur often written once and pointed at.

    A thousand dots are a thousand times the same path: a tenth of the bytes says as much.
    """
    counted = Counter(match[2] for match in MARK.finditer(svg))
    names = {
        body: f"m{number}"
        for number, body in enumerate(
            body for body, count in counted.items() if count >= REPEATED_MIN
        )
    }
    if not names:
        return svg

    def pointed(match: re.Match[str]) -> str:
        name = names.get(match[2])
        if name is None:
            return match[0]
        x, y = match[1].split(",")
        return f'<use href="#{name}" x="{x}" y="{y}"/>'

    kept = "".join(f'<path id="{name}" {body}/>' for body, name in names.items())
    end = svg.index(">") + 1
    return f"{svg[:end]}<defs>{kept}</defs>{MARK.sub(pointed, svg[end:])}"
