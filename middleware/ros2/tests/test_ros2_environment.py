"""The environment of the ROS 2 cells: selection of the ROS installation, and compiler flags."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from wattwire.catalog import Catalog
from wattwire.rig.builds import host_digests

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ros2_build", ROOT / "environment" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(prefix: Path, name: str, version: str) -> None:
    folder = prefix / "share" / name
    folder.mkdir(parents=True)
    (folder / "package.xml").write_text(f"<package><version>{version}</version></package>")


def test_an_unknown_distribution_makes_the_cells_absent_with_a_remedy(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_DISTRO", "foxy")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path)])
    assert build.main() == 0
    exports = json.loads((tmp_path / "exports.json").read_text())
    assert set(exports) == {"absent"}
    assert "foxy" in exports["absent"]
    assert "humble, jazzy, kilted, lyrical" in exports["absent"]


@pytest.fixture
def sourced(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], dict[str, Any]]:
    """Return the exports of the environment with a sourced installation of the release."""

    def exports(distribution: str) -> dict[str, Any]:
        monkeypatch.setenv("ROS_DISTRO", distribution)
        monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
        monkeypatch.setattr(build, "installation_python", lambda: sys.executable)
        monkeypatch.setattr(build, "build_interfaces", lambda *_: None)
        monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path)])
        assert build.main() == 0
        return json.loads((tmp_path / "exports.json").read_text())

    return exports


@pytest.mark.parametrize("distribution", ["humble", "jazzy", "kilted", "lyrical", "rolling"])
def test_supported_releases_are_used_without_a_note(
    sourced: Callable[[str], dict[str, Any]], distribution: str
) -> None:
    exports = sourced(distribution)
    assert exports["facts"]["distribution"] == distribution
    assert exports["env"]["WATTWIRE_ROS2_DISTRIBUTION"] == distribution


def test_a_newer_release_than_the_cells_support_is_used_with_a_note(
    sourced: Callable[[str], dict[str, Any]],
) -> None:
    exports = sourced("makoa")
    assert exports["env"]["ROS_DISTRO"] == "makoa"
    reported = exports["env"]["WATTWIRE_ROS2_DISTRIBUTION"]
    assert reported == exports["facts"]["distribution"]
    assert reported.startswith("makoa (the cells are written for humble, jazzy")


def test_an_upgraded_installation_is_a_new_environment(tmp_path: Path) -> None:
    (table,) = [Catalog([ROOT.parents[1]]).middleware["ros2"].environment]
    assert table is not None
    package(tmp_path, "rclcpp", "29.3.0")
    patterns = table["host_files"]
    before = host_digests(patterns, {"AMENT_PREFIX_PATH": f"{tmp_path}:/nowhere"})
    assert len(before) == 1
    (tmp_path / "share" / "rclcpp" / "package.xml").write_text("<version>29.3.1</version>")
    after = host_digests(patterns, {"AMENT_PREFIX_PATH": f"{tmp_path}:/nowhere"})
    assert before.keys() == after.keys()
    assert before != after
    assert host_digests(patterns, {}) == {}


def test_without_a_python_for_the_wheels_the_message_names_the_required_python(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "WHEELS_PYTHON", (3, 99))
    with pytest.raises(build.Absent, match=r"install python3\.99"):
        build.wheels_python()


def test_the_sourced_installation_takes_precedence(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    monkeypatch.setenv("AMENT_PREFIX_PATH", "/somewhere")
    assert build.installation_sourced()
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    assert not build.installation_sourced()


@pytest.fixture
def python_with(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Return a real interpreter that can import only the given modules of IMPORTED.

    It is the only candidate, and each value is the source of a module.
    """

    def made(**modules: str) -> str:
        venv, folder = tmp_path / "venv", tmp_path / "modules"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        folder.mkdir()
        for name, source in modules.items():
            (folder / f"{name}.py").write_text(source)
        python = str(venv / "bin" / "python")
        monkeypatch.setenv("PYTHONPATH", str(folder))
        monkeypatch.setenv("AMENT_PREFIX_PATH", "/opt/ros/some")
        monkeypatch.setenv("ROS_DISTRO", "kilted")
        monkeypatch.setattr(build, "PYTHONS", (python,))
        return python

    return made


COMPLETE = {
    "rclpy": "", "rosidl_parser": "", "em": "class Interpreter: ...", "numpy": "", "catkin_pkg": "",
}  # fmt: skip


