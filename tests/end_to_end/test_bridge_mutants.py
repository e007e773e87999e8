"""Test that the check of bridges finds each message that a mutant of a bridge mistreats."""

from __future__ import annotations

import random
import shutil

import pytest

from wattwire.catalog import Catalog, home
from wattwire.cli.bridge_check import check_bridge
from wattwire.model.errors import MissingError
from wattwire.rig.namespaces import require_namespaces

pytestmark = pytest.mark.slow

MUTANT = "mutant"
RECEIVE = "    receiving.subscribe(on_message)\n"
HEAD = """
    sound, listed, held = on_message, {listed!r}, []

    def on_message(serialized):
        number = int.from_bytes(serialized[len(ros.layout.head) :][:6], "little")
        if kit.spec["hop"] != {hop} or number not in listed:
            sound(serialized)
{body}
"""
BODIES = {
    "lost": "",
    "doubled": """
        else:
            sound(serialized)
            sound(serialized)
""",
    "swapped": """
        elif number % 2 == 0:
            held.append(serialized)
        else:
            sound(serialized)
            sound(held.pop())
""",
    "altered": """
        else:
            sound(serialized[:-9] + bytes([serialized[-9] ^ 255]) + serialized[-8:])
""",
    "unrecorded": """
        else:
            sending.publish(serialized)
""",
}
SEEDS = 20
HOPS = (1, 2, 4, 5)
"""The positions of the bridge processes in a round trip."""
MESSAGES = 100


@pytest.fixture
def mutated(tmp_path):
    """Return a function that checks the first bridge with a fault; it returns its faults."""
    try:
        require_namespaces()
    except MissingError as reason:
        pytest.skip(str(reason))
    name = sorted(Catalog([home()]).bridges)[-1]

    def check(kind: str = "", hop: int = 0, listed: frozenset[int] = frozenset()):
        folder = tmp_path / "bridges" / MUTANT
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(home() / "bridges" / name, folder)
        program = folder / "forwarding.py"  # precedes the module of the inner cell
        shutil.copy(home() / "middleware" / "ros2" / "python" / program.name, program)
        text = program.read_text()
        assert text.count(RECEIVE) == 1
        if kind:
            head = HEAD.format(listed=sorted(listed), hop=hop, body=BODIES[kind])
            program.write_text(text.replace(RECEIVE, head + RECEIVE))
        catalog = Catalog([tmp_path, home()])
        try:
            checked = check_bridge(catalog.bridge(MUTANT), catalog)
        except MissingError as reason:
            pytest.skip(str(reason))
        # A run with corrupt arrivals is invalid; the check reports that and the altered messages.
        is_expected = checked.problem.endswith("arrived corrupt") == (kind == "altered")
        assert checked.messages == MESSAGES and is_expected, checked.problem
        assert kind == "altered" or not checked.problem, checked.problem
        return [(h.hop, k, set(m)) for h in checked.hops for k, m in h.faults.items()]

    return check


def planted(kind: str, seed: int) -> tuple[int, frozenset[int]]:
    """Return a hop, and messages; those of a swap are whole pairs."""
    chance = random.Random(seed)
    chosen = chance.sample(range(MESSAGES), 5)
    if kind == "swapped":
        chosen = [m for first in chosen for m in (first // 2 * 2, first // 2 * 2 + 1)]
    return chance.choice(HOPS), frozenset(chosen)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("lost", 0),
        *(pytest.param(kind, seed, marks=pytest.mark.matrix)
          for kind in BODIES for seed in range(SEEDS)),
    ],
)  # fmt: skip
def test_the_check_finds_exactly_the_mistreated_messages_at_their_hop(mutated, kind, seed):
    hop, listed = planted(kind, seed)
    assert mutated(kind, hop, listed) == [(hop, kind, set(listed))]


@pytest.mark.matrix
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_sound_bridge_raises_nothing(mutated, seed):
    assert mutated() == []
