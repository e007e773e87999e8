"""Search kept frames for pieces of the fill, which only plain messages contain (C-19, C-20, C-32).

Each piece of 16 consecutive bytes contains a whole word of 8 bytes of the fill. Such words are
searched at all offsets; a hit counts if the bytes around it continue the fill to 16 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

PIECE_BYTES = 16
WORD_BYTES = 8
HEADER_BYTES, TRAILER_BYTES = 16, 8
"""Bytes of a payload before and after the fill. A text has two characters for each."""
NAME_CHARACTERS = 16
"""Characters of the fill in a record's name; its other values are numbers."""
ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
PCAP_HEADER_BYTES, FRAME_HEADER_BYTES = 24, 16
CHUNK_BYTES = 16 << 20
"""Bytes that are searched at once. The search needs several times this memory."""
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


def frames_of(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each whole frame in a piece of a pcap file."""
    at = 0
    while at + FRAME_HEADER_BYTES <= len(content):
        size = int.from_bytes(content[at + LENGTH_AT : at + LENGTH_AT + 4], "little")
        begin = at + FRAME_HEADER_BYTES
        if begin + size > len(content):
            return
        yield begin, begin + size
        at = begin + size


def search(
    capture: BinaryIO, fills: Sequence[bytes], chunk_bytes: int = CHUNK_BYTES
) -> tuple[int, int]:
    """Return how many frames a pcap file has, and how many contain a piece of one of the fills."""
    places = [_places(fill) for fill in fills]
    known = np.array(sorted({word for words in places for word in words}), np.uint64)
    searched = matching = 0
    for chunk in _chunks(capture, chunk_bytes):
        frames = list(frames_of(chunk))
        searched += len(frames)
        hits = np.sort(np.concatenate([_hits(chunk, known, at) for at in range(WORD_BYTES)]))
        for begin, end in frames:
            inside = hits[np.searchsorted(hits, begin) : np.searchsorted(hits, end)]
            frame = chunk[begin:end]
            matching += any(
                _continues(frame, int(hit) - begin, fill, words)
                for hit in inside
                for fill, words in zip(fills, places, strict=True)
            )
    return searched, matching


def _chunks(capture: BinaryIO, chunk_bytes: int) -> Iterator[bytes]:
    """Yield the frames of a pcap file in pieces that end with a frame.

    The last frame is incomplete if the emulator was killed while it wrote it. It is omitted.
    """
    capture.read(PCAP_HEADER_BYTES)
    rest = b""
    while content := capture.read(chunk_bytes):
        content = rest + content
        end = max((end for _, end in frames_of(content)), default=0)
        yield content[:end]
        rest = content[end:]


def _places(fill: bytes) -> dict[int, int]:
    """Return the words of a fill with their offsets."""
    whole = len(fill) // WORD_BYTES * WORD_BYTES if len(fill) >= PIECE_BYTES else 0
    words = np.frombuffer(fill[:whole], "<u8")
    return {int(word): at * WORD_BYTES for at, word in enumerate(words)}


def _hits(chunk: bytes, known: np.ndarray, at: int) -> np.ndarray:
    """Return the offsets of known words, from offset `at` in steps of a word."""
    count = max(0, (len(chunk) - at) // WORD_BYTES)
    words = np.frombuffer(chunk, "<u8", count, at if count else 0)
    offsets: np.ndarray = np.flatnonzero(np.isin(words, known)) * WORD_BYTES + at
    return offsets


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
