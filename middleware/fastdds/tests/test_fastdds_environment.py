"""The environment of the Fast DDS cell: selection of the library, and pinned wheels."""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fastdds", ROOT / "environment" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def install(prefix: Path, version: str) -> Path:
    (prefix / "include" / "fastdds").mkdir(parents=True)
    config = f'#define FASTDDS_VERSION_STR "{version}"\n'
    (prefix / "include" / "fastdds" / "config.hpp").write_text(config)
    (prefix / "lib").mkdir()
    (prefix / "lib" / "libfastdds.so").touch()
    return prefix


def test_the_first_installation_with_the_supported_api_is_used(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = install(tmp_path / "jazzy", "2.14.4"), install(tmp_path / "kilted", "3.2.2")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path / 'workspace'}:{old}:{new}")
    monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path)])
    assert build.main() == 0
    exports = json.loads((tmp_path / "exports.json").read_text())
    assert exports["facts"] == {"how": "installation", "prefix": str(new), "fastdds": "3.2.2"}
    assert f"-L{new / 'lib'}" in exports["lists"]["ldflags"]
    assert exports["env"]["LD_LIBRARY_PATH"].split(":")[0] == str(new / "lib")


def test_without_the_supported_api_no_installation_is_used(
    build: ModuleType, tmp_path: Path
) -> None:
    assert build.installed_prefix(f"{install(tmp_path / 'jazzy', '2.14.4')}:") is None
    assert build.installed_prefix("") is None


@pytest.mark.parametrize("libc", [("", ""), ("glibc", "2.27")])
def test_a_machine_without_a_new_glibc_has_no_cell_and_a_remedy(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libc: tuple[str, str]
) -> None:
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    monkeypatch.setattr(platform, "libc_ver", lambda: libc)
    monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path)])
    assert build.main() == 0
    exports = json.loads((tmp_path / "exports.json").read_text())
    assert "glibc 2.28" in exports["absent"] and "ROS installation" in exports["absent"]


def test_a_wheel_becomes_a_prefix_with_headers_and_libraries(
    build: ModuleType, tmp_path: Path
) -> None:
    members = {
        "ros_x-1.data/data/include/x/x.hpp": "include/x/x.hpp",
        "ros_x-1.data/data/lib/libx.so.1": "lib/libx.so.1",
        "ros_x.libs/liby-0a.so.2": "lib/liby-0a.so.2",
        "ros_x-1.data/data/bin/tool": "",
        "x/_dummy.so": "",
    }
    wheel = tmp_path / "x.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in members:
            archive.writestr(name, name)
    build.unpack(wheel, tmp_path / "prefix")
    files = (p for p in (tmp_path / "prefix").rglob("*") if p.is_file())
    assert {str(p.relative_to(tmp_path / "prefix")) for p in files} == set(members.values()) - {""}


def pinned(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^(ros-fast\w+)==(\S+)", path.read_text(), re.MULTILINE))


def test_the_wheels_are_those_below_the_rmw_of_ros(build: ModuleType) -> None:
    """A comparison of the two cells is about the RMW only if both use the same library."""
    ros = pinned(ROOT.parent / "ros2" / "environment" / "requirements.txt")
    assert pinned(build.REQUIREMENTS) == ros
    assert set(ros) == {"ros-fastdds", "ros-fastcdr"}
