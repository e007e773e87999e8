"""Convert the results of topics to JSON values and back, by the annotations of their fields.

cattrs converts dataclasses, tuples and enums. The hooks here state how other values are stored:

- A dataclass in a union, or of a subclass of the annotated class, has its name under "_type".
- A dataclass of a topic in a field of a base class or a Protocol, such as the result of a detector,
  has the path of its class there, because its module may not have been imported when it is read.
- A float that JSON lacks is {"float": "inf"}. An integer in a field of floats stays an integer,
  because the page prints the two in different ways.
- A mapping with keys that are no text is a list of pairs.
- Long sequences of numbers or texts, the points of charts and arrays become a `StoredTable`, which
  the caller stores as a file.

A value that is none of these is an error, so no result can refer to data of the campaign.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Any

import cattrs
import cattrs.v
import numpy as np
import polars as pl
from cattrs.errors import BaseValidationError

from wattwire.analysis import topics
from wattwire.analysis.stored_tables import StoredTable, table_of

TYPE, FLOAT, TUPLE, MAPPING = "_type", "float", "tuple", "mapping"
RESERVED = frozenset({FLOAT, TUPLE, MAPPING})
"""Keys that a stored value has alone if JSON lacks its type."""
LONG = 500
"""A sequence with at least this many members becomes a StoredTable."""
PLAIN = (str, int, float, bool)
Hook = Callable[[Any], Any]


class UnreadableResult(Exception):
    """A stored result is not of the type that its topic has; the text states the differences."""


def encoded(result: Any, kind: Any) -> Any:
    """Return a result as values for json.dumps, in which each long sequence is a StoredTable.

    `kind` is the annotated type. Raises TypeError for a value that no type of a result may have.
    """
    return _converter().unstructure(result, kind)


def decoded(values: Any, kind: Any) -> Any:
    """Return the result of this type from stored values, in which each StoredTable has been read.

    Raises UnreadableResult if the values are not those of the type.
    """
    try:
        return _converter().structure(values, kind)
    except BaseValidationError as error:
        messages = cattrs.transform_error(error, path="", format_exception=_problem)
        raise UnreadableResult("; ".join(sorted(messages)[:3])) from error
    except (TypeError, ValueError, KeyError, LookupError, AttributeError) as error:
        raise UnreadableResult(str(error)) from error


def _problem(error: BaseException, kind: type | None) -> str:
    return str(error) if isinstance(error, TypeError) else cattrs.v.format_exception(error, kind)


def plain(value: Any) -> Any:
    """Return a numpy scalar as the number of Python, for json.dumps."""
    if isinstance(value, np.generic):
        return _free(value.item())
    raise TypeError(f"{value!r}: a result has plain values only, no {type(value).__name__}")


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    for kind in PLAIN:
        converter.register_unstructure_hook(kind, _free)
        converter.register_structure_hook(kind, _plain_reader(kind))
    # cattrs asks the factory that was registered last first.
    factories: list[tuple[Callable[[Any], bool], Any, Any]] = [
        (_is_class, _class_writer, _class_reader),
        (_is_mapping, _mapping_writer, _mapping_reader),
        (_is_sequence, _sequence_writer, _sequence_reader),
        (_is_array, lambda _kind, _converter: _array, lambda _kind, _converter: _read_array),
        (_is_union, _union_writer, _union_reader),
        (_is_protocol, _protocol_writer, _protocol_reader),
        (_is_free, lambda _kind, _converter: _free, lambda _kind, _converter: _read_free),
    ]
    for applies, writer, reader in factories:
        converter.register_unstructure_hook_factory(applies, writer)
        converter.register_structure_hook_factory(applies, reader)
    return converter


def _free(value: Any) -> Any:
    """Return a value without an annotation, such as a level, as JSON values."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {FLOAT: repr(float(value))}
    if value is None or isinstance(value, (str, int)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, tuple) and type(value) is tuple:
        return {TUPLE: [_free(member) for member in value]}
    if isinstance(value, list):
        return [_free(member) for member in value]
    if isinstance(value, dict):
        has_plain_keys = all(isinstance(key, str) for key in value)
        if has_plain_keys and not RESERVED & value.keys():
            return {key: _free(member) for key, member in value.items()}
        return {MAPPING: [[_free(key), _free(member)] for key, member in value.items()]}
    return plain(value)


