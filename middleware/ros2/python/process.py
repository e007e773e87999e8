"""The process's ROS configuration: all that ROS reads from the environment, set from the spec.

It must be in place before rclpy is imported.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from network import cyclone_dds_configuration, discovery_range, fast_dds_profile
from wattwire_kit import BadSpec, Kit, MiddlewareFailed

# Variables that a shell may have set for another robot; only the spec configures a node.
FOREIGN_VARIABLES = (
    "CYCLONEDDS_URI",
    "FASTDDS_BUILTIN_TRANSPORTS",
    "FASTDDS_DEFAULT_PROFILES_FILE",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "RMW_FASTRTPS_PUBLICATION_MODE",
    "RMW_FASTRTPS_USE_QOS_FROM_XML",
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
    "ROS_DISCOVERY_SERVER",
    "ROS_LOCALHOST_ONLY",
    "ROS_STATIC_PEERS",
    "ZENOH_SESSION_CONFIG_URI",
)
SHARED_MEMORY = Path("/dev/shm")
DEAD_AGE_MIN_S = 60
# Fast DDS 2, which Humble and Jazzy have, names its files fastrtps_.
FAST_DDS_FILE = re.compile(r"(?:sem\.)?(fast(?:dds|rtps)_(?:port\d+|[0-9a-f]+))(?:_el|_sl|_mutex)?")
PROFILE_VARIABLES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")
SHARED_MEMORY_MAPPING = re.compile(r"/dev/shm/fast(?:dds|rtps)_")


def domain_of(kit: Kit) -> int:
    """Return the spec's domain, or 1 … 100 from the run token (FNV-1a in all languages)."""
    if kit.setting("domain"):
        return kit.setting("domain")
    state = 0x811C9DC5
    for byte in kit.spec["run"].encode():
        state = ((state ^ byte) * 0x01000193) % 2**32
    return 1 + state % 100


def configure_process(kit: Kit) -> str:
    """Set ROS's environment variables from the spec; return the RMW profile's sha256 or ""."""
    for name in FOREIGN_VARIABLES:
        os.environ.pop(name, None)
    os.environ["ROS_DOMAIN_ID"] = str(domain_of(kit))
    # rclpy opens a log file for each process, which must be in the run's folder.
    out = os.path.abspath(sys.argv[sys.argv.index("--out") + 1])
    os.environ["ROS_LOG_DIR"] = out
    if needs_own_profile(kit):
        use_own_profile(fast_dds_profile(kit, Path(out)))
        if discovery_range(kit) == "interface":
            os.environ["CYCLONEDDS_URI"] = cyclone_dds_configuration(kit)
    else:
        limit_discovery(discovery_range(kit) == "localhost")
    if kit.setting("rmw"):
        select_rmw(kit.setting("rmw"))
    if not kit.setting("rmw_profile"):
        return ""
    profile = Path(kit.setting("rmw_profile")).absolute()
    if not profile.is_file():
        raise BadSpec("settings.rmw_profile", str(profile), "the path of a readable file")
    for name in PROFILE_VARIABLES:
        os.environ[name] = str(profile)
    os.environ["CYCLONEDDS_URI"] = f"file://{profile}"
    os.environ["ZENOH_SESSION_CONFIG_URI"] = str(profile)
    return hashlib.sha256(profile.read_bytes()).hexdigest()


def limit_discovery(localhost: bool) -> None:
    """Set the variable that limits discovery to this host; its name depends on the release."""
    if os.environ.get("ROS_DISTRO") == "humble":
        os.environ["ROS_LOCALHOST_ONLY"] = str(int(localhost))
    else:
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST" if localhost else "SUBNET"


def needs_own_profile(kit: Kit) -> bool:
    """Return whether ROS's variables cannot express transports and range, so a profile does."""
    udp_alone = kit.setting("transports") == "udp"
    if not kit.setting("rmw_profile"):
        return udp_alone or discovery_range(kit) == "interface"
    if udp_alone:
        raise BadSpec(
            "settings.rmw_profile",
            kit.setting("rmw_profile"),
            "empty if settings.transports is udp, because a profile defines its own transports",
        )
    return False


def use_own_profile(profile: Path) -> None:
    """Configure Fast DDS with one of wattwire's profiles.

    If ROS's own variables limit discovery to the host, rmw_fastrtps ignores profiles and creates
    all transports, including shared memory. The range therefore stays at SYSTEM_DEFAULT, and the
    profile names the interface.
    """
    if os.environ.get("ROS_DISTRO") == "humble":
        os.environ["ROS_LOCALHOST_ONLY"] = "0"
    else:
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SYSTEM_DEFAULT"
    for name in PROFILE_VARIABLES:
        os.environ[name] = str(profile)


