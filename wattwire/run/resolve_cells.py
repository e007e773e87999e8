"""Resolve and build the cells of each treatment before the first run, or skip the treatment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wattwire.catalog import Bridge, Catalog, Cell, Middleware
from wattwire.catalog.cells import MEMBERS
from wattwire.catalog.manifest import read_toml
from wattwire.catalog.only import only_gap
from wattwire.design import PlannedRun, expand, make_plan
from wattwire.hosts.cores import core_gap
from wattwire.hosts.host import Host
from wattwire.model.cores import CORES, FREE
from wattwire.model.deployment import PATTERNS, Pattern
from wattwire.model.errors import MissingError, UsageError, as_sentence, unknown
from wattwire.model.flows import FLOW, FlowPart, flow_parts
from wattwire.model.hosts.bridging import FACTOR as FACTOR_BRIDGE
from wattwire.model.hosts.bridging import bridge_of
from wattwire.model.metrics import SYSTEM_CALLS_COUNTED
from wattwire.model.setting_purposes import SECURITY
from wattwire.model.study import DEFAULT_COUNTS, DEFAULT_LEVELS, Plan, Study
from wattwire.model.treatment import Level, Treatment
from wattwire.model.variants import FACTOR
from wattwire.model.words import plural
from wattwire.rig import Builder, CellBuild
from wattwire.rig.builds import NotBuiltError, check_requirements, check_services
from wattwire.run.encodings import encoding_gap, reply_gap
from wattwire.run.layers.gaps import layer_gap
from wattwire.run.node_specs import PlacedTreatment, needs, outer_services
from wattwire.run.placing import (
    NETWORK,
    bridge_gap,
    check_rig,
    level_gap,
    placing_gap,
    used_hosts,
)

SEQ_BYTES = 8
SERVER_LANGUAGE, SERVER_CELL = "server_language", "server_cell"
CLIENT_NEEDS = ("async_client", "pacing.kit", "pacing.native", "loop.open", "loop.closed")


@dataclass(frozen=True)
class Prepared:
    """Treatments that can be run, with their cells, and skipped treatments, with the reasons."""

    treatments: list[Treatment]
    placed: dict[str, PlacedTreatment]
    """Treatment key → the treatment with its cells, which are none for a command."""
    skipped: list[tuple[Treatment, str]]
    builds: dict[str, CellBuild]
    """`Cell.known_as` → the build of that cell."""
    unselected: int = 0
    """Number of treatments that `choose` excluded from the design; not in any other field."""

    layer_gaps: dict[str, str] = field(default_factory=dict)
    """Treatment key → the reason why its layers cannot be recorded; empty without layer runs."""

    def plan(self, plan: Plan, settling_rounds: int = 0) -> list[PlannedRun]:
        """Return all runs of the treatments in their order."""
        profiled = {t.key for t in self.treatments if t.key not in self.layer_gaps}
        proved = {t.key for t in self.treatments if self._names_security(t)}
        return make_plan(self.treatments, plan, settling_rounds, profiled, proved)

    def _names_security(self, treatment: Treatment) -> bool:
        """Return whether a treatment sets the setting of security, to on or to off."""
        placed = self.placed.get(treatment.key)
        if placed is None or not placed.cells:
            return False
        return placed.middleware.setting_with(SECURITY) in treatment.settings

    @property
    def cells(self) -> dict[str, Mapping[str, Cell]]:
        """Return treatment key → role → cell."""
        return {key: placed.cells for key, placed in self.placed.items()}


def prepare(
    study: Study,
    catalog: Catalog,
    builder: Builder | None,
    choose: Callable[[Treatment], bool] | None = None,
) -> Prepared:
    """Resolve and build the cells of a study.

    Nothing is built without a builder, or with a builder that only checks. `choose` selects the
    treatments; cells of other treatments are not resolved. Raise UsageError for a name that is not
    in the catalogue, MissingError if no treatment can be run.
    """
    check_rig(study)
    for name in study.meters.use:
        if name not in catalog.meters:
            raise unknown(f"study {study.name}: meters.use", "meter", name, catalog.meters)
        if counts_system_calls(catalog, name):
            raise UsageError(
                f"study {study.name}: meters.use: {name} counts system calls, which slows down "
                "the measured processes, so timed runs never read it. Remove it here, and set "
                "plan.syscall_runs = 1 for a separate run of each treatment."
            )
    treatments: list[Treatment] = []
    placed: dict[str, PlacedTreatment] = {}
    skipped: list[tuple[Treatment, str]] = []
    builds: dict[str, CellBuild] = {}
    unselected = 0
    catalogs = {
        name: catalog.of_variant(name, variant.root)
        for name, variant in study.variants.items()
        if variant.root
    }
    for treatment, excluded in expand(study):
        if choose is not None and not choose(treatment):
            unselected += 1
            continue
        treatment_catalog = catalogs.get(str(treatment.get(FACTOR)), catalog)
        chosen: dict[str, Cell] | None = None if study.request is None else {}
        reason = excluded or _awaited_gap(treatment, study, treatment_catalog)
        reason = reason or _host_gap(treatment, builder) or level_gap(treatment, study.rig)
        if study.request is None and reason is None:
            chosen, reason = _role_cells(treatment, study, treatment_catalog, builder, builds)
            bridge = _bridge_of(treatment, treatment_catalog)
            if chosen is not None and bridge is not None:
                reason = _build(bridge, builder, builds)
                chosen = {**chosen, FACTOR_BRIDGE: bridge} if reason is None else None
        if chosen is None:
            skipped.append((treatment, reason or "no cell"))
            continue
        treatments.append(treatment)
        placed[treatment.key] = PlacedTreatment(treatment, chosen, study.rig)
    gaps = {key: layer_gap(each) for key, each in placed.items()} if study.plan.layer_runs else {}
    layer_gaps = {key: gap for key, gap in gaps.items() if gap}
    prepared = Prepared(treatments, placed, skipped, builds, unselected, layer_gaps)
    require_treatments(prepared, study)
    return prepared


def require_treatments(prepared: Prepared, study: Study) -> None:
    """Raise UsageError if no treatment was selected, MissingError if none can be run."""
    unselected, skipped = prepared.unselected, prepared.skipped
    if not prepared.treatments and not skipped:
        raise UsageError(
            f"study {study.name}: --only selects no treatment; the design has "
            f"{plural(unselected, 'treatment')}, but none with these levels"
        )
    if not prepared.treatments:
        reasons = sorted({reason for _, reason in skipped})
        raise MissingError(
            f"study {study.name}: no treatment "
            f"{'that --only selects ' if unselected else ''}can be "
            f"run here ({plural(len(skipped), 'treatment')} skipped): " + "; ".join(reasons)
        )


def without_core_gaps(prepared: Prepared, study: Study, hosts: Mapping[str, Host]) -> Prepared:
    """Return the treatments whose `cores` their hosts allow; the others are skipped.

    `hosts` contains the connected hosts. A treatment on another host is not checked.
    """
    kept, skipped = [], list(prepared.skipped)
    for treatment in prepared.treatments:
        gap = None
        if treatment.get(CORES, FREE) != FREE and study.request is None:
            gap = core_gap(hosts, prepared.placed[treatment.key].deployment, treatment)
        if gap is None:
            kept.append(treatment)
        else:
            skipped.append((treatment, gap))
    without = replace(prepared, treatments=kept, skipped=skipped)
    require_treatments(without, study)
    return without


def counts_system_calls(catalog: Catalog, meter: str) -> bool:
    """Return whether a meter counts system calls and is therefore read only in separate runs."""
    path = catalog.meters[meter] / "meter.toml"
    quantities = read_toml(path).get("quantity", []) if path.exists() else []
    return any(quantity.get("name") == SYSTEM_CALLS_COUNTED for quantity in quantities)


def _awaited_gap(treatment: Treatment, study: Study, catalog: Catalog) -> str | None:
    """Return the reason if a middleware or language in `awaits` does not exist, else None."""
    for key, known in (("middleware", catalog.middleware), ("language", catalog.languages)):
        name = str(treatment.get(key, ""))
        if name in study.awaits and name not in known:
            return f"{key} {name} does not exist here yet"
    return None


def _host_gap(treatment: Treatment, builder: Builder | None) -> str | None:
    """Return the reason if this host cannot set a level that concerns the whole host, else None."""
    if builder is None or treatment.get("cpu_latency_us") is None:
        return None
    return builder.cpu_latency_gap()


def _role_cells(
    treatment: Treatment,
    study: Study,
    catalog: Catalog,
    builder: Builder | None,
    builds: dict[str, CellBuild],
) -> tuple[dict[str, Cell] | None, str | None]:
    """Return (role → cell, None), or (None, reason).

    One cell plays all roles unless `server_language` or `server_cell` names another one for the
    server. Both cells must then have the same wire format.
    """
    parts = flow_parts(treatment)
    patterns = [PATTERNS[str(part.treatment["pattern"])] for part in parts]
    cell, reason = _choose(treatment, study, catalog, builder, builds)
    if cell is None:
        return None, reason
    key, level = _server_level(treatment)
    if not level or level == (cell.language if key == SERVER_LANGUAGE else cell.name):
        return {role: cell for pattern in patterns for role in pattern.roles}, None
    pattern = patterns[0]
    if not pattern.result:
        return None, (
            f"{key} = {level}, but pattern {pattern.name} has no server. "
            f"Remove {key}, or use a pattern with a server: {_names_with_replies()}"
        )
    server_cells, reason = _server_cells(cell, key, level, catalog)
    if reason is not None:
        return None, reason
    server, reason = _choose(treatment, study, catalog, builder, builds, server_cells)
    if server is None:
        return None, reason
    wires = [role_cell.document.get("wire", "") for role_cell in (cell, server)]
    if wires[0] != wires[1]:
        return (
            None,
            f"{cell.name} uses the wire format {wires[0]}, and {server.name} uses {wires[1]}",
        )
    return {pattern.receiver: server, pattern.sender: cell}, None


def _server_level(treatment: Treatment) -> tuple[str, str]:
    """Return the factor that selects the server's cell and its level, which is "" without one."""
    levels = {key: str(treatment.get(key) or "") for key in (SERVER_LANGUAGE, SERVER_CELL)}
    if all(levels.values()):
        raise UsageError(
            f"both {SERVER_LANGUAGE} = {levels[SERVER_LANGUAGE]} and {SERVER_CELL} = "
            f"{levels[SERVER_CELL]} are set; allowed: one of them. Delete the other one."
        )
    return next(((key, level) for key, level in levels.items() if level), (SERVER_LANGUAGE, ""))


