"""Draws charts in a process of its own: as SVG for page and print, and as PDF.

The drawing library holds the interpreter's lock for most of the time that it works, so a thread
would not draw beside anything. The process reads a request a line and answers each with a line,
both JSON; it ends with its input, and so with whoever started it, however that ends. It starts
fast, as it loads nothing of the report; `shared` gives this process's pen.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wattwire.model.errors import WattwireError

COLUMN_MM = (84.0, 174.0)
"""Widths of print: one column, and both with the gap between."""
SINGLE_MAX_PX = 400
"""A picture up to this wide goes into one column; its smallest font is 7.1 pt there."""
REPEATED_MIN = 8
POINTS_PER_MM = 72 / 25.4
SERVE = "import sys; sys.path[:] = sys.argv[1:]; from wattwire.report import pen; pen.serve()"
"""Finds modules where we do and nowhere else: with -m, a file of the user's would come first."""
NOTHING = {"data": {"values": []}, "mark": "point"}
PRINTED = re.compile(
    r'<svg ([^>]*?)width="[\d.]+mm" height="[\d.]+mm" viewBox="0 0 ([\d.]+) ([\d.]+)"'
)
SIZE = re.compile(r'<svg ([^>]*?)width="([\d.]+)" height="([\d.]+)"')
MARK = re.compile(r'<path (?:aria-[a-z]+="[^"]*" )*transform="translate\(([^)]*)\)" ([^>]*)/>')


class Pen:
    """A process that draws, one chart after the other; may be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", SERVE, *sys.path], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked; one that ended is left behind."""
        return self._process.poll() is None

    def draw(self, spec: Mapping[str, Any], svg: Path, pdf: Path, mark: str) -> str:
        """Draw a Vega-Lite `spec` to two files, `mark` behind the first; returns the SVG.

        Raises OSError where a file cannot be written, ValueError for a spec that is none, and
        WattwireError where the process ended.
        """
        # The process stays in the folder that it was started in, wherever we have gone since.
        files = {"svg": str(svg.absolute()), "pdf": str(pdf.absolute())}
        request = {"spec": spec, **files, "mark": mark}
        with self._lock:
            answer = self._asked(json.dumps(request), svg)
        if "errno" in answer:
            raise OSError(answer["errno"], answer["error"], answer["file"])
        if "error" in answer:
            raise ValueError(f"{svg.stem}: {answer['error']}")
        return str(answer["drawn"])

    def _asked(self, request: str, svg: Path) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(f"{request}\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line.endswith("\n"):
            raise WattwireError(
                f"{svg}: the process that draws figures ended (exit code {self._process.wait()}) "
                "before this one was done. No run is touched; give the same command again."
            )
        answer: dict[str, Any] = json.loads(line)
        return answer


_pens: list[Pen] = []
_starting = threading.Lock()


def shared() -> Pen:
    """This process's pen, started if there is none: its engine takes a while to start."""
    with _starting:
        if not _pens or not _pens[-1].is_alive:
            _pens[:] = [Pen()]
        return _pens[-1]


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


# -- in the process that draws -------------------------------------------------------------------


def serve() -> None:
    """Answer requests until their end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who asks; its end is ours
    # Whatever the library prints must not stand between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _svg_of(NOTHING)  # the library's engine starts before the first request is there
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"drawn": _drawn(json.loads(line))}
        except OSError as error:
            answer = {"errno": error.errno, "error": error.strerror, "file": error.filename}
        except Exception as error:  # noqa: BLE001 - the library's own, told to who asked
            answer = {"error": f"{type(error).__name__}: {error}"}
        try:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
        except BrokenPipeError:  # who asked was killed: nobody is left to be told
            os._exit(1)


def _drawn(request: Mapping[str, Any]) -> str:
    import vl_convert  # noqa: PLC0415 - only this process loads it

    svg = small(_svg_of(request["spec"]))
    Path(request["svg"]).write_text(sized(svg) + request["mark"], "utf-8")
    # The library takes an SVG's pixels for points, whatever unit they are given in.
    data = vl_convert.svg_to_pdf(sized(svg, "", POINTS_PER_MM))
    # Renamed into place: half a file must never look like a figure that is up to date.
    pdf = Path(request["pdf"])
    partial = pdf.with_suffix(".pdf.partial")
    partial.write_bytes(data)
    partial.replace(pdf)
    return svg


def _svg_of(spec: Mapping[str, Any]) -> str:
    import vl_convert  # noqa: PLC0415

    return str(vl_convert.vega_to_svg(vl_convert.vegalite_to_vega(dict(spec))))
