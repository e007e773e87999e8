"""Tests of sample files. Complete files are read, and truncated or foreign files are rejected."""

import numpy as np
import pytest

from wattwire.model.records import (
    MESSAGE_HEADER,
    MESSAGE_RECORD,
    SampleFileError,
    read_node_samples,
    read_readings,
)


def sample_file(path, count=3, **header):
    values = {
        "magic": b"WATTWIRE", "version": 1, "header_bytes": 64, "record_bytes": 40, "role": 1,
        "clock": 1, "node": 4, "count": count, "overflow": 0, "seed": 9, **header,
    }  # fmt: skip
    head = np.zeros(1, MESSAGE_HEADER)
    for key, value in values.items():
        head[key] = value
    records = np.zeros(3, MESSAGE_RECORD)
    records["seq"] = [2**48, 2**48 + 1, 2**48 + 2]
    path.write_bytes(head.tobytes() + records.tobytes())
    return path


def test_records_come_back_as_they_were_written(tmp_path):
    samples = read_node_samples(sample_file(tmp_path / "s.bin"), seed=9)
    assert (samples.role, samples.node, len(samples.records)) == ("subscriber", 4, 3)
    assert samples.records["seq"].tolist() == [2**48, 2**48 + 1, 2**48 + 2]


@pytest.mark.parametrize("keep", [0, 1, 63, 64, 100, 183])
def test_a_truncated_file_is_refused_with_its_size(tmp_path, keep):
    path = sample_file(tmp_path / "s.bin")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(SampleFileError, match=rf"\b{keep} (of 64 )?bytes"):
        read_node_samples(path)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"magic": b"SOMETHNG"}, "begins with"),
        ({"version": 2}, "version is 2"),
        ({"clock": 0}, "clock is 0"),
        ({"record_bytes": 48}, "record_bytes is 48"),
        ({"role": 99}, "role 99"),
        ({"seed": 8}, "not this run's seed 9"),
        ({"count": 2**61}, "truncated"),
    ],
)
def test_a_foreign_header_is_refused_by_name(tmp_path, header, words):
    with pytest.raises(SampleFileError, match=words):
        read_node_samples(sample_file(tmp_path / "s.bin", **header), seed=9)


def test_a_torn_sampler_file_is_refused(tmp_path):
    path = tmp_path / "r.bin"
    path.write_bytes(b"WWSAMPLE" + bytes([1, 0, 24, 0]) + bytes(52) + bytes(25))
    with pytest.raises(SampleFileError, match="truncated"):
        read_readings(path)
    path.write_bytes(b"")
    with pytest.raises(SampleFileError, match="0 bytes"):
        read_readings(path)
