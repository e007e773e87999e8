"""`python -m bench.build_nodes [PATTERN…]`: build the nodes of the bench, without measuring.

One line per node reports that the node was built, or the reason why it is absent: a toolchain is
not installed, or the build failed ("could not be built").
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fnmatch import fnmatch

from bench.nodes import CELLS, bench, make_cells_known


def main(patterns: Sequence[str]) -> int:
    make_cells_known()
    with bench() as workbench:
        for name in workbench.catalog.cells:
            is_own = workbench.catalog.cell(name).folder.is_relative_to(CELLS)
            is_wanted = is_own and any(fnmatch(name, pattern) for pattern in patterns or ["*"])
            if is_wanted and workbench.cell(name) is not None:
                print(f"  {name}: built", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