def test_an_installation_whose_python_has_all_modules_is_used(
    build: ModuleType, python_with: Callable[..., str]
) -> None:
    assert python_with(**COMPLETE) == build.installation_python()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"em": None}, ["em (ModuleNotFoundError", "install python3-empy, or"]),
        ({"em": "x = 1"}, ["em.py is another package", "install python3-empy, or"]),
        ({"numpy": None}, ["numpy (ModuleNotFoundError", "install python3-numpy, or"]),
        ({"numpy": "raise ImportError('no libblas')"}, ["numpy (ImportError: no libblas)"]),
        ({"catkin_pkg": None, "em": None}, ["python3-empy python3-catkin-pkg-modules, or"]),
        ({"rclpy": "import os; os._exit(3)"}, ["rclpy (exit code 3)"]),
        (
            {"rclpy": None, "rosidl_parser": None},
            ["rclpy (ModuleNotFoundError", "install ros-$ROS_DISTRO-ros-base, or"],
        ),
    ],
)
def test_a_module_that_the_python_of_an_installation_lacks_is_named_in_one_sentence(
    build: ModuleType, python_with: Callable[..., str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, str | None], words: list[str],
) -> None:  # fmt: skip
    sources = {name: text for name, text in {**COMPLETE, **changed}.items() if text is not None}
    python = python_with(**sources)
    monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path)])
    assert build.main() == 0
    exports = json.loads((tmp_path / "exports.json").read_text())
    assert set(exports) == {"absent"}
    for fragment in ("/opt/ros/some", f"For {python}, install", *words):
        assert fragment in exports["absent"]
    assert "\n" not in exports["absent"]


def test_versions_come_from_the_first_prefix_that_has_the_package(
    build: ModuleType, tmp_path: Path
) -> None:
    package(tmp_path / "overlay", "rclpy", "9.9.9")
    package(tmp_path / "under", "rclpy", "1.0.0")
    package(tmp_path / "under", "rcl", "2.0.0")
    found = build.versions([str(tmp_path / "overlay"), str(tmp_path / "under")])
    assert (found["rclpy"], found["rcl"], found["rmw_fastrtps_cpp"]) == (
        "9.9.9", "2.0.0", "unknown",
    )  # fmt: skip


def test_both_header_layouts_are_supported_and_an_existing_loader_is_linked(
    build: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "include" / "rcl" / "rcl").mkdir(parents=True)
    (tmp_path / "include" / "plain").mkdir()
    (tmp_path / "lib").mkdir()
    lists = build.compile_lists([str(tmp_path)], ["-lextra"], "humble")
    include = tmp_path / "include"
    assert lists["cxxflags"] == [
        f"-I{ROOT / 'environment' / 'include'}", f"-isystem{include / 'rcl'}",
        f"-isystem{include}", "-DWATTWIRE_ROS_HUMBLE=1",
    ]  # fmt: skip
    assert "-lrmw_fastrtps_cpp" in lists["ldflags"]
    assert lists["ldflags"][-1] == "-lextra"
    (tmp_path / "lib" / "librmw_implementation.so").touch()
    assert "-lrmw_implementation" in build.compile_lists([str(tmp_path)], [], "humble")["ldflags"]


def test_a_cell_with_a_missing_package_is_absent_and_names_the_package(
    build: ModuleType, tmp_path: Path
) -> None:
    package(tmp_path, "rclcpp", "28.1.0")
    wanted = {"cpp": ["rclcpp", "rclcpp_action"]}
    absent = build.missing_packages([str(tmp_path)], wanted)
    assert absent == {
        "cpp": {
            "absent": "no rclcpp_action under AMENT_PREFIX_PATH; "
            "install ros-$ROS_DISTRO-rclcpp-action"
        }
    }
    package(tmp_path, "rclcpp_action", "28.1.0")
    assert build.missing_packages([str(tmp_path)], wanted) == {}


def test_a_new_interpreter_does_not_see_other_packages(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/theirs")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/theirs")
    assert "/theirs" not in build.clean_environment().values()


