"""Builds what every ROS 2 cell shares: a ROS (the user's own, or wheels) and our interfaces.

Usage: build.py BUILD_DIR. Reads ../idl and requirements.txt, writes BUILD_DIR/exports.json. A
machine that cannot have ROS 2 is not an error: exports.json then holds {"absent": reason} and the
exit code is 0.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
IDL = HERE.parent / "idl"
PROFILES = HERE / "profiles"
PROFILES_VARIABLE = "WATTWIRE_ROS2_PROFILES"
DISTRIBUTION_VARIABLE = "WATTWIRE_ROS2_DISTRIBUTION"
"""The variable with the release that nodes report."""
REQUIREMENTS = HERE / "requirements.txt"
WHEELS_PYTHON = (3, 11)
WHEELS_DISTRIBUTION = "kilted"
DISTRIBUTIONS = ("humble", "jazzy", "kilted", "lyrical", "rolling")
"""The releases that the cells support; newer releases are accepted with a note."""
TOO_OLD = (
    "ardent", "bouncy", "crystal", "dashing", "eloquent", "foxy", "galactic", "iron",
    "kinetic", "melodic", "noetic",
)  # fmt: skip
"""Unsupported releases with known differences; the last three are ROS 1."""
NAMED_PACKAGES = ("rcl", "rclcpp", "rclpy", "rmw_fastrtps_cpp")
EVENTS_EXECUTOR = "rclcpp/experimental/executors/events_executor/events_executor.hpp"
RMWS = (
    "rmw_connextdds", "rmw_cyclonedds_cpp", "rmw_fastrtps_cpp", "rmw_fastrtps_dynamic_cpp",
    "rmw_gurumdds_cpp", "rmw_zenoh_cpp",
)  # fmt: skip
"""RMW implementations with packages. A node reports any other name as an error."""
NO_SECURITY = b"This Fast DDS version doesn't have the security libraries"
"""The error of rmw_fastrtps that was built for a Fast DDS without security, and not otherwise."""
POINT_CLOUDS = "sensor_msgs"
"""The package of the messages of `encoding.pointcloud`, which small installations lack."""
VELOCITIES = "geometry_msgs"
"""The package of the messages of `settings.message = twist_stamped`, which they also lack."""
PROBE = (
    "import json, sys, sysconfig; v = sysconfig.get_config_var; import platform;"
    "print(json.dumps({'version': list(sys.version_info[:2]), 'libdir': v('LIBDIR'),"
    "'soname': v('INSTSONAME'), 'shared': v('Py_ENABLE_SHARED'),"
    "'include': sysconfig.get_path('include'), 'multiarch': v('MULTIARCH'),"
    "'site': sysconfig.get_path('purelib'), 'machine': platform.machine()}))"
)
PYTHONS = ("/usr/bin/python3", "python3", sys.executable)
"""Interpreters that can be the one of a sourced installation, in order of preference."""
IMPORTED = {
    "rclpy": "ros-$ROS_DISTRO-ros-base",
    "rosidl_parser": "ros-$ROS_DISTRO-ros-base",
    "em": "python3-empy",
    "numpy": "python3-numpy",
    "catkin_pkg": "python3-catkin-pkg-modules",
}
"""Modules that the nodes and the generators of interfaces import, and their Debian packages."""
IMPORT_CHECK = """
import importlib, json, sys
problems = {}
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
        if name == "em" and not hasattr(module, "Interpreter"):
            problems[name] = f"{module.__file__} is another package of this name, and not empy"
    except BaseException as error:
        problems[name] = f"{type(error).__name__}: {error}"