def _server_cells(
    client: Cell, key: str, level: str, catalog: Catalog
) -> tuple[list[Cell], str | None]:
    """Return (candidates for the server, None), or ([], reason)."""
    middleware = client.middleware.name
    if key == SERVER_LANGUAGE:
        cells = catalog.resolve(middleware, level)
        return cells, None if cells else f"{middleware} has no cell in {level}"
    server = catalog.cell(level)
    if server.middleware.name != middleware:
        return [], (
            f"{key} = {level} is a cell of {server.middleware.name}, and the client's is "
            f"{client.name}; allowed: a cell of {middleware}"
        )
    return [server], None


def _choose(
    treatment: Treatment,
    study: Study,
    catalog: Catalog,
    builder: Builder | None,
    builds: dict[str, CellBuild],
    server_cells: Sequence[Cell] | None = None,
) -> tuple[Cell | None, str | None]:
    """Return the first suitable cell that can be built, or None with the reasons.

    With `server_cells`, the cell is one of them and plays only the server's role.
    """
    if server_cells is not None:
        candidates = list(server_cells)
    elif treatment.get("cell"):
        candidates = [catalog.cell(str(treatment["cell"]))]
    else:
        candidates = catalog.resolve(str(treatment["middleware"]), str(treatment["language"]))
    parts = flow_parts(treatment)
    for part in parts:
        part_gap = _part_gap(part)
        if part_gap:
            return None, part_gap
    if not candidates:
        return None, f"{treatment['middleware']} has no cell in {treatment['language']}"
    middleware_of_all = candidates[0].middleware
    bridge = _bridge_of(treatment, catalog)
    reason = bridge_gap(treatment, bridge, middleware_of_all, study.rig) if bridge else None
    if reason:
        return None, reason
    _check_own_settings(parts, middleware_of_all)
    settings = _settings_of(treatment, candidates[0], bridge)
    services = middleware_of_all.services_for(settings)
    outer = outer_services(bridge) if bridge else {}
    placing = placing_gap(treatment, middleware_of_all, [*services, *outer], study)
    placing = placing or _services_gap(middleware_of_all, services)
    placing = placing or (_services_gap(bridge.outer, outer) if bridge else None)
    if placing:
        return None, placing
    is_placed_apart = not bridge and len(used_hosts(treatment, list(services), study.rig)) > 1
    settings_of_parts = [_settings_of(part.treatment, candidates[0], bridge) for part in parts]
    for part, part_settings in zip(parts, settings_of_parts, strict=True):
        if middleware_of_all.services_for(part_settings) != services:
            return None, (
                f"flow {part.name}: its settings change the service processes, which all flows "
                "share; set them for the study"
            )
    reasons: list[str] = []
    for cell in candidates:
        gaps = (
            _capability_gap(part, cell, part_settings, is_placed_apart, server_cells is not None)
            for part, part_settings in zip(parts, settings_of_parts, strict=True)
        )
        gap = next((gap for gap in gaps if gap is not None), None)
        if gap is not None:
            reasons.append(gap)
            continue
        capabilities = [need for part in parts for need in needs(part.treatment)]
        problem = _build(cell, builder, builds)
        for each in (settings, *settings_of_parts):
            problem = problem or _host_lack(cell, builder, each, capabilities)
        if problem is None:
            return cell, None
        reasons.append(problem)
    return None, "; ".join(reasons)


