"""Implement `doctor`, which reports available measurements and missing requirements."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wattwire import __version__
from wattwire.catalog import Catalog, Cell, home
from wattwire.catalog.home import debian_packages
from wattwire.cli import rig_doctor
from wattwire.cli.energy_sources import energy_lines
from wattwire.cli.quantities import size_words
from wattwire.cli.verbs import add_verb
from wattwire.cli.wrap import beside, one_line, pairs
from wattwire.model.cores import WORDS, Machine
from wattwire.model.cores.descriptions import core_lines, machine_words
from wattwire.model.errors import EXIT_ENVIRONMENT, EXIT_OK, MissingError, WattwireError
from wattwire.model.outside_meters import STREAM
from wattwire.model.words import percent
from wattwire.rig import AgentClient, Builder, cache, host
from wattwire.rig.agent import described_tree
from wattwire.rig.builds import LackingError, NotBuiltError

WIDTH = 80
LOOK_S = 0.5
GROUP = "wattwire"
RULES_FILE = "/etc/udev/rules.d/70-wattwire.rules"
PERF_PARANOID = "/proc/sys/kernel/perf_event_paranoid"
HERE = home()
CONTROL = "loopback"
BUILD = "wattwire build"
BUSY_SHARE = 0.25
STEAL_SHARE = 0.05
MARKS = {"ok": "+", "missing": "-", "note": "~"}
NAME_WIDTH_MAX = 26
"""Width of a check's mark and name, beyond which a name moves its text to the right."""
FAST_CLOCKS = ("tsc", "arch_sys_counter", "kvm-clock")


@dataclass
class Item:
    """A check. `state` is "ok", "missing" or "note", and `command` is the remedy."""

    name: str
    state: str
    text: str
    command: str = ""


@dataclass
class Health:
    """All checks by section, the first line of the report, and the next command to run."""

    first: str = ""
    sections: dict[str, list[Item]] = field(default_factory=dict)
    next: str = ""
    ready: bool = False


def add_to(verbs: Any) -> None:
    """Register the command."""
    verb = add_verb(verbs, "doctor")
    verb.add_argument("--json", action="store_true", help="print the results as JSON")
    verb.add_argument(
        "--print-udev",
        action="store_true",
        help="print udev rules that permanently grant access to meters",
    )
    verb.add_argument(
        "--rig",
        metavar="FILE",
        help="check the hosts and networks of a rig: what changes results, and how to change it",
    )
    verb.add_argument(
        "--tree",
        metavar="FOLDER",
        help="name the source of energy of another machine, whose /proc and /sys are in FOLDER/0",
    )
    verb.set_defaults(call=doctor)


def doctor(options: argparse.Namespace) -> int:
    """Print the results of all checks. The command requires no root rights and no toolchain."""
    catalog = Catalog()
    if options.print_udev:
        print("\n".join(udev_lines(catalog)))
        return EXIT_OK
    if options.rig:
        return rig_doctor.doctor(Path(options.rig), catalog, options.json)
    health = _tree_health(Path(options.tree)) if options.tree else examine(catalog)
    if options.json:
        print(json.dumps(asdict(health), indent=1))
    else:
        print("\n".join(lines_of(health)))
    return EXIT_OK if health.ready else EXIT_ENVIRONMENT


# -- checks ------------------------------------------------------------------------------------


def examine(catalog: Catalog) -> Health:
    """Check agent, cells, meters, rights and machine, without builds or changes."""
    health = Health()
    with tempfile.TemporaryDirectory(prefix="wattwire-doctor-") as state_folder:
        try:
            agent = AgentClient(Path(state_folder))
        except WattwireError as error:
            return _without_agent(health, catalog, error)
        try:
            hello, facts = agent.hello, agent.request("fingerprint")["facts"]
            fact_values = {fact["key"]: fact["value"] for fact in facts}
            health.sections["Agent"] = [_agent_item(agent)]
            cells = {name: cell_item(catalog.cell(name), agent) for name in catalog.cells}
            health.sections["Cells"] = list(cells.values())
            health.sections["Meters"] = list(_meter_items(hello["meters"], catalog))
            health.sections["Energy"] = list(_energy_items(hello["meters"], fact_values))
            health.sections["Rights"] = [*_right_items(hello), *_cpu_latency_items(hello)]
            machine = Machine.of(agent.request("cpus"))
            health.sections["Machine"] = [
                *_machine_items(fact_values, agent),
                *_core_items(machine),
            ]
        finally:
            agent.close()
    health.ready = any(item.state != "missing" for item in cells.values())
    health.first = _first_line(health, hello["meters"])
    health.next = _next_command(catalog, cells)
    return health