def test_an_rmw_without_a_library_is_absent_with_the_remedy(
    sourced: Callable[[str], dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    for name in ("rmw_cyclonedds_cpp", "rmw_fastrtps_cpp", "rmw_fastrtps_shared_cpp"):
        (tmp_path / "lib" / f"lib{name}.so").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{tmp_path / 'lib'}")
    exports = sourced("jazzy")
    assert exports["facts"]["rmws"] == "rmw_cyclonedds_cpp, rmw_fastrtps_cpp"
    absent = exports["settings"]["rmw"]["absent"]
    assert set(absent) == {
        "rmw_connextdds", "rmw_fastrtps_dynamic_cpp", "rmw_gurumdds_cpp", "rmw_zenoh_cpp",
    }  # fmt: skip
    assert absent["rmw_zenoh_cpp"] == (
        "this ROS has no librmw_zenoh_cpp.so (installed: rmw_cyclonedds_cpp, rmw_fastrtps_cpp); "
        "install the package rmw_zenoh_cpp for jazzy"
    )


def test_the_events_executor_is_absent_without_its_header(
    build: ModuleType, tmp_path: Path
) -> None:
    package(tmp_path, "rclcpp", "16.0.11")
    reason = build.absent_executors([str(tmp_path)])["events"]
    assert reason == "rclcpp 16.0.11 has no EventsExecutor; source ROS 2 Jazzy or newer"
    header = tmp_path / "include" / "rclcpp" / build.EVENTS_EXECUTOR
    header.parent.mkdir(parents=True)
    header.touch()
    assert build.absent_executors([str(tmp_path)]) == {}


def test_an_installation_without_sensor_msgs_lacks_point_clouds_but_is_built(
    build: ModuleType, sourced: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    exports = sourced("jazzy")
    (reason,) = exports["capabilities"]["absent"].values()
    assert list(exports["capabilities"]["absent"]) == ["encoding.pointcloud"]
    assert reason.startswith("no sensor_msgs under AMENT_PREFIX_PATH; install ros-")
    assert not any("sensor_msgs" in flag for flag in exports["lists"]["ldflags"])
    package(tmp_path, "sensor_msgs", "5.5.1")
    exports = sourced("jazzy")
    assert exports["capabilities"]["absent"] == {}
    assert "-lsensor_msgs__rosidl_typesupport_c" in exports["lists"]["ldflags"]


def test_an_installation_without_geometry_msgs_lacks_velocity_commands(
    sourced: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    (reason,) = sourced("jazzy")["settings"]["message"]["absent"].values()
    assert reason == (
        "no geometry_msgs under AMENT_PREFIX_PATH; install ros-$ROS_DISTRO-geometry-msgs"
    )
    package(tmp_path, "geometry_msgs", "5.5.1")
    assert sourced("jazzy")["settings"]["message"] == {"absent": {}}


@pytest.mark.parametrize(
    ("rmw", "files", "reason"),
    [
        ("", {"librmw_fastrtps_shared_cpp.so": b"\0This Fast DDS version doesn't have the security "
              b"libraries\nPlease compile"}, "built without security; source a ROS installation"),
        ("", {"librmw_fastrtps_shared_cpp.so": b"\0"}, ""),
        ("rmw_cyclonedds_cpp", {}, "has libdds_security_auth.so, a plug-in"),
        ("rmw_cyclonedds_cpp", {"libdds_security_auth.so": b""}, ""),
        ("rmw_cyclonedds_cpp", {"libddsc0debian/libdds_security_auth.so": b""}, ""),
        ("rmw_zenoh_cpp", {}, "SROS 2 with rmw_zenoh_cpp is untried"),
    ],
)  # fmt: skip
def test_security_is_absent_where_the_rmw_has_none(
    build: ModuleType, tmp_path: Path, rmw: str, files: dict[str, bytes], reason: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    env = {"LD_LIBRARY_PATH": f":{tmp_path}:/nowhere"}
    absent = build.absent_security(env | ({"RMW_IMPLEMENTATION": rmw} if rmw else {}))
    assert list(absent) == (["on"] if reason else [])
    assert reason in absent.get("on", "")


def test_only_the_cell_that_uses_neither_rcl_nor_an_rmw_is_without_layers() -> None:
    catalog = Catalog([ROOT.parents[1]])
    cells = [catalog.cell(name) for name in catalog.cells if name.startswith(f"{ROOT.name}/")]
    gaps = {cell.name: cell.layer_gap for cell in cells if cell.layer_gap}
    assert set(gaps) == {"ros2/rust"} and "calls no function of rcl" in gaps["ros2/rust"]