def _bridge_of(treatment: Treatment, catalog: Catalog) -> Bridge | None:
    """Return the bridge of a treatment with its outer settings, or None without a bridge.

    Raises UsageError for an outer setting without a bridge, or one that the bridge has not.
    """
    name, outer_settings = bridge_of(treatment), treatment.outer_settings
    if name:
        return catalog.bridge(name, outer_settings)
    for setting in outer_settings:
        raise UsageError(
            f"outer_settings.{setting} = {outer_settings[setting]}: found bridge = none; allowed: "
            "a bridge, whose middleware between the hosts has the setting. Set bridge, or remove "
            "the setting."
        )
    return None


def _check_own_settings(parts: Sequence[FlowPart], middleware: Middleware) -> None:
    """Raise UsageError with the flow's name for an invalid setting in the table of a flow."""
    for part in parts:
        try:
            middleware.effective_settings(part.own_settings)
        except UsageError as error:
            raise UsageError(
                f"flow {part.name}: {as_sentence(error)} The setting is in the study's "
                f"[[{FLOW}]] {part.name} (settings) and applies to the nodes of this flow."
            ) from error


def _settings_of(treatment: Treatment, cell: Cell, bridge: Bridge | None) -> dict[str, Level]:
    """Return all settings of a treatment. All its cells have the same middleware."""
    try:
        given = bridge.inner_settings(treatment.settings) if bridge else treatment.settings
        return cell.middleware.effective_settings(given)
    except UsageError as error:
        raise UsageError(
            f"{as_sentence(error)} The setting is in the study's [factors], [fixed] or variants "
            f"(or --set) and applies to every cell of the study, including {cell.name}."
        ) from error


