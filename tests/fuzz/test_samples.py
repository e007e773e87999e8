"""Test that damaged sample files are refused, or give exactly their undamaged content."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.conftest import Cases
from tests.fuzz.mutate import Mutator
from wattwire.model.records import (
    MESSAGE_RECORD,
    READING_RECORD,
    SampleFileError,
    read_node_samples,
    read_readings,
)
from wattwire.model.tests.deployments import deployment_of_nodes
from wattwire.run.results.convert import messages_frame, quantities_frame

COUNT = 6
SEED = 7
SERIES = [
    {"series": index, "scope": "process", "subject": "ping-0", "meter": "fake",
     "quantity": "energy", "unit": "uj", "kind": "measured"}
    for index in range(3)
]  # fmt: skip


DEPLOYMENT = deployment_of_nodes([{"node": 0, "role": "pong"}, {"node": 2, "role": "ping"}])


def node_file(records: int = COUNT) -> bytes:
    header = (b"WATTWIRE", 1, 64, 40, 3, 1, 2, 0, 0, records, 0, SEED)
    rows = [
        struct.pack("<QqqqIHBB", 2 << 48 | i, 1000 * i, 1000 * i + 1, 1000 * i + 9, 64, 1, 1, 0)
        for i in range(records)
    ]
    return struct.pack("<8sHHHBBHHIQQQ16x", *header) + b"".join(rows)


def sampler_file() -> bytes:
    rows = [struct.pack("<qIId", 1000 + i, i % 3, 50, float(i)) for i in range(COUNT)]
    return struct.pack("<8sHHI48x", b"WWSAMPLE", 1, 24, 0) + b"".join(rows)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("samples") / "samples.bin"


def test_a_damaged_sample_file_gives_no_other_number(cases: Cases, place: Path) -> None:
    good = node_file()
    place.write_bytes(good)
    sound = read_node_samples(place, SEED).records
    assert len(sound) == COUNT
    for seed in cases(6_000):
        data = Mutator(seed).bytes(good)
        place.write_bytes(data)
        try:
            found = read_node_samples(place, SEED, "client", 2)
        except SampleFileError as error:
            assert str(place) in str(error)
            continue
        # An accepted file has an intact header, and all its records are unchanged and in order.
        assert data[:24] == good[:24] and data[40:64] == good[40:64], f"seed {seed}"
        assert len(data) == 64 + 40 * len(found.records), f"seed {seed}"
        again = np.frombuffer(data, MESSAGE_RECORD, offset=64)
        assert again["kind"].max(initial=0) <= 6 and again["flags"].max(initial=0) <= 15
        assert found.records.tobytes() == again.tobytes(), f"seed {seed}"
        if seed % 20 == 0:
            frame = messages_frame("r", DEPLOYMENT, {2: [found]})
            assert len(frame) == len(found.records)


def test_a_damaged_sampler_file_gives_no_other_number(cases: Cases, place: Path) -> None:
    good = sampler_file()
    place.write_bytes(good)
    assert len(read_readings(place)) == COUNT
    for seed in cases(6_000):
        data = Mutator(seed).bytes(good)
        place.write_bytes(data)
        try:
            found = read_readings(place)
        except SampleFileError as error:
            assert str(place) in str(error)
            continue
        assert data[:64] == good[:64], f"seed {seed}"
        again = np.frombuffer(data, READING_RECORD, offset=64)
        assert found.tobytes() == again.tobytes(), f"seed {seed}"
        if seed % 20 == 0:
            if found["series"].max(initial=0) < len(SERIES):
                assert len(quantities_frame("r", DEPLOYMENT, place, SERIES)) == len(found)
            else:
                with pytest.raises(SampleFileError, match="which is not declared"):
                    quantities_frame("r", DEPLOYMENT, place, SERIES)
