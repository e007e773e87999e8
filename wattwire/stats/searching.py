"""Searches along a line: where a falling function crosses zero, and where another is least.

What: bisection, and golden sections; both keep their bracket, so they cannot run away.
How: both halve, or nearly, what is left at each step, down to the precision asked for.
What it misses: more than one crossing or valley; a smooth function is found in fewer steps by
Brent's methods in scipy.optimize, whose import takes longer than all searches of a page.
Reference: Press et al., Numerical Recipes, 3rd ed., 9.1 and 10.2.
"""

from __future__ import annotations

from collections.abc import Callable

GOLDEN = (5.0**0.5 - 1.0) / 2.0


def crossing(falling: Callable[[float], float], low: float, high: float, within: float) -> float:
    """Where `falling`, positive at `low` and not at `high`, crosses zero, to `within`.

    Raises ValueError where the ends do not enclose a crossing.
    """
    if not falling(low) > 0.0 >= falling(high):
        raise ValueError(f"no crossing between {low:g} and {high:g}")
    while high - low > within:
        middle = (low + high) / 2.0
        if middle in (low, high):  # no number lies between them
            break
        low, high = (middle, high) if falling(middle) > 0.0 else (low, middle)
    return (low + high) / 2.0


def lowest(function: Callable[[float], float], low: float, high: float, within: float) -> float:
    """Where `function`, with one valley between `low` and `high`, is least, to `within`."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > within and low < left < right < high:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = function(right)
    return (low + high) / 2.0
