"""Format the numbers of papers, and our numbers with the digits that a comparison needs."""

from __future__ import annotations

from wattwire.model import words

DIGITS_MORE = 2
"""Our additional digits, which distinguish rounding from truncation."""
TINY, HUGE = 1e-3, 1e9


def as_printed(text: str) -> str:
    """Format a printed number with all its digits, in the notation of the page."""
    mantissa, e, exponent = text.lower().partition("e")
    return f"{mantissa}·10{words.superscript(int(exponent))}" if e else text


def with_more_digits(value: float | None, printed: str) -> str:
    """Format our number with DIGITS_MORE more decimals than the printed number."""
    if value is None:
        return words.MISSING
    mantissa, e, _ = printed.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    is_tiny = value != 0 and abs(value) < TINY and (e or digits < 3)
    if e or is_tiny or abs(value) >= HUGE:
        text = f"{value:.{max(digits, 1) + DIGITS_MORE}e}"
        front, _, exponent = text.partition("e")
        return f"{front}·10{words.superscript(int(exponent))}"
    return f"{value:.{digits + DIGITS_MORE}f}"
