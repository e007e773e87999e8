"""Find the plug-ins for DDS Security next to the C library, and write BUILD_DIR/exports.json.

Usage: build.py BUILD_DIR. The C library does not search for its plug-ins, which Debian installs in
a folder of their own. Without them, the treatments with `settings.security = "on"` are absent.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PLUGINS_VARIABLE = "WATTWIRE_CYCLONEDDS_PLUGINS"
"""The variable from which cpp/security.hpp reads the folder of the plug-ins."""
PLUGINS = ("libdds_security_auth.so", "libdds_security_ac.so", "libdds_security_crypto.so")
COMPILER = "g++"


def main() -> int:
    (Path(sys.argv[1]) / "exports.json").write_text(
        json.dumps(exports(library_folder()), indent=2) + "\n"
    )
    return 0


def library_folder() -> Path | None:
    """Return the folder of the library that the compiler links, or None."""
    if shutil.which(COMPILER) is None:
        return None
    argv = [COMPILER, "-print-file-name=libddsc.so"]
    path = Path(subprocess.run(argv, check=True, text=True, stdout=subprocess.PIPE).stdout.strip())
    return path.parent.resolve() if path.is_absolute() else None


def exports(library: Path | None) -> dict[str, Any]:
    """Return the variable with the folder of the plug-ins, or the reason why security is absent."""
    folders = [library, *sorted(library.glob("libddsc*/"))] if library is not None else []
    for folder in folders:
        if all((folder / name).is_file() for name in PLUGINS):
            return {"env": {PLUGINS_VARIABLE: str(folder)}}
    reason = (
        f"{library or 'this machine'} has no {', '.join(PLUGINS)}, the plug-ins of Cyclone DDS "
        "for DDS Security; install them (Debian: libddsc0debian)"
    )
    return {"cells": {"cpp": {"settings": {"security": {"absent": {"on": reason}}}}}}


if __name__ == "__main__":
    sys.exit(main())