print(json.dumps(problems))
"""


class Absent(Exception):
    """This machine does not support the environment; the text gives the reason and the remedy."""


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    try:
        exports = use_installation(build) if installation_sourced() else use_wheels(build)
    except Absent as reason:
        exports = {"absent": str(reason)}
    (build / "exports.json").write_text(json.dumps(exports, indent=2) + "\n")
    return 0


def run(argv: list[str], env: dict[str, str] | None = None) -> None:
    """Run a command without output; if it fails, print its output and raise CalledProcessError."""
    print(f"$ {' '.join(argv)}", flush=True)
    done = subprocess.run(
        argv, check=False, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode != 0:
        print(done.stdout, flush=True)
        raise subprocess.CalledProcessError(done.returncode, argv, done.stdout)


def clean_environment() -> dict[str, str]:
    """Return the environment without variables that add other packages or libraries."""
    foreign = ("LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV")
    return {k: v for k, v in os.environ.items() if k not in foreign}


def probe(python: str) -> dict:
    # The wheels' .pth executes python again unless its guard is set.
    env = {**clean_environment(), "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1"}
    return json.loads(subprocess.check_output([python, "-c", PROBE], env=env, text=True))


def libpython_folder(facts: dict) -> str | None:
    """Return the folder of the interpreter's shared library, or None if it is not installed."""
    soname = f"libpython{facts['version'][0]}.{facts['version'][1]}.so"
    folders = [facts["libdir"], f"/usr/lib/{facts['multiarch']}", "/usr/lib64"]
    return next((f for f in folders if f and (Path(f) / soname).exists()), None)


# ---- the user's own installation ----------------------------------------------------------


def installation_sourced() -> bool:
    return bool(os.environ.get("AMENT_PREFIX_PATH") and os.environ.get("ROS_DISTRO"))


def use_installation(build: Path) -> dict:
    distribution = os.environ["ROS_DISTRO"]
    if distribution in TOO_OLD or not re.fullmatch(r"[a-z][a-z0-9_]*", distribution):
        raise Absent(
            f"the sourced ROS distribution is {distribution!r}; known: {', '.join(DISTRIBUTIONS)} "
            "and newer. Source one of these, or no installation to use the wheels"
        )
    python = installation_python()
    prefixes = os.environ["AMENT_PREFIX_PATH"].split(":")
    install = build / "interfaces"
    build_interfaces(build, install, python, dict(os.environ))
    paths = {
        name: joined([*added, *os.environ.get(name, "").split(":")])
        for name, added in interface_paths(install, probe(python)).items()
    }
    env = {
        "ROS_DISTRO": distribution,
        "ROS_VERSION": "2",
        "ROS_PYTHON_VERSION": "3",
        PROFILES_VARIABLE: str(PROFILES),
        DISTRIBUTION_VARIABLE: described(distribution),
        **paths,
    }
    if os.environ.get("RMW_IMPLEMENTATION"):
        env["RMW_IMPLEMENTATION"] = os.environ["RMW_IMPLEMENTATION"]
    return {
        "env": env,
        "python": python,
        "lists": compile_lists([str(install), *prefixes], [], distribution)
        | {"cmake": cmake_options([str(install), *prefixes], python)},
        "settings": {
            "rmw": {"absent": absent_rmws(env, f"install {{}} for {distribution}")},
            "security": {"absent": absent_security(env)},
            "message": {"absent": absent_messages(prefixes)},
        },
        "capabilities": {"absent": absent_encodings(prefixes)},
        "cells": {
            "cpp": {"settings": {"executor": {"absent": absent_executors(prefixes)}}},
            **missing_packages(prefixes, {"cpp": ["rclcpp", "rclcpp_action"]}),
        },
        "facts": {
            "distribution": described(distribution),
            "how": "installation",
            "rmws": ", ".join(installed_rmws(env)),
            "prefixes": ":".join(prefixes),
            **versions(prefixes),
        },
    }


def described(distribution: str) -> str:
    """Return the release's name, with a note if the cells do not support the release."""
    if distribution in DISTRIBUTIONS:
        return distribution
    return f"{distribution} (the cells are written for {', '.join(DISTRIBUTIONS)})"


