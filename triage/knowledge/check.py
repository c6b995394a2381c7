"""Judge cause files before anybody's log does.

In:  a folder of cause files. Out: one sentence for each thing that is wrong.
Not: whether a cause is right about a real log (the fixtures show that).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from time import perf_counter

from triage.core.causes import Role
from triage.core.handover.needs import is_need
from triage.core.log.compute import placeholder_faults
from triage.core.phases import PHASES
from triage.core.probes.catalogue import named
from triage.errors import UsageError
from triage.knowledge.loader import cause_files, load_cause_file
from triage.knowledge.schema import CauseFile
from triage.knowledge.shapes import PART, WHOLE, literal_faults, pattern_faults
from triage.knowledge.stored import load_causes, load_flag_table
from triage.knowledge.written import CAUSES

LINE_BYTES = 4096  # the classifier looks at no more of a line
SLOW_S = 0.005  # for one pattern on one hostile line
_TRIES = 3


def check_causes(folder: Path) -> tuple[str, ...]:
    """What is wrong with the cause files of `folder`; empty if all is well."""
    files: dict[str, CauseFile] = {}
    problems: list[str] = []
    for path in cause_files(folder):
        try:
            file = load_cause_file(path)
        except UsageError as error:
            problems.append(error.message)
        else:
            files[file.id] = file
    own = {} if folder.resolve() == CAUSES else {cause.id: cause for cause in load_causes()}
    benign = [line for f in files.values() if f.role is Role.BENIGN for line in f.examples]
    benign += [line for c in own.values() if c.role is Role.BENIGN for line in c.examples]
    for file in files.values():
        names = own.keys() | files.keys()
        found = (
            *check_patterns(file), *check_names(file, names), *check_flags(file), *check_todo(file)
        )  # fmt: skip
        if file.id in own:
            found = (*found, f"the id {file.id} is taken by a cause of triage's own")
        problems += [f"{folder / file.id}.yaml: {problem}" for problem in found]
        if file.role is not Role.BENIGN:
            hits = (line for line in benign for p in _compiled(file) if p.search(line))
            problems += [f"{folder / file.id}.yaml: matches the benign line {h!r}" for h in hits]
    for relation in ("explains", "yields_to"):
        edges = {file.id: getattr(file, relation) for file in files.values()}
        problems += [f"{folder}: {relation} goes round: {way}" for way in _cycles(edges)]
    return tuple(problems)


def check_patterns(file: CauseFile) -> Iterator[str]:
    """Patterns that do not compile, are dangerous or slow, or disagree with their examples."""
    for text in (*file.patterns, *file.frames, *file.context, *file.absent):
        yield from (f"{why}: {text}" for why in pattern_faults(text))
    if file.role is not Role.BENIGN:
        for text in file.patterns:
            yield from (f"{why}: {text}" for why in literal_faults(text, WHOLE))
        for text in file.context:
            yield from (f"{why}: {text}" for why in literal_faults(text, PART))
        for text in file.absent:
            yield from (f"{why}: {text}" for why in literal_faults(text, PART, always=False))
    compiled = _compiled(file)
    for pattern in compiled:
        if not any(pattern.search(example) for example in file.examples):
            yield f"no example for the pattern {pattern.pattern}"
        slow = slowest_s(pattern, file.examples)
        if slow > SLOW_S:
            yield f"takes {slow * 1000:.0f} ms on a hostile line: {pattern.pattern}"
    for example in file.examples:
        if not any(pattern.search(example) for pattern in compiled):
            yield f"matched by no pattern: {example!r}"
    for line in file.counter_examples:
        yield from (
            f"{pattern.pattern} matches the counter-example {line!r}"
            for pattern in compiled
            if pattern.search(line)
        )


def check_names(file: CauseFile, files: Collection[str]) -> Iterator[str]:
    """Names of phases, causes and captures that do not exist; texts that a root must have."""
    yield from (f"phases: there is no phase {name}" for name in file.phases if name not in PHASES)
    for relation in ("yields_to", "explains", "confused_with"):
        for name in getattr(file, relation):
            if name not in files or name == file.id:
                yield f"{relation}: there is no other cause {name}"
    for name in (file.probe,) if isinstance(file.probe, str) else file.probe:
        if named(name) is None:
            yield f"probe: there is no probe {name}"
    captures = {name for pattern in _compiled(file) for name in pattern.groupindex}
    yield from (f"group_by: no pattern captures {n}" for n in file.group_by if n not in captures)
    for remedy in file.remedies:
        span = remedy.span.words() if remedy.span else ()
        edits = (
            *remedy.changes.set,
            *remedy.changes.unset,
            *remedy.changes.set.values(),
            *remedy.changes.env.values(),
            *span,
        )
        for text in (remedy.say, remedy.cost, *map(str, edits)):
            faults = placeholder_faults(text, frozenset(captures))
            yield from (f"remedies: {fault}" for fault in faults)
        for need in remedy.needs:
            if not is_need(need):
                yield f"remedies: {need!r} is no condition"
    if file.role is Role.ROOT:
        for key in ("means", "remedies", "sources"):
            if not getattr(file, key):
                yield f"a root cause needs the key {key}"


def check_todo(file: CauseFile) -> Iterator[str]:
    """Keys of a draft that a person has still to write."""
    for key, value in file.model_dump().items():
        if "TODO" in str(value):
            yield f"{key}: still to do"


def check_flags(file: CauseFile) -> Iterator[str]:
    """Flags of remedies and culprits that the newest flag table does not know."""
    table = load_flag_table()
    named = [*file.culprits.flags]
    for remedy in file.remedies:
        named += [*remedy.changes.set, *remedy.changes.unset]
        named += [remedy.span.flag] if remedy.span else []
    for name in dict.fromkeys(named):
        if name in file.fork_flags or "{" in name:
            continue
        spec = table.specs.get(name)
        if spec is None:
            yield f"there is no flag {name}; write its canonical name, or list it in fork_flags"


def hostile_lines(examples: Iterable[str]) -> Iterator[str]:
    """Lines of 4 kB that make a careless pattern backtrack: its own examples, stretched."""
    for filler in ("a", "0", " ", "'", "a.", "a ", "/a", "(a)"):
        yield (filler * LINE_BYTES)[:LINE_BYTES]
    for example in examples:
        yield (example * LINE_BYTES)[:LINE_BYTES]
        yield (example[:-1] * LINE_BYTES)[:LINE_BYTES]
        for cut in range(1, 4):
            head = example[: len(example) * cut // 4]
            yield (head + head[-1:] * LINE_BYTES)[:LINE_BYTES]
            yield (head + "a1 " * LINE_BYTES)[:LINE_BYTES]


def slowest_s(pattern: re.Pattern[str], examples: Iterable[str]) -> float:
    """Seconds that the pattern needs for its worst hostile line, the best of three tries."""

    def once(line: str) -> float:
        start = perf_counter()
        pattern.search(line)
        return perf_counter() - start

    worst = 0.0
    for line in hostile_lines(examples):
        took = once(line)
        if took > worst:  # only a new worst is worth repeating on a shared machine
            worst = max(worst, min(took, *(once(line) for _ in range(_TRIES - 1))))
    return worst


def _compiled(file: CauseFile) -> list[re.Pattern[str]]:
    found = []
    for text in file.patterns:
        try:
            found.append(re.compile(text))
        except re.error:
            continue  # check_patterns reports it
    return found


def _cycles(edges: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> Iterator[str]:
        if name in way:
            yield " > ".join((*way[way.index(name) :], name))
        elif name not in done:
            for after in edges.get(name, ()):
                yield from visit(after, (*way, name))
            done.add(name)

    for name in edges:
        yield from visit(name, ())