def _read_free(value: Any, _kind: Any = None) -> Any:
    if isinstance(value, list):
        return [_read_free(member) for member in value]
    if not isinstance(value, dict):
        return value
    if FLOAT in value:
        return float(value[FLOAT])
    if TUPLE in value:
        return tuple(_read_free(member) for member in value[TUPLE])
    if MAPPING in value:
        return {_read_free(key): _read_free(member) for key, member in value[MAPPING]}
    return {key: _read_free(member) for key, member in value.items()}


def _plain_reader(kind: type) -> Callable[[Any, Any], Any]:
    allowed = (int, float) if kind is float else (kind,)

    def read(value: Any, _kind: Any) -> Any:
        value = _read_free(value)
        if not isinstance(value, allowed):
            raise TypeError(f"found {value!r}, expected {kind.__name__}")
        return value

    return read


def _is_free(kind: Any) -> bool:
    return kind in (Any, object, Hashable)


def _is_protocol(kind: Any) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


def _is_array(kind: Any) -> bool:
    return kind is np.ndarray or typing.get_origin(kind) is np.ndarray


def _is_mapping(kind: Any) -> bool:
    return typing.get_origin(kind) in (dict, Mapping)


def _is_sequence(kind: Any) -> bool:
    """Return whether a type is a sequence of any length; tuple[str, int] is a value of two."""
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    return origin in (list, Sequence) or origin is tuple and members[1:] == (Ellipsis,)