def _without_agent(health: Health, catalog: Catalog, error: WattwireError) -> Health:
    command = "make setup"
    text = str(error)
    if shutil.which("cargo") is None:
        text += " cargo is missing too: it comes with Rust 1.82 or newer."
    if not (HERE / "Makefile").exists():
        command = ""
    health.first = "Nothing can be measured yet, because the agent is missing."
    health.sections["Agent"] = [Item("wattwire-agent", "missing", text, command)]
    health.sections["Cells"] = [
        Item(name, "note", "not checked, because the agent is missing") for name in catalog.cells
    ]
    health.sections["Machine"] = list(_machine_items({}, None))
    health.next = command or "export WATTWIRE_AGENT=PATH-OF-THE-AGENT; wattwire doctor"
    return health


def _agent_item(agent: AgentClient) -> Item:
    hello = agent.hello
    text = f"version {hello['version']}, build {hello['build'][:12]}, at {agent.binary}"
    if hello["version"] != __version__:
        text += f"; this wattwire is {__version__}"
        return Item("wattwire-agent", "note", text, "make setup")
    return Item("wattwire-agent", "ok", text)


def cell_item(cell: Cell, agent: AgentClient) -> Item:
    """Return the state of a cell, which is built, buildable, or a list of missing requirements."""
    try:
        build = Builder(agent, look=True).cell(cell)
    except LackingError as error:
        text = str(error).removeprefix(f"{cell.name}: ")
        text = "; ".join([text, *sources(cell, error)])
        return Item(cell.name, "missing", text, install_command(error.programs))
    except NotBuiltError as error:
        text = "can be built" + (f" ({error.heavy})" if error.heavy else "")
        if error.built_name != cell.name:
            text += f", after the environment of {error.built_name}"
        return Item(cell.name, "note", text, f"{BUILD} {cell.name}")
    except MissingError as error:
        return Item(cell.name, "missing", str(error).removeprefix(f"{cell.name}: "))
    versions = ", ".join(f"{k} {v}" for k, v in build.facts.items() if isinstance(v, (str, int)))
    return Item(cell.name, "ok", "built" + (f": {versions}" if versions else ""))


def install_command(programs: list[str]) -> str:
    """Return the command that installs programs and files, from the packages-debian.txt files.

    The command omits programs that are not in these files. `sources` may name their source. The
    result is "" without apt-get and without a known package.
    """
    packages = debian_packages()
    to_install = dict.fromkeys(packages[name] for name in programs if name in packages)
    if shutil.which("apt-get") is None or not to_install:
        return ""
    root = "" if os.geteuid() == 0 else "sudo "
    return f"{root}apt-get install {' '.join(to_install)}"


def sources(cell: Cell, error: LackingError) -> list[str]:
    """Return the sources of the missing programs, if the manifest names them."""
    tables = {name: cell.document["versions"].get(name, {}) for name in error.programs}
    return [
        f"{name} {table['minimum']} or newer: {table['obtain']}"
        for name, table in tables.items()
        if "obtain" in table
    ]