def _services_gap(
    middleware: Middleware, services: Mapping[str, Mapping[str, object]]
) -> str | None:
    """Return the reason if this host lacks a program of the treatment's services, else None."""
    try:
        check_services(middleware, services)
    except MissingError as error:
        return str(error)
    return None


def _capability_gap(
    part: FlowPart,
    cell: Cell,
    settings: Mapping[str, Level],
    is_placed_apart: bool,
    is_server_only: bool,
) -> str | None:
    """Return the reason if a cell cannot play the roles of a part, else None."""
    treatment = part.treatment
    capabilities = needs(treatment)
    if part.members:
        capabilities.append(MEMBERS)
    if is_placed_apart:
        capabilities.append(NETWORK)
    if is_server_only:
        capabilities = [need for need in capabilities if need not in CLIENT_NEEDS]
    contract = PATTERNS[str(treatment["pattern"])].contract
    gap = cell.gap(contract, capabilities, int(treatment["payload_bytes"]), settings)
    gap = gap or only_gap(cell.middleware.settings, settings, treatment.__getitem__)
    return gap or _reply_match_gap(treatment, cell)


def _part_gap(part: FlowPart) -> str | None:
    """Return the reason if the levels of a part contradict each other, else None."""
    treatment = part.treatment
    pattern = PATTERNS[str(treatment["pattern"])]
    pattern_gap = None if part.name else _pattern_gap(treatment, pattern)
    pattern_gap = pattern_gap or encoding_gap(treatment, pattern) or reply_gap(treatment, pattern)
    if part.members and treatment["pacing"] != "kit":
        pattern_gap = (
            f"pacing = {treatment['pacing']}, but a timer of the middleware paces one flow, and a "
            "node of a topology has several (C-41); allowed: kit. Remove pacing."
        )
    if pattern_gap:
        return pattern_gap
    seq_bytes = _sequence_bytes(treatment)
    if pattern.counts(treatment)[pattern.sender] > 1:
        short = int(treatment["payload_bytes"]) < seq_bytes and not treatment["literal"]
        if short:
            return (
                f"payloads below {seq_bytes} bytes cannot identify one of several "
                f"{pattern.sender}s (C-21)"
            )
    return None


