"""Generate the constants of the contract for each language from contract/schemas.

Usage: generate_constants.py [--check]. Every `NAME.jinja` in languages/ and wattwire/ is rendered
to `NAME` in the same folder. With --check, nothing is written. The program prints the files that
differ, and its exit code is 1. Each language has a template, so this program needs no list of
languages.

A template can use these values, each in the order of the contract:

    contract            int, the version
    keys                of every spec: .name, .type (string, integer, strings, integers)
    pipeline_keys       of specs of the pattern pipeline in addition: .name, .type
    member_keys         of specs of the role member in addition: .name, .type
    part_keys           of each part of a member: .name, .type
    roles               .name, .code, .pattern, .sends (bool)
    patterns            .name, .sender, .receiver, .relay ("" for patterns without relays)
    kinds, flags        .name, .code
    words               {"delivery": [...], "ordering": [...], "overload": [...]} of a guarantee
    header, record      of a sample file: .fields (.name, .type, .offset, .bytes), .bytes
    magic, version, clock, unknown_ns, unknown_peer, probe_counter
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("languages", "wattwire")
SPEC_TYPES = {"string": "string", "integer": "integer"}


@dataclass(frozen=True)
class Key:
    name: str
    type: str


@dataclass(frozen=True)
class Role:
    name: str
    code: int
    pattern: str
    sends: bool


@dataclass(frozen=True)
class Pattern:
    name: str
    sender: str
    receiver: str
    relay: str = ""
    member: str = ""


@dataclass(frozen=True)
class Code:
    name: str
    code: int


@dataclass(frozen=True)
class Field:
    name: str
    type: str
    """u8, u16, u32, u64, i64; s8: 8 bytes of text; x16: 16 zero bytes."""
    offset: int
    bytes: int


@dataclass(frozen=True)
class Layout:
    fields: tuple[Field, ...]

    @property
    def bytes(self) -> int:
        return self.fields[-1].offset + self.fields[-1].bytes


def key_type(name: str, schema: dict[str, Any]) -> str:
    """Return the type of a spec's key from its JSON schema. Raise ValueError for other types."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        return "string" if isinstance(values[0], str) else "integer"
    if schema["type"] == "array":
        return SPEC_TYPES[schema["items"]["type"]] + "s"
    if schema["type"] not in SPEC_TYPES:
        raise ValueError(f"{name}: found type {schema['type']}; allowed: {', '.join(SPEC_TYPES)}")
    return SPEC_TYPES[schema["type"]]


def layout(types: dict[str, str]) -> Layout:
    fields, offset = [], 0
    for name, kind in types.items():
        size = int(kind[1:]) // (8 if kind[0] in "ui" else 1)
        fields.append(Field(name, kind, offset, size))
        offset += size
    return Layout(tuple(fields))


def required_of(spec: dict[str, Any], key: str, value: str) -> list[str]:
    """Return the keys that a spec needs in addition if `key` has this value."""
    names = []
    for rule in spec["allOf"]:
        if rule["if"]["properties"] == {key: {"const": value}}:
            names += rule["then"].get("required", [])
    return names


def values(schemas: Path) -> dict[str, Any]:
    """Return the values that a template can use, from the files in contract/schemas."""
    codes = json.loads((schemas / "codes.json").read_text(encoding="utf-8"))
    spec = json.loads((schemas / "spec.schema.json").read_text(encoding="utf-8"))
    ready = json.loads((schemas / "ready.schema.json").read_text(encoding="utf-8"))
    guarantee = ready["properties"]["guarantee"]["properties"]
    patterns = [Pattern(name, **roles) for name, roles in codes["patterns"].items()]
    pattern_of = {
        role: p.name for p in patterns for role in (p.sender, p.receiver, p.relay, p.member)
    }
    senders = {pattern.sender for pattern in patterns}
    file = codes["sample_file"]
    keys = [Key(name, key_type(name, schema)) for name, schema in spec["properties"].items()]
    return {
        "contract": codes["contract"],
        "keys": [key for key in keys if key.name in spec["required"]],
        "pipeline_keys": [
            key for key in keys if key.name in required_of(spec, "pattern", "pipeline")
        ],
        "member_keys": [key for key in keys if key.name in required_of(spec, "role", "member")],
        "part_keys": [
            key for key in keys if f"part.0.{key.name}" in required_of(spec, "role", "member")
        ],
        "roles": [
            Role(name, code, pattern_of[name], name in senders)
            for code, name in enumerate(codes["roles"])
        ],
        "patterns": patterns,
        "kinds": [Code(name, code) for code, name in enumerate(codes["kinds"])],
        "flags": [Code(name, code) for name, code in codes["flags"].items()],
        "words": {name: schema["enum"] for name, schema in guarantee.items()},
        "header": layout(file["header"]),
        "record": layout(file["record"]),
        **{name: file[name] for name in ("magic", "version", "clock")},
        **{name: codes[name] for name in ("unknown_ns", "unknown_peer", "probe_counter")},
    }


def render(template: Path, schemas: Path) -> str:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    return environment.from_string(template.read_text(encoding="utf-8")).render(values(schemas))


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(f"found {' '.join(arguments)}; allowed: --check or nothing", file=sys.stderr)
        return 2
    stale = []
    for template in sorted(path for name in FOLDERS for path in (ROOT / name).rglob("*.jinja")):
        output = template.with_suffix("")
        text = render(template, ROOT / "contract" / "schemas")
        if output.is_file() and output.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(output.relative_to(ROOT)))
        if not arguments:
            output.write_text(text, encoding="utf-8")
    verb = "differs from its template; run make constants" if arguments else "written"
    for name in stale:
        print(f"{name}: {verb}")
    return 1 if arguments and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