def installation_python() -> str:
    """Return the interpreter with all IMPORTED modules, which may not be the first on PATH.

    Raise Absent with the problems of each interpreter if none has them.
    """
    problems: dict[str, dict[str, str]] = {}
    for candidate in dict.fromkeys(filter(None, (shutil.which(name) for name in PYTHONS))):
        problems[candidate] = import_problems(candidate)
        if not problems[candidate]:
            return candidate
    prefixes = os.environ["AMENT_PREFIX_PATH"]
    if not problems:
        raise Absent(
            f"the ROS installation in {prefixes} is sourced, but there is no python3 on PATH and "
            "no /usr/bin/python3; install python3-dev"
        )
    texts = "; ".join(
        f"{python}: {', '.join(f'{name} ({problem})' for name, problem in of_python.items())}"
        for python, of_python in problems.items()
    )
    best = min(problems, key=lambda python: len(problems[python]))
    packages = " ".join(dict.fromkeys(IMPORTED[name] for name in problems[best]))
    raise Absent(
        f"the ROS installation in {prefixes} is sourced, but no Python can import all of "
        f"{', '.join(IMPORTED)}, which the build of its interfaces and its nodes need ({texts}). "
        f"For {best}, install {packages}, or put a python3 that has them first on PATH"
    )


def import_problems(python: str) -> dict[str, str]:
    """Return IMPORTED module → the error of its import by an interpreter; {} if there is none."""
    check = [python, "-c", IMPORT_CHECK, *IMPORTED]
    done = subprocess.run(check, check=False, capture_output=True, text=True)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):  # it does not start, or an import ended it
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return dict.fromkeys(IMPORTED, lines[-1])


# ---- wheels -------------------------------------------------------------------------------


def use_wheels(build: Path) -> dict:
    base, facts = wheels_python()
    venv = build / "venv"
    python = str(venv / "bin" / "python")
    install_wheels(base, venv, python)
    site = Path(probe(python)["site"])
    env = wheels_env(venv, site, facts)
    rewrite_cmake_paths(venv, site, facts, python, env)
    install = build / "interfaces"
    tools = {"CMAKE_PREFIX_PATH": str(venv), "PATH": f"{venv / 'bin'}:{os.environ['PATH']}"}
    build_interfaces(build, install, python, {**clean_environment(), **env, **tools})
    for name, added in interface_paths(install, facts).items():
        env[name] = joined([*added, *env.get(name, "").split(":")])
    short = "python{}.{}".format(*facts["version"])
    # Every library of the wheels depends on libpython, also the libraries for C++ programs.
    libpython = libpython_folder(facts)
    extra = ["-Wl,--allow-shlib-undefined", "-Wl,--no-as-needed"]
    extra += [f"-L{libpython}"] if libpython else []
    return {
        "env": env,
        "python": python,
        "lists": compile_lists(
            [str(install), str(venv)], [*extra, f"-l{short}"], WHEELS_DISTRIBUTION
        ),
        "settings": {
            "rmw": {"absent": absent_rmws(env, "source a ROS installation with {}")},
            "security": {"absent": absent_security(env)},
            "message": {"absent": absent_messages([str(venv)])},
        },
        "cells": {
            "cpp": {
                "absent": "there are no wheels of rclcpp; source a ROS installation that has it "
                f"({', '.join(DISTRIBUTIONS)}). C++ without it is the cell cpp-rcl"
            }
        },
        "facts": {
            "distribution": WHEELS_DISTRIBUTION,
            "how": "wheels",
            "rmws": ", ".join(installed_rmws(env)),
            "prefixes": str(venv),
            "libpython": libpython or f"absent: install lib{short}-dev to build C and C++ cells",
            **versions([str(venv)]),
        },
    }


def wheels_python() -> tuple[str, dict]:
    """Return an interpreter that has wheels, preferably with its shared library."""
    found: list[tuple[str, dict]] = []
    name = "python{}.{}".format(*WHEELS_PYTHON)
    for candidate in (sys.executable, shutil.which(name), f"/usr/bin/{name}"):
        if candidate and Path(candidate).exists():
            try:
                facts = probe(candidate)
            except (OSError, subprocess.CalledProcessError):
                continue
            if tuple(facts["version"]) == WHEELS_PYTHON:
                found.append((candidate, facts))
    if not found:
        raise Absent(
            f"ROS 2 is neither sourced nor installable: its wheels exist for Python {name[6:]} "
            f"only and this is {sys.version_info[0]}.{sys.version_info[1]}; install {name}, or "
            f"source a ROS installation ({', '.join(DISTRIBUTIONS)})"
        )
    return next((pair for pair in found if libpython_folder(pair[1])), found[0])