def _energy_items(meters: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> Iterator[Item]:
    for name, state, text in energy_lines(meters, facts):
        yield Item(name, state, text)


def _tree_health(folder: Path) -> Health:
    """Check the energy of a machine whose files are in a folder."""
    described = described_tree(folder)
    facts = {fact["key"]: fact["value"] for fact in described["facts"]}
    health = Health(f"Energy of the machine whose files are in {folder}:", ready=True)
    health.sections["Energy"] = list(_energy_items(described["meters"], facts))
    return health


def _meter_items(meters: list[dict[str, Any]], catalog: Catalog) -> Iterator[Item]:
    for meter in (m for m in meters if m.get("tier") != STREAM):
        kinds = sorted({quantity["kind"] for quantity in meter["quantities"]})
        text = f"{meter['title']} ({', '.join(kinds)})"
        if not meter.get("default", True):
            text += "; only if a study requests it"
        if meter["state"] == "present":
            denied = meter.get("info", {}).get("denied")
            text += f"; not readable: {', '.join(denied)}" if denied else ""
            yield Item(meter["name"], "note" if denied else "ok", text)
            continue
        command = meter["grant"]
        yield Item(meter["name"], "missing", meter["reason"], command)
        if command and _udev_rules(catalog, meter["name"]):
            yield Item(
                "",
                "note",
                f"this lasts until the next start; permanent: wattwire doctor --print-udev, "
                f"as root; then the group {GROUP} can read {meter['name']}",
            )
    compiled_in = {meter["name"] for meter in meters}
    for name in sorted(set(catalog.meters) - compiled_in):
        folder = catalog.meters[name]
        yield Item(
            name,
            "missing",
            f"this agent was built without the meter.rs in {folder}; meters are compiled in, so "
            "build the agent again",
            "make setup" if folder.is_relative_to(HERE) else "",
        )


def _right_items(hello: Mapping[str, Any]) -> Iterator[Item]:
    root = hello["rights"].get("root")
    yield Item(
        "user",
        "ok",
        "root" if root else ("an ordinary user; measurements that need no special rights work"),
    )
    cgroup = hello["cgroup"]
    if cgroup["rung"] == "none":
        yield Item("cgroups", "note", " ".join(_as_sentence(s) for s in cgroup["lost"]))
    else:
        yield Item(
            "cgroups", "ok", (f"{cgroup['rung']}: exact CPU time, and no process can escape a run")
        )
    level = _read(PERF_PARANOID)
    if level is not None:
        readable = int(level) <= 0 or root
        text = f"perf_event_paranoid is {level}: "
        text += (
            "machine-wide counters can be read"
            if readable
            else "only root can read machine-wide counters"
        )
        command = "" if readable else "sudo sysctl kernel.perf_event_paranoid=0"
        yield Item("perf events", "ok" if readable else "note", text, command)


def _cpu_latency_items(hello: Mapping[str, Any]) -> Iterator[Item]:
    state = hello["cpu_latency"]
    if state["absent"] is None:
        yield Item("cpu latency", "ok", f"{state['path']} can be written: cpu_latency_us works")
    else:
        text = f"treatments with cpu_latency_us are skipped: {state['absent']}"
        yield Item("cpu latency", "note", text)


def _core_items(machine: Machine) -> Iterator[Item]:
    yield Item("cores", "ok", machine_words(machine))
    for line in core_lines(WORDS, machine):
        yield Item("cores", "ok", line)


def _as_sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _machine_items(facts: Mapping[str, Any], agent: AgentClient | None) -> Iterator[Item]:
    processor = [str(facts[k]) for k in ("cpu_name", "operating_system") if facts.get(k)]
    processor += [f"{host.cores()} CPUs", f"kernel {platform.release()}"]
    yield Item("processor", "ok", ", ".join(processor))
    virtual = facts.get("virtualisation", "none")
    if virtual != "none":
        remark = "usually without energy counters; other virtual machines may take CPU time"
        yield Item("virtual machine", "note", f"{virtual}: {remark}")
    governor = facts.get("governor")
    if governor == "performance":
        yield Item("governor", "ok", governor)
    elif governor:
        remark = f"{governor}: the CPU frequency follows the load, so low rates show higher latency"
        yield Item("governor", "note", remark, "sudo cpupower frequency-set -g performance")
    clock = facts.get("clocksource")
    if clock in FAST_CLOCKS:
        yield Item("clock source", "ok", str(clock))
    elif clock:
        yield Item(
            "clock source", "note", f"{clock}: reading the time is slow and adds to latencies"
        )
    yield _load_item(agent)
    yield from _disk_items()


def _load_item(agent: AgentClient | None) -> Item:
    if agent is None:
        return Item("load", "note", "not checked, because the agent is missing")
    load = host.load_over(agent, LOOK_S)
    text = f"{percent(load.busy)} busy, {percent(load.steal)} stolen by the host, over {LOOK_S:g} s"
    if load.busy > BUSY_SHARE or load.steal > STEAL_SHARE:
        return Item("load", "note", f"{text}; runs may be excluded at this load")
    return Item("load", "ok", text)


def _disk_items() -> Iterator[Item]:
    for name, folder in (("disk here", Path.cwd()), ("disk of the cache", cache.folder())):
        existing_folder = next(p for p in (folder, *folder.absolute().parents) if p.exists())
        text = f"{size_words(host.free_disk_bytes(existing_folder))} free in {folder}"
        if folder == cache.folder() and not cache.writable(folder):
            text += "; the folder is not writable, so nothing can be built"
            yield Item(name, "note", text, "export WATTWIRE_CACHE=FOLDER")
        else:
            yield Item(name, "ok", text)


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _first_line(health: Health, meters: list[dict[str, Any]]) -> str:
    """Return the first line of the report, which names the available measurements."""
    ready = sum(item.state != "missing" for item in health.sections["Cells"])
    if not ready:
        return (
            "No cell can run here yet; the list below names the missing requirements of each cell."
        )
    present = [m for m in meters if m["state"] == "present" and m.get("default", True)]
    energy = {q["kind"] for m in present for q in m["quantities"] if q["unit"] == "uj"}
    text = f"Ready: {ready} of {len(health.sections['Cells'])} cells can be measured here, "
    text += "latency, loss, CPU time and memory; "
    if "measured" in energy:
        return text + "energy too."
    return text + ("energy can only be estimated." if energy else "no energy.")


def _next_command(catalog: Catalog, cells: Mapping[str, Item]) -> str:
    """Return the next command, which tries two cells of a ready middleware or builds cells.

    Middleware with the fewest services is preferred.
    """
    groups: dict[str, list[str]] = {}
    for name, item in cells.items():
        ready = item.state == "ok" or (item.state == "note" and "(" not in item.text)
        if ready:
            groups.setdefault(name.split("/")[0], []).append(name)

    def rank(middleware: str) -> tuple[bool, bool, int, str]:
        manifest = catalog.middleware[middleware]
        needs = len(manifest.services) + (manifest.environment is not None)
        return len(groups[middleware]) < 2, middleware == CONTROL, needs, middleware

    if not groups:
        return BUILD
    cell_names = sorted(groups[min(groups, key=rank)])[:2]
    return shlex.join(["wattwire", "try", *cell_names])


# -- report ------------------------------------------------------------------------------------


def lines_of(health: Health) -> Iterator[str]:
    """Yield the lines of the report, at most 80 columns wide unless a word is longer."""
    yield from beside("", health.first, WIDTH)
    for title, items in health.sections.items():
        yield ""
        yield title
        yield from pairs(_rows_of(items), WIDTH, NAME_WIDTH_MAX)
        if any(item.command.startswith(BUILD) for item in items):
            yield f"  $ {BUILD} CELL…   (try and run build the cells that they need)"
    yield ""
    yield "+ present   ~ present, with a note   - missing   $ command that fixes it"
    yield f"Next: {health.next}"


def _rows_of(items: Sequence[Item]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each check, and the command on a line of its own."""
    for item in items:
        yield (f"{MARKS[item.state]} {item.name}" if item.name else ""), item.text
        if item.command and not item.command.startswith(BUILD):
            yield "", one_line(f"$ {item.command}")


def _udev_rules(catalog: Catalog, meter: str) -> str:
    folder = catalog.meters.get(meter)
    path = folder / "udev.rules" if folder else None
    return path.read_text(encoding="utf-8").strip() if path and path.is_file() else ""


def udev_lines(catalog: Catalog) -> Iterator[str]:
    """Yield the udev rules of all meters, with the commands that install them as comments."""
    user = os.environ.get("SUDO_USER") or os.environ.get("USER") or "YOU"
    yield f"# Permanent rights for the group {GROUP}. To install them, as root:"
    yield f"#   groupadd --force {GROUP}; usermod --append --groups {GROUP} {user}"
    yield f"#   wattwire doctor --print-udev > {RULES_FILE}"
    yield "#   udevadm control --reload; udevadm trigger --action=add"
    yield f"# The right takes effect at the next login of {user}. To remove it, delete the file."
    for name in sorted(catalog.meters):
        rules = _udev_rules(catalog, name)
        if rules:
            yield ""
            yield rules
