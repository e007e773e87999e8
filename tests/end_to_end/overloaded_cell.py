"""A copy of the loopback cell whose server freezes, slows down, or is slower than its clients."""

from __future__ import annotations

import shutil
from pathlib import Path

from wattwire.catalog import home

RATE_HZ, FROZEN_S = 100, 2.0
PLANTED = f"""
        mode = kit.setting("serve")
        now_s = time.monotonic()
        began.setdefault("s", now_s)
        since_s = now_s - began["s"]
        if mode == "freeze" and since_s > 0.3 and not began.get("frozen"):
            began["frozen"] = True
            time.sleep({FROZEN_S})
        elif mode == "slower":
            time.sleep(0.004 * 1.01**since_s)
        elif mode == "over":
            time.sleep({1.2 / RATE_HZ})
"""
SETTING = """
[settings.serve]
type = "string"
default = "normal"
allowed = ["normal", "freeze", "slower", "over"]
summary = "how the server serves its requests"
"""


def plant(root: Path) -> dict[str, str]:
    """Write the cell overloaded/python to `root`; return the environment of the cell."""
    folder = root / "roots" / "middleware" / "overloaded"
    shutil.copytree(home() / "middleware" / "loopback" / "python", folder / "python")
    shutil.copy(home() / "middleware" / "loopback" / "middleware.toml", folder)
    manifest = folder / "middleware.toml"
    manifest.write_text(manifest.read_text(encoding="utf-8") + SETTING, encoding="utf-8")
    service = folder / "python" / "service.py"
    text = service.read_text(encoding="utf-8")
    assert (place := "        reply = kit.serve(data)\n") in text
    text = text.replace(place, place + PLANTED.lstrip("\n"))
    assert (place := "    link.ready(matched=None)\n\n    def poll") in text
    text = text.replace(place, place.replace("\n\n", "\n    began: dict = {}\n\n"))
    service.write_text(f"import time\n\n{text}", encoding="utf-8")
    return {"WATTWIRE_PATH": str(root / "roots")}
