"""Runs a node: arguments, spec, role, samples, DONE."""

from __future__ import annotations

import importlib
import os
import sys
import time
import traceback
from collections.abc import Collection, Sequence

PROCESS_START_NS = time.monotonic_ns()  # before the rest of the kit and the middleware load

from .constants import ROLE_CODES  # noqa: E402
from .dialogue import Dialogue  # noqa: E402
from .kit import Kit  # noqa: E402
from .spec import (  # noqa: E402
    BadSpec,
    MiddlewareFailed,
    Role,
    Unsupported,
    check_declaration,
    read_spec,
)


def _arguments(argv: Sequence[str]) -> tuple[str, str]:
    if len(argv) != 4 or {argv[0], argv[2]} != {"--spec", "--out"}:
        raise BadSpec("command line", " ".join(argv), "--spec FILE --out DIR")
    options = {argv[0]: argv[1], argv[2]: argv[3]}
    if not os.path.isdir(options["--out"]):
        raise BadSpec("--out", options["--out"], "an existing folder")
    return options["--spec"], options["--out"]


def _check_names(roles: Collection[str]) -> None:
    """Raise BadSpec for an argument that is no role, such as `settings` of contract version 2."""
    for name in roles:
        if name not in ROLE_CODES:
            allowed = f"{', '.join(ROLE_CODES)}; the manifests declare the rest"
            raise BadSpec("run()", name, allowed)


def run(**roles: Role) -> None:
    """Run this node and end the process; see the API page. Never returns."""
    dialogue = Dialogue()
    try:
        _check_names(roles)
        spec_path, out = _arguments(sys.argv[1:])
        spec = read_spec(spec_path)
        check_declaration(spec, roles)
        dialogue.listen()
        kit = Kit(spec, dialogue, PROCESS_START_NS, out)
        role = roles[spec["role"]]
        if isinstance(role, str):
            module, _, function = role.partition(":")
            role = getattr(importlib.import_module(module), function)
        role(kit)
        kit.finish()
    except BadSpec as error:
        dialogue.fail(2, error.key, str(error))
    except Unsupported as error:
        dialogue.fail(3, None, str(error))
    except MiddlewareFailed as error:
        dialogue.fail(4, None, str(error))
    except BaseException as error:
        traceback.print_exc()
        dialogue.fail(4, None, f"{type(error).__name__}: {error}")
    # Not sys.exit, because a library's exit handlers may take longer than the contract's second.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
