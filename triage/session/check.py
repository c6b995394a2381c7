"""Compare what recorded cases expect with what is found in their logs.

In:  a folder of cases, or logs that have none. Out: Results, in the order of their paths.
Not: printing or reporting them (triage.cli, triage.render).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, TypeVar

from triage.core.causes import Cause
from triage.core.diagnosis import Diagnosis
from triage.core.handover.expected import Way, met
from triage.core.results import Difference, Result, Status
from triage.errors import NothingError, TriageError, UsageError, hint
from triage.render.documents import diagnosis_document
from triage.session.logs import classify
from triage.session.proposals import proposals_of

T = TypeVar("T")
CASE, LOG = "case.yaml", "server.log"


def case_files(folder: Path) -> tuple[Path, ...]:
    """The case.yaml of the folder itself and of those below it, by path.

    Raises:
        UsageError: there is no such folder.
        NothingError: no case is in it.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint=hint("ls", "-d", folder))
    found = tuple(sorted(p for p in folder.rglob(CASE) if p.is_file()))
    if not found:
        raise NothingError(
            f"{folder} holds no case: a case is a folder with {LOG} and {CASE}",
            hint=hint("triage", "classify", folder),
        )
    return found


def logs_without_case(folder: Path) -> tuple[str, ...]:
    """Logs of folders below this one that lack a case.yaml: nothing is expected of them."""
    found = (path for path in folder.rglob(LOG) if not path.with_name(CASE).exists())
    return tuple(sorted(place(str(path)) for path in found))


def compare(file: Path, known: Sequence[Cause] | None = None) -> Result:
    """The result of one case; a case that cannot be read is a result too."""
    from triage.knowledge.cases import load_case

    name, log = file.parent.name or file.parent.resolve().name, file.with_name(LOG)
    try:
        case = load_case(file)
        diagnosis = classify(str(case.log), known=known)
    except TriageError as error:
        return Result(
            name=name, place=place(str(log)), status=Status.UNREADABLE, note=error.message
        )
    told = (*differences(case.expect, diagnosis), *_remedy(case.ways, diagnosis, known))
    if case.known_miss:
        status = Status.KNOWN_MISS if told else Status.MENDED
    else:
        status = Status.DIFFERS if told else Status.EXPECTED
    return Result(
        name=name,
        place=place(str(log)),
        status=status,
        diagnosis=diagnosis,
        expected=case.expect["cause"],
        differences=told,
        note=case.miss,
    )


def differences(expect: dict[str, Any], diagnosis: Diagnosis) -> tuple[Difference, ...]:
    """How the diagnosis departs from the expectation, each with the line to look at."""
    from triage.knowledge.cases import differences as compared

    found = diagnosis.root.line if diagnosis.root else 0
    root = expect.get("root")
    expected = root.get("line", found) if isinstance(root, dict) else found
    told = []
    for text in compared(expect, diagnosis_document(diagnosis)):
        key, _, say = text.partition(": ")
        told.append(
            Difference(key=key, say=say, line=expected if key.startswith("root") else found)
        )
    return tuple(told)


def _remedy(
    ways: Sequence[Way], diagnosis: Diagnosis, known: Sequence[Cause] | None
) -> tuple[Difference, ...]:
    """Why the best proposal is none that the case accepts."""
    if not ways or diagnosis.cause is None:
        return ()  # another cause than the expected one is a difference already
    options = proposals_of(diagnosis, known=known).options
    if options and met(options[0], ways):
        return ()
    say = f"the best proposal is no accepted one: {options[0].say if options else 'none'}"
    return (Difference(key="remedy", say=say, line=diagnosis.root.line if diagnosis.root else 0),)


def uncompared(source: str, diagnosis: Diagnosis) -> Result:
    """A diagnosis as a result, where nothing is expected."""
    name = "stdin" if source == "-" else place(source)
    return Result(name=name, place=name, status=Status.UNCOMPARED, diagnosis=diagnosis)


def compared(files: Sequence[Path], known: Sequence[Cause] | None = None) -> Iterator[Result]:
    """The results of these cases, in their order."""
    return (compare(file, known) for file in files)


def place(path: str) -> str:
    """The path as a report names it: relative to the working folder if it lies within."""
    whole = Path(path).absolute()
    try:
        return whole.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return PurePath(whole).as_posix()


def watched(
    results: Iterator[T], total: int, what: str, show: Callable[[str], None] | None
) -> Iterator[T]:
    """The results as they come, counted for somebody who waits."""
    for number, result in enumerate(results, 1):
        if show:
            show(f"{number}/{total} {what}")
        yield result
    if show:
        show("")
