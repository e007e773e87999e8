"""Figures as files: SVG and PDF in the sizes that journals print, and pictures for the page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import vl_convert

from wattwire.report.parts import Figure

COLUMN_MM = (84.0, 174.0)
"""Widths of print: one column, and both with the gap between."""
SINGLE_MAX_PX = 400
"""A picture up to this wide goes into one column; its smallest font is 7.1 pt there."""
REPEATED_MIN = 8
POINTS_PER_MM = 72 / 25.4
SIZE = re.compile(r'<svg ([^>]*?)width="([\d.]+)" height="([\d.]+)"')
MARK = re.compile(r'<path (?:aria-[a-z]+="[^"]*" )*transform="translate\(([^)]*)\)" ([^>]*)/>')


def draw(figures: Sequence[Figure], folder: Path) -> dict[str, str]:
    """Write every figure to `folder` as ID.svg and ID.pdf; return the page's SVG by id.

    The page's own spec, at a fixed library version: page, SVG and PDF cannot differ.
    """
    found: dict[str, str] = {}
    # One thread makes PDFs while the drawing library, which does one thing at a time, goes on.
    with ThreadPoolExecutor(1) as writer:
        written = []
        for figure in figures:
            vega = vl_convert.vegalite_to_vega(figure.spec)
            svg = small(vl_convert.vega_to_svg(vega))
            (folder / f"{figure.id}.svg").write_text(sized(svg), "utf-8")
            written.append(writer.submit(_write_pdf, svg, folder / f"{figure.id}.pdf"))
            found[figure.id] = svg
        for one in written:
            one.result()
    return found


def _write_pdf(svg: str, path: Path) -> None:
    # The library takes an SVG's pixels for points, whatever unit they are given in.
    path.write_bytes(vl_convert.svg_to_pdf(sized(svg, "", POINTS_PER_MM)))


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