def install_wheels(base: str, venv: Path, python: str) -> None:
    clean = clean_environment()
    run([base, "-m", "venv", "--clear", str(venv)], clean)
    pip = [python, "-m", "pip", "install", "--require-hashes"]
    try:
        run([*pip, "--disable-pip-version-check", "--no-input", "-r", str(REQUIREMENTS)], clean)
    except subprocess.CalledProcessError as failure:
        # Only "no such file for this platform" means absence; an unreachable registry is a failure.
        unreachable = re.search(r"Retrying|ConnectionError|timed out", failure.output)
        if not unreachable and re.search(
            r"No matching distribution|not a supported wheel", failure.output
        ):
            machine = probe(base)["machine"]
            raise Absent(
                f"no ROS 2 wheels for this platform ({machine}, {base}); source a ROS installation "
                f"({', '.join(DISTRIBUTIONS)}) and build again"
            ) from failure
        raise


def wheels_env(venv: Path, site: Path, facts: dict) -> dict[str, str]:
    """Return the variables that the wheels' .pth would set, with its guard against a restart."""
    libraries = [str(venv / "lib"), *sorted(str(p) for p in site.glob("ros_*.libs"))]
    libpython = libpython_folder(facts)
    return {
        "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1",
        "AMENT_PREFIX_PATH": str(venv),
        "LD_LIBRARY_PATH": joined([*libraries, libpython or ""]),
        "ROS_DISTRO": WHEELS_DISTRIBUTION,
        "ROS_VERSION": "2",
        "ROS_PYTHON_VERSION": "3",
        PROFILES_VARIABLE: str(PROFILES),
        DISTRIBUTION_VARIABLE: WHEELS_DISTRIBUTION,
    }


def rewrite_cmake_paths(
    venv: Path, site: Path, facts: dict, python: str, env: dict[str, str]
) -> None:
    """Correct the CMake exports of the wheels, which contain paths of the build machine."""
    numpy_include = subprocess.check_output(
        [python, "-c", "import numpy; print(numpy.get_include())"],
        env={**clean_environment(), **env},
        text=True,
    ).strip()
    tinyxml = next(iter(site.glob("ros_fastdds.libs/libtinyxml2*")), None)
    short = "python{}.{}".format(*facts["version"])
    origin = f"/opt/python/cp{facts['version'][0]}{facts['version'][1]}-" + r"cp\d+"
    rules = [
        (rf"{origin}/lib/{short}/site-packages/numpy/_core/include", numpy_include),
        (rf"{origin}/include/{short}", facts["include"]),
    ]
    if tinyxml is not None:
        rules.append((r"/usr/lib64/libtinyxml2\.so", str(tinyxml)))
    for file in (venv / "share").rglob("*.cmake"):
        before = file.read_text()
        after = before
        for pattern, replacement in rules:
            after = re.sub(pattern, replacement.replace("\\", r"\\"), after)
        if after != before:
            file.write_text(after)


# ---- the interfaces, and compiler flags ---------------------------------------------------


def build_interfaces(build: Path, install: Path, python: str, env: dict[str, str]) -> None:
    work = build / "interfaces-build"
    run(
        ["cmake", "-G", "Ninja", "-S", str(IDL), "-B", str(work), "-DCMAKE_BUILD_TYPE=Release",
         f"-DCMAKE_INSTALL_PREFIX={install}", f"-DPython3_EXECUTABLE={python}",
         f"-DPYTHON_EXECUTABLE={python}", "-DBUILD_TESTING=OFF"],
        env,
    )  # fmt: skip
    run(["cmake", "--build", str(work), "--target", "install"], env)
    shutil.rmtree(work)


