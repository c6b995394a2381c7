"""What a compiled library asks for: other libraries, symbols, a version of the C library.

In:  a shared object of 64 bits, little-endian. Out: Needs; `defines`.
Not: loading it: nothing of it is run.

Source: the ELF specification and the GNU extension for symbol versions (verneed).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_DYNAMIC, _DYNSYM, _VERNEED, _GNU_HASH = 6, 11, 0x6FFFFFFE, 0x6FFFFFF6
_NEEDED, _RPATH, _RUNPATH = 1, 15, 29
_SYMBOL = 24  # bytes of one entry


class NotElfError(ValueError):
    """The file is no shared object of this kind, or it is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Libraries by soname, where they are looked for, undefined symbols, newest GLIBC."""

    libraries: tuple[str, ...]
    paths: tuple[str, ...]
    undefined: tuple[str, ...]
    glibc: tuple[int, ...]


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data[:6] != b"\x7fELF\x02\x01":
                raise NotElfError(f"{path} is no shared object of 64 bits")
            yield data
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        if isinstance(error, NotElfError):
            raise
        raise NotElfError(f"{path} is cut") from error


def needs(path: Path, symbols: Iterable[str] = ()) -> Needs:
    """What a library asks for; of undefined symbols those that begin with one of `symbols`.

    Raises:
        NotElfError: it is none.
        OSError: it cannot be read.
    """
    wanted = tuple(name.encode() for name in symbols)
    with _mapped(path) as data:
        sections = _sections(data)
        libraries, paths = [], []
        for kind, offset, size, link in sections:
            if kind == _DYNAMIC:
                strings = _strings(data, sections, link)
                for at in range(offset, offset + size, 16):
                    tag, value = struct.unpack_from("<qQ", data, at)
                    if tag == _NEEDED:
                        libraries.append(_text(strings, value))
                    elif tag in (_RPATH, _RUNPATH):
                        paths += _text(strings, value).split(":")
                    elif tag == 0:
                        break
        return Needs(
            libraries=tuple(libraries),
            paths=tuple(paths),
            undefined=tuple(_undefined(data, sections, wanted)) if wanted else (),
            glibc=max(_glibc(data, sections), default=()),
        )


def defines(path: Path, names: Iterable[str]) -> set[str]:
    """Which of these symbols a library defines, by its hash table: it may have a million.

    Raises:
        NotElfError: it is none, or has no such table.
        OSError: it cannot be read.
    """
    with _mapped(path) as data:
        sections = _sections(data)
        table = next((s for s in sections if s[0] == _GNU_HASH), None)
        symbols = next((s for s in sections if s[0] == _DYNSYM), None)
        if table is None or symbols is None:
            raise NotElfError(f"{path} has no table of its symbols")
        texts = sections[symbols[3]][1]
        return {
            name for name in names if _looked_up(data, table[1], symbols[1], texts, name.encode())
        }


def _looked_up(data: mmap.mmap, table: int, symbols: int, texts: int, name: bytes) -> bool:
    """Whether the table has the name. Source: the GNU hash section, as the loader reads it."""
    buckets, first, words, _ = struct.unpack_from("<IIII", data, table)
    value = 5381
    for letter in name:
        value = (value * 33 + letter) & 0xFFFFFFFF
    if not buckets:
        return False
    heads = table + 16 + 8 * words  # the filter before them is not needed for a few names
    (at,) = struct.unpack_from("<I", data, heads + 4 * (value % buckets))
    if at < first:
        return False
    chain = heads + 4 * buckets
    while True:
        (found,) = struct.unpack_from("<I", data, chain + 4 * (at - first))
        if found | 1 == value | 1:
            (text,) = struct.unpack_from("<I", data, symbols + _SYMBOL * at)
            if data[texts + text : texts + text + len(name) + 1] == name + b"\0":
                return True
        if found & 1:  # the last of its chain
            return False
        at += 1


def _sections(data: mmap.mmap) -> list[tuple[int, int, int, int]]:
    """Type, offset, size and link of each section."""
    (table,) = struct.unpack_from("<Q", data, 40)
    entry, count = struct.unpack_from("<HH", data, 58)
    found = []
    for number in range(count):
        at = table + number * entry
        (kind,) = struct.unpack_from("<I", data, at + 4)
        offset, size, link = struct.unpack_from("<QQI", data, at + 24)
        found.append((kind, offset, size, link))
    return found


def _strings(data: mmap.mmap, sections: list[tuple[int, int, int, int]], link: int) -> bytes:
    _, offset, size, _ = sections[link]
    return data[offset : offset + size]


def _text(strings: bytes, at: int) -> str:
    return strings[at : strings.index(b"\0", at)].decode(errors="replace")


def _undefined(
    data: mmap.mmap, sections: list[tuple[int, int, int, int]], prefixes: tuple[bytes, ...]
) -> Iterator[str]:
    """Names of dynamic symbols that are undefined and begin with a prefix; weak ones may be."""
    for kind, offset, size, link in sections:
        if kind != _DYNSYM:
            continue
        strings = _strings(data, sections, link)
        whole = data[offset : offset + size - size % _SYMBOL]
        for name, info, _, section, _, _ in struct.iter_unpack("<IBBHQQ", whole):
            if not section and info >> 4 == 1 and strings.startswith(prefixes, name):
                yield _text(strings, name)


def _glibc(data: mmap.mmap, sections: list[tuple[int, int, int, int]]) -> Iterator[tuple[int, ...]]:
    """Versions GLIBC_x.y that are asked for."""
    for kind, offset, size, link in sections:
        if kind != _VERNEED:
            continue
        strings = _strings(data, sections, link)
        at = offset
        while at < offset + size:
            _, count, _, aux, following = struct.unpack_from("<HHIII", data, at)
            inner = at + aux
            for _ in range(count):
                _, _, _, name, skip = struct.unpack_from("<IHHII", data, inner)
                text = _text(strings, name)
                number = text.removeprefix("GLIBC_")
                if number != text and number.replace(".", "").isdigit():
                    yield tuple(map(int, number.split(".")))
                inner += skip
            if not following:
                break
            at += following