def _pattern_gap(treatment: Treatment, pattern: Pattern) -> str | None:
    """Return the reason if a level asks for what the pattern does not have, else None."""
    for factor, default in {"clients": DEFAULT_LEVELS["clients"], **DEFAULT_COUNTS}.items():
        level = treatment.get(factor, default)
        if factor not in pattern.factors and level != default:
            names = ", ".join(p.name for p in PATTERNS.values() if factor in p.factors)
            return (
                f"{factor} = {level}, but pattern {pattern.name} does not use {factor}; allowed: "
                f"{default}. Remove {factor}, or use a pattern with {factor}: {names}"
            )
    if treatment["loop"] == "closed" and not pattern.result:
        return (
            f"loop = closed, but pattern {pattern.name} has no replies; allowed: open (C-11). "
            f"Set loop = open, or use a pattern with replies: {_names_with_replies()}"
        )
    return None


def _names_with_replies() -> str:
    return ", ".join(pattern.name for pattern in PATTERNS.values() if pattern.result)


def _build(cell: Cell, builder: Builder | None, builds: dict[str, CellBuild]) -> str | None:
    """Build a cell, or check that it can be built. Return the reason if it cannot, else None.

    A builder that only checks raises NotBuiltError for a cell that is not built yet; this is not a
    failure.
    """
    try:
        if builder is None:
            check_requirements(cell)
        else:
            builds[cell.known_as] = builder.cell(cell)
    except NotBuiltError:
        return None
    except MissingError as error:
        return str(error)
    return None


def _host_lack(
    cell: Cell,
    builder: Builder | None,
    settings: Mapping[str, Level],
    capabilities: Sequence[str],
) -> str | None:
    """Return the reason if this host lacks a level of a setting or a capability, else None."""
    if builder is None:
        return None
    for name, reasons in builder.absent_levels(cell).items():
        level = str(settings[name])
        if level in reasons:
            return f"{cell.name} does not support {name} = {level!r} here: {reasons[level]}"
    for capability, reason in builder.absent_capabilities(cell).items():
        if capability in capabilities:
            return f"{cell.name} does not support {capability} here: {reason}"
    return None


def _sequence_bytes(treatment: Treatment) -> int:
    """Return the length (bytes) of the sequence number at the beginning of a payload."""
    return SEQ_BYTES * (2 if treatment["payload_encoding"] == "text" else 1)


def _reply_match_gap(treatment: Treatment, cell: Cell) -> str | None:
    """Return the reason if the replies of overlapping calls cannot be matched (C-33), else None."""
    matched_by = cell.middleware.replies_told_by(PATTERNS[str(treatment["pattern"])].contract)
    is_record = treatment["payload_encoding"] == "record"
    if matched_by != "sequence" or is_record or "async_client" not in needs(treatment):
        return None
    cause = None
    if treatment["literal"]:
        cause = "a literal payload"
    elif treatment["reply"] == "literal":
        cause = "a literal reply"
    elif int(treatment["payload_bytes"]) < _sequence_bytes(treatment):
        cause = f"a payload below {_sequence_bytes(treatment)} bytes"
    if cause is None:
        return None
    return (
        f"{cell.name} matches replies to overlapping calls by their sequence number, which {cause} "
        "does not contain (C-33); set outstanding_max = 1"
    )
