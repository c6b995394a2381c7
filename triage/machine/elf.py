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

_DYNAMIC, _DYNSYM, _VERNEED = 6, 11, 0x6FFFFFFE
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
            undefined=tuple(_symbols(data, sections, wanted, defined=False)) if wanted else (),
            glibc=max(_glibc(data, sections), default=()),
        )


def defines(path: Path, names: Iterable[str]) -> set[str]:
    """Which of these symbols a library defines.

    Raises:
        NotElfError: it is none.
        OSError: it cannot be read.
    """
    wanted = {name.encode() for name in names}
    with _mapped(path) as data:
        sections = _sections(data)
        found: set[str] = set()
        for kind, _, _, link in sections:
            if kind == _DYNSYM:
                # A library of torch has a million symbols: look for the few names first.
                strings = _strings(data, sections, link)
                if any(b"\0" + name + b"\0" in strings for name in wanted):
                    found |= set(_symbols(data, sections, tuple(wanted), defined=True))
        return found & {name.decode() for name in wanted}


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


def _symbols(
    data: mmap.mmap,
    sections: list[tuple[int, int, int, int]],
    prefixes: tuple[bytes, ...],
    *,
    defined: bool,
) -> Iterator[str]:
    """Names of dynamic symbols that are defined, or are not, and begin with a prefix."""
    for kind, offset, size, link in sections:
        if kind != _DYNSYM:
            continue
        strings = _strings(data, sections, link)
        for at in range(offset, offset + size, _SYMBOL):
            name, info, _, section = struct.unpack_from("<IBBH", data, at)
            # A weak symbol may be absent: only global ones (1) count as undefined.
            right = bool(section) == defined and (defined or info >> 4 == 1)
            if right and strings.startswith(prefixes, name):
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