def transports_in_use(requested: str, rmw: str) -> str:
    """Return the transports in the process's memory map, as a level of settings.transports.

    Raise MiddlewareFailed if only UDP was requested and another transport is in use. For other RMWs
    than Fast DDS, return the requested level.
    """
    if "fastrtps" not in rmw:
        if requested == "udp":
            raise MiddlewareFailed(
                f"settings.transports = udp is known for Fast DDS only and {rmw} is loaded; "
                "use settings.rmw_profile"
            )
        return requested
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    shared_memory = SHARED_MEMORY_MAPPING.search(maps) is not None
    if requested == "udp" and shared_memory:
        raise MiddlewareFailed(
            "settings.transports = udp, but Fast DDS has mapped shared memory (/dev/shm/fast* "
            "in /proc/self/maps); this release ignores the profile"
        )
    return "default" if shared_memory else "udp"


def select_rmw(name: str) -> None:
    """Set RMW_IMPLEMENTATION. Raise MiddlewareFailed if this ROS lacks the RMW.

    rcl ends the process (exit code 102) if the variable and the loaded RMW differ, so this function
    searches the library first. The wheels have no loader library and link one RMW; another RMW must
    come first in the process's symbol scope.
    """
    folders = [Path(f) for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f]
    library = next((f / f"lib{name}.so" for f in folders if (f / f"lib{name}.so").is_file()), None)
    if library is None:
        files = {p.name for f in folders for p in f.glob("librmw_*_cpp.so")}
        present = sorted(
            name[3:-3] for name in files if "dds_common" not in name and "shared" not in name
        )
        raise MiddlewareFailed(
            f"settings.rmw: no lib{name}.so; this ROS has {', '.join(present) or 'none'}. Install "
            f"{name} (a ROS package) and build again, or leave settings.rmw empty"
        )
    os.environ["RMW_IMPLEMENTATION"] = name
    if not any((f / "librmw_implementation.so").is_file() for f in folders):
        import ctypes

        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def remove_dead_memory(folder: Path = SHARED_MEMORY) -> None:
    """Remove segments of Fast DDS whose locks are free, as `fastdds shm clean` does.

    A running process holds the lock of its segment. New segments remain, because their processes
    may be about to lock them. Ports remain, because a process may be about to reopen an old port.
    """
    groups: dict[str, list[Path]] = {}
    for path in folder.glob("*fast*"):
        match = FAST_DDS_FILE.fullmatch(path.name)
        if match:
            groups.setdefault(match.group(1), []).append(path)
    for name, files in groups.items():
        locks = [path for path in files if path.name.endswith(("_el", "_sl"))]
        # A segment without a lock file is being created.
        if not locks or "_port" in name:
            continue
        # OSError: a process holds a lock, or another node is removing the same files.
        with ExitStack() as held, suppress(OSError):
            if max(path.stat().st_mtime for path in files) > time.time() - DEAD_AGE_MIN_S:
                continue
            for lock in locks:
                file = held.enter_context(lock.open("r+b"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in files:
                path.unlink(missing_ok=True)


def package_version(package: str) -> str:
    """Return the version in the manifest of a ROS package on AMENT_PREFIX_PATH."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(":"):
        manifest = Path(prefix) / "share" / package / "package.xml"
        if manifest.is_file():
            found = re.search(r"<version>\s*([^<\s]+)\s*</version>", manifest.read_text())
            return found.group(1) if found else "unknown"
    return "unknown"


def client_library(rmw: str) -> tuple[str, str, str]:
    """Return the library of READY: its name, its version, and the versions of what is below it."""
    below = ", ".join(f"{name} {package_version(name)}" for name in ("rcl", rmw))
    return "rclpy", package_version("rclpy"), below


def loaded_libraries() -> str:
    """Return the file names, with versions, of the middleware's libraries in this process."""
    families = r"rmw_(?!dds_common)\w+_cpp|fastdds|fastrtps|ddsc|zenohc?"
    wanted = re.compile(rf"/(lib(?:{families})\.so[\w.]*)$", re.MULTILINE)
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return " ".join(sorted({match.group(1) for match in wanted.finditer(maps)}))