def _is_class(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _subclasses(kind: type) -> list[type]:
    direct: list[type] = type.__subclasses__(kind)
    return [*direct, *(inner for subclass in direct for inner in _subclasses(subclass))]


def _fields_of(kind: type, converter: cattrs.Converter) -> tuple[Hook, Callable[[Any, Any], Any]]:
    """Return the functions that write and read the fields of exactly this dataclass."""
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn  # noqa: PLC0415

    return make_dict_unstructure_fn(kind, converter), make_dict_structure_fn(
        kind, converter, _cattrs_forbid_extra_keys=True
    )


def _class_writer(kind: type, converter: cattrs.Converter) -> Hook:
    own, _ = _fields_of(kind, converter)

    def write(value: Any) -> Any:
        if type(value) is kind:
            return own(value)
        path = _path_of(type(value))
        name = path if _class_of(path) else type(value).__name__
        return {TYPE: name, **converter.unstructure(value, type(value))}

    return write


def _class_reader(kind: type, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    _, own = _fields_of(kind, converter)

    def read(values: Any, _kind: Any) -> Any:
        if not isinstance(values, dict) or TYPE not in values:
            return own(values, kind)
        # The classes of topics need not be imported yet, and the others are.
        found = _class_of(str(values[TYPE]))
        named = _by_name(_subclasses(kind))
        if found is not None and issubclass(found, kind):
            named[values[TYPE]] = found
        return _read_named(values, named, converter)

    return read


def _protocol_writer(kind: Any, converter: cattrs.Converter) -> Hook:
    def write(value: Any) -> Any:
        if not dataclasses.is_dataclass(value):
            return plain(value)
        path = _path_of(type(value))
        if _class_of(path) is not type(value):
            raise TypeError(f"{path}: allowed for {kind.__name__}: a class below {topics.__name__}")
        return {TYPE: path, **converter.unstructure(value, type(value))}

    return write


def _protocol_reader(kind: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    def read(values: Any, _kind: Any) -> Any:
        found = _class_of(str(values[TYPE]))
        if found is None:
            raise TypeError(f"{TYPE}: found {values[TYPE]!r}, expected {kind.__name__}")
        return _read_named(values, {values[TYPE]: found}, converter)

    return read


def _path_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _class_of(path: str) -> type | None:
    """Return the dataclass at a path below the topics, or None if it does not exist."""
    module, _, name = path.rpartition(".")
    if not module.startswith(f"{topics.__name__}."):
        return None
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None
    return found if isinstance(found, type) and dataclasses.is_dataclass(found) else None


def _by_name(kinds: Sequence[type]) -> dict[str, type]:
    named = {kind.__name__: kind for kind in kinds}
    if len(named) < len(set(kinds)):
        raise TypeError(f"two of these classes have one name: {', '.join(map(str, kinds))}")
    return named


def _read_named(values: Any, named: Mapping[str, type], converter: cattrs.Converter) -> Any:
    name = values[TYPE]
    if name not in named:
        raise TypeError(f"{TYPE}: found {name!r}, expected {', '.join(named)}")
    fields = {key: value for key, value in values.items() if key != TYPE}
    return converter.structure(fields, named[name])


def _members(union: Any) -> tuple[list[type], list[Any]]:
    """Return the dataclasses of a union with their subclasses, and its other members."""
    members = [member for member in typing.get_args(union) if member is not types.NoneType]
    classes: list[Any] = [member for member in members if dataclasses.is_dataclass(member)]
    others = [member for member in members if member not in classes and member not in PLAIN]
    if len(others) > 1:
        raise TypeError(f"{union}: a result's union has at most one type of collection")
    known = dict.fromkeys([*classes, *(sub for one in classes for sub in _subclasses(one))])
    return list(known), others


def _union_writer(union: Any, converter: cattrs.Converter) -> Hook:
    classes, others = _members(union)
    _by_name(classes)

    def write(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            if type(value) not in classes:
                raise TypeError(f"{type(value).__name__} is no member of {union}")
            return {TYPE: type(value).__name__, **converter.unstructure(value, type(value))}
        if value is None or not others or isinstance(value, PLAIN) and Any not in others:
            return _free(value)
        return converter.unstructure(value, others[0])

    return write if len(classes) != 1 or others else _optional_writer(classes[0], converter)


def _optional_writer(kind: type, converter: cattrs.Converter) -> Hook:
    def write(value: Any) -> Any:
        is_member = dataclasses.is_dataclass(value)
        return converter.unstructure(value, kind) if is_member else _free(value)

    return write


def _union_reader(union: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    classes, others = _members(union)
    named = _by_name(classes)
    allowed = tuple(member for member in typing.get_args(union) if member in PLAIN)
    allowed += (int,) if float in allowed else ()
    has_none = types.NoneType in typing.get_args(union)

    def read(value: Any, _kind: Any) -> Any:
        if value is None and has_none:
            return None
        if isinstance(value, dict) and TYPE in value:
            return _read_named(value, named, converter)
        is_float = isinstance(value, dict) and value.keys() == {FLOAT}
        if isinstance(value, PLAIN) or is_float and allowed:
            value = _read_free(value)
            if isinstance(value, allowed) or others and _is_free(others[0]):
                return value
        elif others:
            return converter.structure(value, others[0])
        elif len(classes) == 1:
            return converter.structure(value, classes[0])
        raise TypeError(f"found {value!r}, expected {union}")

    return read


def _mapping_writer(kind: Any, converter: cattrs.Converter) -> Hook:
    key_kind, value_kind = typing.get_args(kind)

    def write(mapping: Mapping[Any, Any]) -> Any:
        pairs = [(key, converter.unstructure(mapping[key], value_kind)) for key in mapping]
        if key_kind is str:
            return dict(pairs)
        return [[converter.unstructure(key, key_kind), value] for key, value in pairs]

    return write


def _mapping_reader(kind: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    key_kind, value_kind = typing.get_args(kind)

    def read(values: Any, _kind: Any) -> Any:
        pairs = values.items() if key_kind is str else values
        return {
            converter.structure(key, key_kind): converter.structure(value, value_kind)
            for key, value in pairs
        }

    return read


def _sequence_writer(kind: Any, converter: cattrs.Converter) -> Hook:
    member_kind = typing.get_args(kind)[0]
    is_point = _is_mapping(member_kind)

    def write(members: Sequence[Any]) -> Any:
        table = table_of(members, is_point) if len(members) >= LONG else None
        return table or [converter.unstructure(member, member_kind) for member in members]

    return write


def _sequence_reader(kind: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    member_kind = typing.get_args(kind)[0]
    collect: Any = tuple if typing.get_origin(kind) is tuple else list

    def read(values: Any, _kind: Any) -> Any:
        if isinstance(values, StoredTable):
            frame = values.frame
            is_point = _is_mapping(member_kind)
            return collect(frame.to_dicts() if is_point else frame.to_series().to_list())
        if not isinstance(values, list):
            raise TypeError(f"found {values!r}, expected a list")
        return collect(converter.structure(value, member_kind) for value in values)

    return read


def _array(array: Any) -> Any:
    values: Any = StoredTable(pl.DataFrame({"value": array.ravel()}))
    if array.size < LONG:
        values = _free(array.ravel().tolist())
    return {"dtype": str(array.dtype), "shape": list(array.shape), "values": values}


def _read_array(stored: Any, _kind: Any) -> Any:
    values = stored["values"]
    if isinstance(values, StoredTable):
        members = values.frame.to_series().to_numpy()
    else:
        members = np.array(_read_free(values))
    return members.astype(stored["dtype"]).reshape(stored["shape"])
