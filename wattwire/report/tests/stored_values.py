"""Compare results with what was read from files, and make up values of any annotated type."""

from __future__ import annotations

import dataclasses
import math
import random
import types
import typing
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

FLOATS = (0.0, -0.0, 1.5, 1e-300, 7, math.inf, -math.inf, math.nan)
WORDS = ("", "a <b>", "µ 1\n", "_series", "_type")
LEVELS = (*WORDS, *FLOATS, True, None, 2**70, [1, "a"], ("a", 2.5), {"float": "x"}, {1: None})
DEPTH_MAX = 12


def differences(result: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which two results differ. A NaN is equal to another, a list to a tuple.

    A number of another type is a difference, because the page prints 1 and 1.0 in different ways.
    """
    if dataclasses.is_dataclass(result) and type(result) is type(other):
        for field in dataclasses.fields(result):
            inner = getattr(result, field.name), getattr(other, field.name)
            yield from differences(*inner, f"{path}.{field.name}")
    elif isinstance(result, Mapping) and isinstance(other, Mapping):
        yield from differences(list(result), list(other), f"{path} keys")
        for key in result.keys() & other.keys():
            yield from differences(result[key], other[key], f"{path}[{key!r}]")
    elif isinstance(result, (list, tuple)) and isinstance(other, (list, tuple)):
        if len(result) != len(other):
            yield f"{path}: {len(result)} members, not {len(other)}"
        for index, inner in enumerate(zip(result, other, strict=False)):
            yield from differences(*inner, f"{path}[{index}]")
    elif isinstance(result, np.ndarray) and isinstance(other, np.ndarray):
        is_float = result.dtype.kind == "f"
        if result.dtype != other.dtype or not np.array_equal(result, other, equal_nan=is_float):
            yield path
    elif isinstance(result, float) and isinstance(other, float):  # numpy's float is one of Python
        if repr(float(result)) != repr(float(other)):
            yield f"{path}: {result!r}, not {other!r}"
    elif type(result) is not type(other) or repr(result) != repr(other):
        yield f"{path}: {result!r} ({type(result).__name__}), not {other!r}"


def made_up(kind: Any, rng: random.Random, depth: int = 0) -> Any:
    """Return a random value of an annotated type. Optional values end the recursion of classes."""
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if kind in (Any, object, Hashable):
        return rng.choice(LEVELS)
    if origin in (typing.Union, types.UnionType):
        has_none = types.NoneType in members and depth > DEPTH_MAX
        return None if has_none else made_up(rng.choice(members), rng, depth + 1)
    if origin is tuple and members[1:] != (Ellipsis,):
        return tuple(made_up(member, rng, depth + 1) for member in members)
    length = 0 if depth > DEPTH_MAX else rng.choice((0, 1, 1, 4))
    if origin in (tuple, list, Sequence):
        # The points of a chart usually have the same keys and types.
        values = [made_up(members[0], rng, depth + 1) for _ in range(length)]
        if values and rng.random() < 0.5:
            values = [values[0]] * length
        return values if origin is list else tuple(values)
    if origin in (dict, Mapping):
        pairs = [[made_up(member, rng, depth + 1) for member in members] for _ in range(length)]
        return dict(pairs)
    if kind in PLAIN:
        return rng.choice(PLAIN[kind])
    if origin is np.ndarray:
        return np.array([made_up(float, rng) for _ in range(length)], dtype=np.float64)
    is_class = dataclasses.is_dataclass(kind)
    if not is_class:
        raise TypeError(f"{kind}: a result has plain values, dataclasses and collections only")
    chosen: Any = rng.choice([kind, *type.__subclasses__(kind)])
    hints = typing.get_type_hints(chosen)
    fields = [field for field in dataclasses.fields(chosen) if field.init]
    return chosen(**{field.name: made_up(hints[field.name], rng, depth + 1) for field in fields})


PLAIN: Mapping[Any, Sequence[Any]] = {
    float: FLOATS, str: WORDS, int: (0, -1, 2**40), bool: (True, False), types.NoneType: (None,)
}  # fmt: skip