def interface_paths(install: Path, facts: dict) -> dict[str, list[str]]:
    packages = sorted(install.glob("l*/python3*/*-packages")) + sorted(
        install.glob("local/lib/python3*/*-packages")
    )
    return {
        "AMENT_PREFIX_PATH": [str(install)],
        "LD_LIBRARY_PATH": [str(install / "lib")],
        "PYTHONPATH": [str(p) for p in packages],
    }


def compile_lists(
    prefixes: list[str], extra_ldflags: list[str], distribution: str
) -> dict[str, list[str]]:
    """Return flags for programs on the rcl C API; headers are in include/ or include/<package>/."""
    includes: list[str] = []
    for prefix in prefixes:
        root = Path(prefix) / "include"
        if root.is_dir():
            nested = sorted(p for p in root.iterdir() if (p / p.name).is_dir())
            includes += [f"-isystem{p}" for p in nested] + [f"-isystem{root}"]
    libraries = [f"-L{Path(p) / 'lib'}" for p in prefixes]
    names = [
        "wattwire_interfaces__rosidl_typesupport_c", "wattwire_interfaces__rosidl_generator_c",
        "std_msgs__rosidl_typesupport_c", "std_msgs__rosidl_generator_c",
        "action_msgs__rosidl_generator_c", "rosidl_runtime_c", "rcl_action", "rcl", "rcutils",
    ]  # fmt: skip
    if not absent_encodings(prefixes):
        kinds = ("rosidl_typesupport_c", "rosidl_generator_c")
        names += [f"{POINT_CLOUDS}__{kind}" for kind in kinds]
    rpath_link = f"-Wl,-rpath-link,{joined(str(Path(p) / 'lib') for p in prefixes)}"
    ldflags = [*libraries, rpath_link, *(f"-l{name}" for name in names), rmw_library(prefixes)]
    cxxflags = [f"-I{HERE / 'include'}", *includes, f"-DWATTWIRE_ROS_{distribution.upper()}=1"]
    return {"cxxflags": cxxflags, "ldflags": [*ldflags, *extra_ldflags]}


def cmake_options(prefixes: list[str], python: str) -> list[str]:
    """Return the CMake options with which a project finds the packages of these prefixes."""
    return [
        f"-DCMAKE_PREFIX_PATH={';'.join(prefixes)}",
        f"-DPython3_EXECUTABLE={python}",
        f"-DPYTHON_EXECUTABLE={python}",
        f"-DWATTWIRE_ROS2_INCLUDE={HERE / 'include'}",
        "-DCMAKE_BUILD_TYPE=Release",
    ]


def missing_packages(
    prefixes: list[str], wanted: dict[str, list[str]]
) -> dict[str, dict[str, str]]:
    """Return the cells with missing ROS packages, each with the packages to install."""
    absent = {}
    for cell, packages in wanted.items():
        lacking = [p for p in packages if package_version(prefixes, p) == "unknown"]
        if lacking:
            debian = " ".join("ros-$ROS_DISTRO-" + p.replace("_", "-") for p in lacking)
            absent[cell] = {
                "absent": f"no {' and no '.join(lacking)} under AMENT_PREFIX_PATH; install {debian}"
            }
    return absent


def rmw_library(prefixes: list[str]) -> str:
    """Return an installation's RMW loader; the wheels have none and link their RMW directly."""
    for prefix in prefixes:
        if (Path(prefix) / "lib" / "librmw_implementation.so").exists():
            return "-lrmw_implementation"
    return "-lrmw_fastrtps_cpp"


def installed_rmws(env: Mapping[str, str]) -> list[str]:
    """Return the RMW implementations whose library is in a folder of the nodes' search path."""
    folders = [Path(folder) for folder in env["LD_LIBRARY_PATH"].split(":") if folder]
    return [rmw for rmw in RMWS if any((f / f"lib{rmw}.so").is_file() for f in folders)]


