"""Figures from a cubin's ELF sections, for compilers that keep quiet about them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from .ptxas import Usage

_REGCOUNT, _FRAME_SIZE, _MIN_STACK = 0x2F, 0x11, 0x12  # attributes of .nv.info
_SIZED = 0x04  # attribute format: a 16-bit size and that many bytes follow


def sections(code: bytes) -> dict[str, bytes]:
    """Name to content of a little-endian ELF64 file; a section without content in the file is its zero bytes' count
    of nothing. Empty when `code` is no such file."""
    if len(code) < 64 or code[:6] != b"\x7fELF\x02\x01":
        return {}
    (offset,) = struct.unpack_from("<Q", code, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", code, 0x3A)
    try:
        heads = [struct.unpack_from("<IIQQQQ", code, offset + i * size) for i in range(count)]
        names = code[heads[names_index][4] : heads[names_index][4] + heads[names_index][5]]
        return {_name(names, h[0]): code[h[4] : h[4] + h[5]] for h in heads}
    except (struct.error, IndexError):
        return {}


def shared_bytes(code: bytes, entry: str) -> int | None:
    """Static shared memory of `entry`: the size of its .nv.shared section, which has no bytes in the file."""
    if len(code) < 64 or code[:6] != b"\x7fELF\x02\x01":
        return None
    (offset,) = struct.unpack_from("<Q", code, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", code, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", code, offset + i * size) for i in range(count)]
    names = code[heads[names_index][4] : heads[names_index][4] + heads[names_index][5]]
    return next((h[5] for h in heads if _name(names, h[0]) == f".nv.shared.{entry}"), 0)


def cubin_usage(code: bytes, entry: str) -> Usage:
    """Registers, stack and static shared memory of `entry`; spills are not recorded in a cubin."""
    parts = sections(code)
    index = _symbol_index(parts, entry)
    if index is None:
        return Usage()
    told = {a: v for a, s, v in _attributes(parts.get(".nv.info", b"")) if s == index}
    return Usage(registers=told.get(_REGCOUNT), stack=told.get(_FRAME_SIZE), shared=shared_bytes(code, entry))


def _name(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode(errors="replace")


def _symbol_index(parts: dict[str, bytes], entry: str) -> int | None:
    symbols, names = parts.get(".symtab", b""), parts.get(".strtab", b"")
    for i in range(len(symbols) // 24):
        name, kind = struct.unpack_from("<IB", symbols, i * 24)
        if kind & 15 == 2 and _name(names, name) == entry:
            return i
    return None


def _attributes(info: bytes) -> Iterator[tuple[int, int, int]]:
    """(attribute, symbol, value) of the sized records that hold two words."""
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form != _SIZED:
            continue
        if size == 8 and at + 8 <= len(info):
            yield (attribute, *struct.unpack_from("<II", info, at))
        at += size
