"""Build the catalogue of the members of all open folders under given roots."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wattwire.catalog import manifest
from wattwire.catalog.home import home
from wattwire.catalog.links import MANIFEST as LINK_MANIFEST
from wattwire.catalog.only import check_only
from wattwire.catalog.services import check_services, needed
from wattwire.model.errors import UsageError, unknown
from wattwire.model.setting_purposes import SETTING_PURPOSES, SWITCH
from wattwire.model.study import merge
from wattwire.model.treatment import Level

SETTING_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}
REACHES = ("network", "host")
"""Extent of a middleware's messages: between hosts, or only within one host."""
REPLIES_TOLD_BY = ("number", "sequence")
"""Identification of replies, either by the middleware's call number or only by sequence number."""


def _has_type(value: object, required: type) -> bool:
    return isinstance(value, required) and (required is bool or not isinstance(value, bool))


def default_roots() -> list[Path]:
    """Return the folders to search, which are the entries of WATTWIRE_PATH followed by `home()`."""
    extra = [Path(p) for p in os.environ.get("WATTWIRE_PATH", "").split(":") if p]
    return [*extra, home()]


@dataclass(frozen=True)
class Middleware:
    """A middleware and its parsed manifest."""

    name: str
    folder: Path
    document: dict[str, Any]

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        return self.document.get("settings", {})

    @property
    def services(self) -> dict[str, dict[str, Any]]:
        return self.document.get("services", {})

    def services_for(self, settings: Mapping[str, Level]) -> dict[str, dict[str, Any]]:
        """Return the services that a treatment needs, from its settings without defaults."""
        return needed(self.services, self.effective_settings(settings))

    @property
    def environment(self) -> dict[str, Any] | None:
        return self.document.get("environment")

    @property
    def reach(self) -> str:
        """Return how far messages travel, a value of REACHES."""
        reach: str = self.document.get("reach", REACHES[0])
        return reach

    def has_error_replies(self, pattern: str) -> bool:
        """Return whether servers reply with an error to a call that they must not serve (C-36)."""
        error_replies: bool = (
            self.document.get("patterns", {}).get(pattern, {}).get("error_replies", False)
        )
        return error_replies

    def listens(self, pattern: str, settings: Mapping[str, Level] | None = None) -> str:
        """Return the role that listens in a pattern with these settings.

        It is "none" if the roles discover each other, or connect only to a service (`hub`).
        """
        if any(table.get("hub") for table in self.services_for(settings or {}).values()):
            return "none"
        return self.document.get("patterns", {}).get(pattern, {}).get("listens", "none")

    def replies_told_by(self, pattern: str) -> str:
        """Return how replies to overlapping calls are matched (C-33).

        The result is a value of REPLIES_TOLD_BY.
        """
        table = self.document.get("patterns", {}).get(pattern, {})
        return table.get("replies_told_by", REPLIES_TOLD_BY[0])

    def setting_with(self, purpose: str) -> str | None:
        """Return the name of the first setting with a purpose of SETTING_PURPOSES, or None."""
        return next((n for n, t in self.settings.items() if t.get("purpose") == purpose), None)

    def effective_settings(self, given: Mapping[str, Level]) -> dict[str, Level]:
        """Return all settings, with defaults filled in. Raises UsageError for invalid settings."""
        for name, value in given.items():
            if name not in self.settings:
                raise unknown(f"middleware {self.name}", "setting", name, self.settings)
            self._check_setting(name, value)
        return {name: given.get(name, table["default"]) for name, table in self.settings.items()}

    def _check_setting(self, name: str, value: Level) -> None:
        table = self.settings[name]
        required = SETTING_TYPES[table["type"]]
        message = f"middleware {self.name}: setting {name}: found {value!r}; allowed: "
        if "allowed" in table and value not in table["allowed"]:
            raise UsageError(message + ", ".join(map(repr, table["allowed"])))
        if not _has_type(value, required):
            raise UsageError(message + f"{table['type']}")
        bounds = [f"{name} {table[name]}" for name in ("minimum", "maximum") if name in table]
        if value < table.get("minimum", value) or value > table.get("maximum", value):
            raise UsageError(message + ", ".join(bounds))