def absent_rmws(env: Mapping[str, str], remedy: str) -> dict[str, str]:
    """Return the RMW implementations that are not installed, each with the reason.

    The braces in `remedy` are replaced by the name of the package.
    """
    installed = installed_rmws(env)
    return {
        rmw: f"this ROS has no lib{rmw}.so (installed: {', '.join(installed) or 'none'}); "
        + remedy.format(f"the package {rmw}")
        for rmw in RMWS
        if rmw not in installed
    }


def absent_security(env: Mapping[str, str]) -> dict[str, str]:
    """Return the reason why the default RMW of this ROS has no DDS Security, or {} if it has."""
    folders = [Path(folder) for folder in env["LD_LIBRARY_PATH"].split(":") if folder]
    rmw = env.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")
    if rmw == "rmw_fastrtps_cpp":
        libraries = [folder / "librmw_fastrtps_shared_cpp.so" for folder in folders]
        if not any(path.is_file() and NO_SECURITY in path.read_bytes() for path in libraries):
            return {}
        return {
            "on": "the Fast DDS of this ROS was built without security; source a ROS installation "
            "whose RMW has it"
        }
    if rmw == "rmw_cyclonedds_cpp":
        plugin = "libdds_security_auth.so"
        names = (plugin, f"libddsc*/{plugin}")  # the latter: Debian
        if any(True for folder in folders for name in names for _ in folder.glob(name)):
            return {}
        return {
            "on": f"no folder of LD_LIBRARY_PATH has {plugin}, a plug-in of Cyclone DDS for DDS "
            "Security; install it"
        }
    return {"on": f"SROS 2 with {rmw} is untried; use rmw_fastrtps_cpp or rmw_cyclonedds_cpp"}


def absent_executors(prefixes: Iterable[str]) -> dict[str, str]:
    """Return the executors that rclcpp of these prefixes lacks, each with the reason."""
    includes = [Path(prefix) / "include" for prefix in prefixes]
    folders = [folder for include in includes for folder in (include, include / "rclcpp")]
    if any((folder / EVENTS_EXECUTOR).is_file() for folder in folders):
        return {}
    version = package_version(prefixes, "rclcpp")
    return {"events": f"rclcpp {version} has no EventsExecutor; source ROS 2 Jazzy or newer"}


def absent_encodings(prefixes: Iterable[str]) -> dict[str, str]:
    """Return the encodings whose messages these prefixes lack, each with the reason."""
    if package_version(prefixes, POINT_CLOUDS) != "unknown":
        return {}
    reason = f"no {POINT_CLOUDS} under AMENT_PREFIX_PATH; install ros-$ROS_DISTRO-sensor-msgs"
    return {"encoding.pointcloud": reason}


def absent_messages(prefixes: Iterable[str]) -> dict[str, str]:
    """Return the levels of settings.message whose type these prefixes lack, with the reason."""
    if package_version(prefixes, VELOCITIES) != "unknown":
        return {}
    reason = f"no {VELOCITIES} under AMENT_PREFIX_PATH; install ros-$ROS_DISTRO-geometry-msgs"
    return {"twist_stamped": reason}


def package_version(prefixes: Iterable[str], package: str) -> str:
    for prefix in prefixes:
        manifest = Path(prefix) / "share" / package / "package.xml"
        if manifest.exists():
            found = re.search(r"<version>([^<]+)</version>", manifest.read_text())
            if found:
                return found.group(1).strip()
    return "unknown"


def versions(prefixes: list[str]) -> dict[str, str]:
    found = {name: package_version(prefixes, name) for name in NAMED_PACKAGES}
    for prefix in prefixes:
        for file in Path(prefix).glob("*/fast*/cmake/fast*-config-version.cmake"):
            version = re.search(r'PACKAGE_VERSION "([^"]+)"', file.read_text())
            if version:
                found[file.name.split("-")[0]] = version.group(1)
    return found


def joined(parts: Iterable[str]) -> str:
    return ":".join(part for part in parts if part)


if __name__ == "__main__":
    sys.exit(main())
