"""Search kept frames for pieces of the fill, which only plain messages contain (C-19, C-20, C-32).

Each piece of 16 consecutive bytes contains a whole word of 8 bytes of the fill. Such words are
searched at all offsets; a hit counts if the bytes around it continue the fill to 16 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

PIECE_BYTES = 16
WORD_BYTES = 8
HEADER_BYTES, TRAILER_BYTES = 16, 8
"""Bytes of a payload before and after the fill. A text has two characters for each."""
NAME_CHARACTERS = 16
"""Characters of the fill in a record's name; its other values are numbers."""
ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
PCAP_HEADER_BYTES, FRAME_HEADER_BYTES = 24, 16
LENGTH_AT = 8
"""Offset of a frame's length in its header, a little-endian number of 32 bits."""


def fill_of(spec: Mapping[str, Any]) -> bytes:
    """Return the fill of a node's messages as it is in plain messages; b"" without any."""
    if spec["payload.literal"]:
        return b""
    encoding, length = spec["payload.encoding"], int(spec["payload.bytes"])
    if encoding == "record":
        return _as_text(_stream(spec["payload.seed"], NAME_CHARACTERS))
    unit = 2 if encoding == "text" else 1
    trailer = TRAILER_BYTES if length >= (HEADER_BYTES + TRAILER_BYTES) * unit else 0
    count = max(0, length - (HEADER_BYTES + trailer) * unit)
    stream = _stream(spec["payload.seed"], count)
    return _as_text(stream) if encoding == "text" else stream


def _stream(seed: int, count: int) -> bytes:
    """Return `count` bytes of splitmix64 (C-19)."""
    with np.errstate(over="ignore"):
        steps = np.arange(1, -(-count // WORD_BYTES) + 1, dtype=np.uint64)
        z = np.uint64(seed) + steps * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        words = z ^ (z >> np.uint64(31))
    return words.astype("<u8").tobytes()[:count]


def _as_text(stream: bytes) -> bytes:
    return stream.translate(bytes(ALPHABET[value % 64] for value in range(256)))


def frames_of(capture: bytes) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each frame in the bytes of a pcap file."""
    at = PCAP_HEADER_BYTES
    while at + FRAME_HEADER_BYTES <= len(capture):
        size = int.from_bytes(capture[at + LENGTH_AT : at + LENGTH_AT + 4], "little")
        begin = at + FRAME_HEADER_BYTES
        if begin + size > len(capture):  # the emulator was killed while it wrote this frame
            return
        yield begin, begin + size
        at = begin + size


def frames_with_fill(capture: bytes, fills: Sequence[bytes]) -> int:
    """Return how many frames of a pcap file contain a piece of one of the fills."""
    places = [_places(fill) for fill in fills]
    known = np.array(sorted({word for words in places for word in words}), np.uint64)
    if not len(known):
        return 0
    hits = np.sort(np.concatenate([_hits(capture, known, at) for at in range(WORD_BYTES)]))
    count = 0
    for begin, end in frames_of(capture):
        inside = hits[np.searchsorted(hits, begin) : np.searchsorted(hits, end)]
        frame = capture[begin:end]
        count += any(
            _continues(frame, int(hit) - begin, fill, words)
            for hit in inside
            for fill, words in zip(fills, places, strict=True)
        )
    return count


def _places(fill: bytes) -> dict[int, int]:
    """Return the words of a fill with their offsets."""
    whole = len(fill) // WORD_BYTES * WORD_BYTES if len(fill) >= PIECE_BYTES else 0
    words = np.frombuffer(fill[:whole], "<u8")
    return {int(word): at * WORD_BYTES for at, word in enumerate(words)}


def _hits(capture: bytes, known: np.ndarray, at: int) -> np.ndarray:
    """Return the offsets of known words, from offset `at` in steps of a word."""
    count = max(0, (len(capture) - at) // WORD_BYTES)
    words = np.frombuffer(capture, "<u8", count, at if count else 0)
    found: np.ndarray = np.flatnonzero(np.isin(words, known)) * WORD_BYTES + at
    return found


def _continues(frame: bytes, hit: int, fill: bytes, words: Mapping[int, int]) -> bool:
    """Return whether the bytes around a word of the fill continue it to a whole piece."""
    place = words.get(int.from_bytes(frame[hit : hit + WORD_BYTES], "little"))
    if place is None or hit + WORD_BYTES > len(frame):
        return False
    before = after = 0
    while min(hit, place) > before and frame[hit - before - 1] == fill[place - before - 1]:
        before += 1
    rest = min(len(frame) - hit, len(fill) - place)
    while after < rest and frame[hit + after] == fill[place + after]:
        after += 1
    return before + after >= PIECE_BYTES
