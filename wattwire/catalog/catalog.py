"""Build the catalogue of the members of all open folders under given roots."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wattwire.catalog import manifest
from wattwire.catalog.bridges import FOLDER as BRIDGES
from wattwire.catalog.bridges import MANIFEST as BRIDGE_MANIFEST
from wattwire.catalog.bridges import Bridge, read_bridge
from wattwire.catalog.cells import (
    REACHES,
    REPLIES_TOLD_BY,
    SETTING_TYPES,
    Cell,
    Middleware,
    has_type,
)
from wattwire.catalog.emulated import check_emulated
from wattwire.catalog.home import home
from wattwire.catalog.links import MANIFEST as LINK_MANIFEST
from wattwire.catalog.only import check_only
from wattwire.catalog.probes import MANIFEST as PROBE_MANIFEST
from wattwire.catalog.probes import Probe, read_probe
from wattwire.catalog.services import SECURED_TABLE, check_services
from wattwire.model.errors import UsageError, nearest, unknown
from wattwire.model.fields import merge
from wattwire.model.setting_purposes import (
    SECURED,
    SECURITY,
    SETTING_PURPOSES,
    SWITCH,
    UNSECURED,
)
from wattwire.model.treatment import Level


def default_roots() -> list[Path]:
    """Return the folders to search, which are the entries of WATTWIRE_PATH followed by `home()`."""
    extra = [Path(p) for p in os.environ.get("WATTWIRE_PATH", "").split(":") if p]
    return [*extra, home()]


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
    levels = [UNSECURED, SECURED]
    allowed, default = table.get("allowed"), table["default"]
    if table["purpose"] == SECURITY and (allowed, default) != (levels, UNSECURED):
        raise UsageError(
            f"{where}: found allowed = {allowed} and default = {default!r}; "
            f"allowed with purpose {SECURITY}: allowed = {levels} and default = {UNSECURED!r}"
        )


def _check_secured(path: Path, middleware: Middleware) -> None:
    """Raise UsageError for tables of secured nodes and services that no setting can select."""
    if middleware.setting_with(SECURITY) is not None:
        return
    tables = [SECURITY] if SECURITY in middleware.document else []
    tables += [
        f"services.{name}.{SECURED_TABLE}"
        for name, table in middleware.services.items()
        if SECURED_TABLE in table
    ]
    if tables:
        raise UsageError(
            f"{path}: found [{tables[0]}], but no setting has the purpose {SECURITY}. Add such a "
            "setting, or remove the table."
        )


@functools.cache
def _defaults() -> dict[str, Any]:
    """Return the manifest that every cell inherits. `merge` copies it."""
    return manifest.read_toml(Path(__file__).with_name("defaults.toml"))


class Catalog:
    """All members of the open folders under `roots`.

    If several roots contain a member of the same name, the first root takes precedence.
    """

    def __init__(self, roots: Sequence[Path] | None = None, variant: str = "") -> None:
        self.roots = list(roots) if roots is not None else default_roots()
        self.variant = variant
        self._language_documents: dict[Path, dict[str, Any]] = {}
        self._cells: dict[str, Cell] = {}
        self.languages = {p.parent.name: p for p in self._glob("languages/*/language.toml")}
        self.meters = {p.parent.name: p.parent for p in self._glob("meters/*/meter.toml")}
        self.studies = {p.parent.name: p.parent for p in self._glob("studies/*/study.toml")}
        self.links = {p.parent.name: p.parent for p in self._glob(f"links/*/{LINK_MANIFEST}")}
        self.middleware = {
            p.parent.name: self._middleware(p) for p in self._glob("middleware/*/middleware.toml")
        }
        self.bridges = {p.parent.name: p for p in self._glob(f"{BRIDGES}/*/{BRIDGE_MANIFEST}")}
        self._cell_paths = self._below_middleware("node.toml")
        self.probes = self._below_middleware(PROBE_MANIFEST)

    def meter_manifests(self) -> dict[str, dict[str, Any]]:
        """Return the manifest of each meter by name."""
        return {
            name: manifest.read_toml(folder / "meter.toml") for name, folder in self.meters.items()
        }

    def _glob(self, pattern: str) -> Iterator[Path]:
        # In reverse order, entries of the first root overwrite entries of the other roots in a
        # dict.
        for root in reversed(self.roots):
            yield from sorted(root.glob(pattern))

    def _below_middleware(self, manifest_name: str) -> dict[str, Path]:
        """Return MIDDLEWARE/FOLDER → manifest of the folders that have this manifest."""
        paths = self._glob(f"middleware/*/*/{manifest_name}")
        return {f"{p.parent.parent.name}/{p.parent.name}": p for p in paths}

    def _language(self, path: Path) -> dict[str, Any]:
        if path not in self._language_documents:
            document = manifest.read_toml(path)
            manifest.check_keys(document, manifest.LANGUAGE_KEYS, str(path))
            self._language_documents[path] = document
        return self._language_documents[path]

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
            if not has_type(table["default"], SETTING_TYPES[table["type"]]):
                raise UsageError(
                    f"{path}: settings.{name}.default: found {table['default']!r}; "
                    f"allowed: {table['type']}"
                )
        settings, has_environment = document.get("settings", {}), "environment" in document
        check_services(str(path), document.get("services", {}), settings, has_environment)
        middleware = Middleware(path.parent.name, path.parent, document)
        _check_secured(path, middleware)
        return middleware

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

    def _unknown_cell(self, name: str) -> UsageError:
        """Return the error for a cell that is not included: the cells of its middleware, or all
        middleware.
        """
        middleware = name.partition("/")[0]
        cells = [path for path in self._cell_paths if path.partition("/")[0] == middleware]
        if cells:
            error = unknown("cell", "cell", name, cells)
        else:
            known = ", ".join(sorted(self.middleware))
            error = UsageError(
                f'cell: unknown cell "{name}", because {middleware} is not included; known '
                f"middleware: {known}.{nearest(middleware, self.middleware)}"
            )
        return UsageError(f"{error} To add a cell, see docs/howto/add-a-cell.md.")

    def cell(self, name: str) -> Cell:
        """Return the cell `name` with merged manifests. Raises UsageError for an unknown name."""
        if name not in self._cells:
            self._cells[name] = self._read_cell(name)
        return self._cells[name]

    def _read_cell(self, name: str) -> Cell:
        path = self._cell_paths.get(name)
        if path is None:
            raise self._unknown_cell(name)
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
        document = _defaults()
        inherited = ("build", "run", "payload_bytes_max", "record_bytes_max")
        shared = {k: v for k, v in middleware.document.items() if k in inherited}
        for layer in (language_document, shared, node_document):
            document = merge(document, layer)
        _check_versions(str(path), document["versions"])
        if "emulated" in document:
            check_emulated(str(path), document["emulated"])
        for setting in document.get("settings", {}):
            if setting not in middleware.settings:
                raise unknown(str(path), "setting", setting, middleware.settings)
        imported = node_document.get("imports")
        if imported is not None and imported not in self._cell_paths:
            raise unknown(f"{path}: imports", "cell", imported, self._cell_paths)
        return Cell(
            name, path.parent, language, language_path.parent, middleware, document, self.variant,
            imported_folder=None if imported is None else self._cell_paths[imported].parent,
            wrapped_kit=self._wrapped_kit(language_path, language_document),
        )  # fmt: skip

    def _wrapped_kit(self, path: Path, language: Mapping[str, Any]) -> Path | None:
        """Return the folder of the kit that the kit of a language wraps, or None."""
        wraps = language.get("wraps")
        if wraps is None:
            return None
        documents = {name: self._language(p) for name, p in self.languages.items()}
        kits = {name: str(d["kit"]) for name, d in documents.items() if "kit" in d}
        if wraps not in kits:
            raise unknown(f"{path}: wraps", "language with a kit", wraps, kits)
        return self.languages[wraps].parent / kits[wraps]

    def bridge(self, name: str, outer_settings: Mapping[str, Level] | None = None) -> Bridge:
        """Return the bridge `name` with these settings of its outer middleware.

        Raises UsageError for an unknown name, a bad manifest, or a setting that the bridge has not.
        """
        path = self.bridges.get(name)
        if path is None:
            raise unknown("catalogue", "bridge", name, self.bridges)
        own = read_bridge(path, self.middleware, self.meters)
        language = own["language"]
        if language not in self.languages:
            raise unknown(str(path), "language", language, self.languages)
        document = _defaults()
        language_path = self.languages[language]
        language_document = self._language(language_path)
        document = merge(document, language_document)
        inner, outer = self.middleware[own["inner"]], self.middleware[own["outer"]]
        for setting in outer_settings or {}:
            if setting not in own.get("settable", []):
                raise unknown(f"bridge {name}", "outer setting", setting, own.get("settable", []))
        for end, settings in ((inner, "settings"), (outer, "outer_settings")):
            try:
                end.effective_settings(own.get(settings, {}))
            except UsageError as error:
                raise UsageError(f"{path}: {settings}: {error}") from error
        own = merge(own, {"outer_settings": dict(outer_settings or {})})
        document = merge(document, own)
        try:
            outer.effective_settings(own["outer_settings"])
        except UsageError as error:
            raise UsageError(f"bridge {name}: outer_settings: {error}") from error
        inner_folder = inner.folder / own["inner_cell"] if "inner_cell" in own else None
        if inner_folder is not None and not (inner_folder / "node.toml").exists():
            cells = [c.partition("/")[2] for c in self.cells if c.startswith(f"{inner.name}/")]
            raise unknown(f"{path}: inner_cell", "cell", own["inner_cell"], cells)
        return Bridge(
            f"{BRIDGES}/{name}", path.parent, language, language_path.parent, inner, document,
            self.variant, outer=outer, inner_folder=inner_folder,
            wrapped_kit=self._wrapped_kit(language_path, language_document),
        )  # fmt: skip

    def probe(self, name: str) -> Probe:
        """Return the probe `name`. Raises UsageError for an unknown name or a bad manifest."""
        path = self.probes.get(name)
        if path is None:
            raise unknown("catalogue", "probe", name, self.probes)
        own = read_probe(path, self.languages)
        language_path = self.languages[own["language"]]
        language = self._language(language_path)
        document = merge(merge(_defaults(), language), own)
        return Probe(
            name, path.parent, own["language"], language_path.parent,
            self.middleware[path.parent.parent.name], document,
        )  # fmt: skip

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