@dataclass(frozen=True)
class Cell:
    """The implementation of one middleware in one language."""

    name: str
    folder: Path
    language: str
    language_folder: Path | None
    middleware: Middleware
    document: dict[str, Any] = field(hash=False)
    variant: str = ""
    """The variant of the study whose root contains the cell. Several variants may have a cell of
    the same name.
    """

    @property
    def known_as(self) -> str:
        """Return the cell's name, prefixed with its variant. It is unique in a campaign."""
        return f"{self.variant}: {self.name}" if self.variant else self.name

    @property
    def settings_allowed(self) -> dict[str, list[Level]]:
        """Return the supported values of each setting that this cell supports only in part."""
        tables = self.document.get("settings", {})
        return {name: table["allowed"] for name, table in tables.items() if "allowed" in table}

    def gap(
        self,
        pattern: str,
        needs: Sequence[str],
        payload_bytes: int | None = None,
        settings: Mapping[str, Level] | None = None,
    ) -> str | None:
        """Return the reason that this cell cannot execute a treatment, or None if it can."""
        if pattern not in self.document["patterns"]:
            available = ", ".join(self.document["patterns"]) or "none"
            return f"{self.name} does not support the pattern {pattern} (supported: {available})"
        missing = [need for need in needs if need not in self.document["capabilities"]]
        if missing:
            noun = "capability" if len(missing) == 1 else "capabilities"
            return f"{self.name} lacks the {noun} {', '.join(missing)}"
        payload_bytes_max = self.document.get("payload_bytes_max")
        if "encoding.record" in needs:
            payload_bytes_max = self.document.get("record_bytes_max", payload_bytes_max)
        if payload_bytes_max is not None and (payload_bytes or 0) > payload_bytes_max:
            return f"{self.name} carries at most {payload_bytes_max} bytes, not {payload_bytes}"
        payload_bytes_min = self.document.get("payload_bytes_min", 0) * (
            2 if "encoding.text" in needs else 1
        )
        if (
            payload_bytes is not None
            and payload_bytes < payload_bytes_min
            and "literal" not in needs
        ):
            return f"{self.name} carries at least {payload_bytes_min} bytes, not {payload_bytes}"
        for name, allowed in self.settings_allowed.items():
            if settings and settings.get(name, allowed[0]) not in allowed:
                available = ", ".join(map(repr, allowed))
                return (
                    f"{self.name} does not support {name} = {settings[name]!r} "
                    f"(supported: {available})"
                )
        return None


def _check_word(where: str, word: str, allowed: Sequence[str]) -> None:
    if word not in allowed:
        raise UsageError(f"{where}: found {word!r}; allowed: {', '.join(allowed)}")


def _check_versions(where: str, versions: Mapping[str, Mapping[str, Any]]) -> None:
    for program, table in versions.items():
        minimum = table.get("minimum", "nothing")
        if not re.fullmatch(r"\d+(\.\d+)*", minimum):
            raise UsageError(
                f"{where}: versions.{program}.minimum: found {minimum!r}; allowed: numbers "
                'separated by dots, such as "1.25"'
            )


def _check_purpose(where: str, table: dict[str, Any]) -> None:
    if "purpose" not in table:
        return
    if table["purpose"] not in SETTING_PURPOSES:
        raise unknown(where, "purpose", str(table["purpose"]), SETTING_PURPOSES)
    required = SETTING_PURPOSES[table["purpose"]]
    is_switch = required == "boolean" and table.get("allowed") == list(SWITCH)
    if table["type"] != required and not is_switch:
        alternative = f", or a string of {', '.join(SWITCH)}" if required == "boolean" else ""
        raise UsageError(
            f"{where}: type: found {table['type']!r}; allowed with purpose {table['purpose']}: "
            f"{required}{alternative}"
        )


