"""The hand-written types of the Fast DDS cell: CDR, rejected messages, and no allocations."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KIT = ROOT.parents[1] / "languages" / "cpp" / "kit"
# The part of the library that the types use. The library itself is not installed everywhere.
LIBRARY = """
#pragma once
#include <cstdint>
#include <string>
#define CDR_LE 0x0001
namespace eprosima::fastdds {
namespace rtps {
struct SerializedPayload_t {
  static constexpr size_t representation_header_size = 4;
  uint16_t encapsulation = 0;
  uint32_t length = 0;
  uint8_t* data = nullptr;
  uint32_t max_size = 0;
};
struct InstanceHandle_t {};
}  // namespace rtps
namespace dds {
using DataRepresentationId_t = int16_t;
class TopicDataType {
 public:
  virtual ~TopicDataType() = default;
  virtual bool serialize(const void* const, rtps::SerializedPayload_t&, int16_t) = 0;
  virtual bool deserialize(rtps::SerializedPayload_t&, void*) = 0;
  virtual uint32_t calculate_serialized_size(const void* const, int16_t) = 0;
  virtual void* create_data() = 0;
  virtual void delete_data(void*) = 0;
  virtual bool compute_key(rtps::SerializedPayload_t&, rtps::InstanceHandle_t&, bool) = 0;
  virtual bool compute_key(const void* const, rtps::InstanceHandle_t&, bool) = 0;
  void set_name(const std::string&) {}
  uint32_t max_serialized_type_size = 0;
};
}  // namespace dds
}  // namespace eprosima::fastdds
"""
MESSAGE = {"bytes": "0001000003000000616263", "text": "000100000400000061626300"}
CALL = "000100000700000000000000080706050403020103000000616263"
NUMBER = 0x0102030405060708

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed"),
]


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return a function that runs the program with words and returns its output."""
    folder = tmp_path_factory.mktemp("types")
    header = folder / "fastdds" / "dds" / "topic" / "TopicDataType.hpp"
    header.parent.mkdir(parents=True)
    header.write_text(LIBRARY)
    command = ["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", f"-I{folder}", f"-I{KIT}"]
    command += [f"-I{ROOT / 'cpp'}", str(ROOT / "tests" / "types.cpp"), "-o", str(folder / "types")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]

    def run(*words: str) -> str:
        argv = [str(folder / "types"), *words]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    return run


@pytest.mark.parametrize("body", MESSAGE)
def test_a_message_is_plain_cdr(types: Callable[..., str], body: str) -> None:
    assert types("write", body, "message", "abc") == MESSAGE[body]
    assert types("read", body, "message", MESSAGE[body]) == "0 0 abc"


def test_a_call_has_its_client_and_number_at_aligned_offsets(types: Callable[..., str]) -> None:
    assert types("write", "bytes", "call", "abc") == CALL
    assert types("read", "bytes", "call", CALL) == f"7 {NUMBER} abc"


@pytest.mark.parametrize(
    "damaged",
    [
        MESSAGE["bytes"][:14],
        MESSAGE["bytes"][:-2],
        "0000" + MESSAGE["bytes"][4:],
        "00010000ffffffff616263",
    ],
    ids=["no length", "no end", "big-endian", "too long"],
)
def test_a_message_that_is_not_complete_little_endian_cdr_is_rejected(
    types: Callable[..., str], damaged: str
) -> None:
    assert types("read", "bytes", "message", damaged) == "rejected"


def test_text_without_its_zero_is_rejected(types: Callable[..., str]) -> None:
    assert types("read", "text", "message", "0001000000000000") == "rejected"


def test_no_message_after_the_first_allocates_memory(types: Callable[..., str]) -> None:
    assert types("allocations") == "0"