class Catalog:
    """All members of the open folders under `roots`.

    If several roots contain a member of the same name, the first root takes precedence.
    """

    def __init__(self, roots: Sequence[Path] | None = None, variant: str = "") -> None:
        self.roots = list(roots) if roots is not None else default_roots()
        self.variant = variant
        self.languages = {p.parent.name: p for p in self._glob("languages/*/language.toml")}
        self.meters = {p.parent.name: p.parent for p in self._glob("meters/*/meter.toml")}
        self.studies = {p.parent.name: p.parent for p in self._glob("studies/*/study.toml")}
        self.links = {p.parent.name: p.parent for p in self._glob(f"links/*/{LINK_MANIFEST}")}
        self.middleware = {
            p.parent.name: self._middleware(p) for p in self._glob("middleware/*/middleware.toml")
        }
        self._cell_paths = {
            f"{p.parent.parent.name}/{p.parent.name}": p
            for p in self._glob("middleware/*/*/node.toml")
        }

    def _glob(self, pattern: str) -> Iterator[Path]:
        # In reverse order, entries of the first root overwrite entries of the other roots in a
        # dict.
        for root in reversed(self.roots):
            yield from sorted(root.glob(pattern))

    @staticmethod
    def _language(path: Path) -> dict[str, Any]:
        document = manifest.read_toml(path)
        manifest.check_keys(document, manifest.LANGUAGE_KEYS, str(path))
        return document

    def _middleware(self, path: Path) -> Middleware:
        document = manifest.read_toml(path)
        manifest.check_keys(document, manifest.MIDDLEWARE_KEYS, str(path))
        _check_word(f"{path}: reach", document.get("reach", REACHES[0]), REACHES)
        for name, table in document.get("patterns", {}).items():
            replies_told_by = table.get("replies_told_by", REPLIES_TOLD_BY[0])
            where = f"{path}: patterns.{name}.replies_told_by"
            _check_word(where, replies_told_by, REPLIES_TOLD_BY)
        for name, table in document.get("settings", {}).items():
            if table.get("type") not in SETTING_TYPES or "default" not in table:
                raise UsageError(
                    f"{path}: settings.{name}: set a default and a type; allowed types: "
                    + ", ".join(SETTING_TYPES)
                )
            _check_purpose(f"{path}: settings.{name}", table)
            check_only(f"{path}: settings.{name}", table)
            if not _has_type(table["default"], SETTING_TYPES[table["type"]]):
                raise UsageError(
                    f"{path}: settings.{name}.default: found {table['default']!r}; "
                    f"allowed: {table['type']}"
                )
        settings, has_environment = document.get("settings", {}), "environment" in document
        check_services(str(path), document.get("services", {}), settings, has_environment)
        return Middleware(path.parent.name, path.parent, document)

    @property
    def cells(self) -> list[str]:
        return sorted(self._cell_paths)

    def titles(self) -> dict[str, dict[str, str]]:
        """Return the titles of languages and middleware (kind → name → title)."""
        languages = {n: self._language(p) for n, p in self.languages.items()}
        return {
            "language": {n: str(d.get("title", n)) for n, d in languages.items()},
            "middleware": {n: str(m.document.get("title", n)) for n, m in self.middleware.items()},
        }

    def setting_purposes(self) -> dict[str, dict[str, str]]:
        """Return the purposes of the middleware's settings (middleware → setting → purpose)."""
        return {
            name: {
                key: str(table["purpose"])
                for key, table in mw.settings.items()
                if "purpose" in table
            }
            for name, mw in self.middleware.items()
        }

    def switches(self) -> dict[str, list[str]]:
        """Return the settings with the values "default", "on" and "off" (middleware → settings)."""
        return {
            name: [k for k, table in mw.settings.items() if table.get("allowed") == list(SWITCH)]
            for name, mw in self.middleware.items()
        }

    def cell(self, name: str) -> Cell:
        """Return the cell `name` with merged manifests. Raises UsageError for an unknown name."""
        path = self._cell_paths.get(name)
        if path is None:
            raise unknown("cell", "cell", name, self._cell_paths)
        node_document = manifest.read_toml(path)
        manifest.check_keys(node_document, manifest.NODE_KEYS, str(path))
        parent = path.parent.parent.name
        if parent not in self.middleware:
            raise UsageError(f"{path}: the middleware has no middleware.toml in {path.parents[1]}")
        middleware = self.middleware[parent]
        language = node_document.get("language", path.parent.name)
        if language not in self.languages:
            raise unknown(str(path), "language", language, self.languages)
        language_path = self.languages[language]
        language_document = self._language(language_path)
        document = manifest.read_toml(Path(__file__).with_name("defaults.toml"))
        inherited = ("build", "run", "payload_bytes_max", "record_bytes_max")
        shared = {k: v for k, v in middleware.document.items() if k in inherited}
        for layer in (language_document, shared, node_document):
            document = merge(document, layer)
        _check_versions(str(path), document["versions"])
        for setting in document.get("settings", {}):
            if setting not in middleware.settings:
                raise unknown(str(path), "setting", setting, middleware.settings)
        folder = language_path.parent
        return Cell(name, path.parent, language, folder, middleware, document, self.variant)

    def cells_like(self, names: Sequence[str]) -> list[Cell]:
        """Return the cells that match names, paths (middleware/NAME/CELL) or patterns.

        The name of a middleware matches all of its cells. Without names, return all cells. Raises
        UsageError for an unknown name.
        """
        chosen: dict[str, None] = {} if names else dict.fromkeys(self.cells)
        for name in names:
            cell_name = "/".join(Path(name).parts[-2:])
            # A pattern without matches is probably a typo. `cell` then raises UsageError.
            matches = fnmatch.filter(self.cells, cell_name)
            matches = matches or fnmatch.filter(self.cells, f"{cell_name}/*")
            chosen |= dict.fromkeys(matches or [cell_name])
        return [self.cell(name) for name in chosen]

    def of_variant(self, name: str, root: str) -> Catalog:
        """Return a variant's catalogue, in which `root` precedes this catalogue's roots.

        Raises UsageError if `root` lacks both middleware/ and languages/.
        """
        folder = Path(root)
        kinds = [kind for kind in ("middleware", "languages") if (folder / kind).is_dir()]
        if not kinds:
            raise UsageError(
                f"variant {name}: {root}: this folder has no middleware/ or languages/; "
                "allowed: the root of a checkout, or a folder with the same structure"
            )
        return Catalog([folder, *self.roots], name)

    def resolve(self, middleware: str, language: str) -> list[Cell]:
        """Return a middleware's cells in a language.

        The cell whose folder has the language's name comes first. Raises UsageError for an unknown
        name.
        """
        if middleware not in self.middleware:
            raise unknown("catalogue", "middleware", middleware, self.middleware)
        if language not in self.languages:
            raise unknown("catalogue", "language", language, self.languages)
        cells = [self.cell(name) for name in self.cells if name.startswith(f"{middleware}/")]
        in_language = [cell for cell in cells if cell.language == language]
        return sorted(in_language, key=lambda cell: (cell.folder.name != language, cell.name))

    def study(self, name_or_path: str) -> tuple[str, Path]:
        """Return the name and the file of a study, given by name, folder or file.

        Raises UsageError for an unknown study.
        """
        path = Path(name_or_path)
        folder = os.path.isdir(path)  # False for an overlong name, unlike Path.is_dir
        if name_or_path and (path.suffix == ".toml" or folder):
            file = path / "study.toml" if folder else path
            if not file.exists():
                raise UsageError(f"{file}: this study file does not exist")
            folder_name = file.resolve().parent.name  # resolves "." to the folder's name
            return (folder_name if file.name == "study.toml" else file.stem), file
        if name_or_path not in self.studies:
            raise unknown("catalogue", "study", name_or_path, self.studies)
        return name_or_path, self.studies[name_or_path] / "study.toml"
