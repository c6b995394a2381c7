"""Write reports of results for other programs, without names of machines and people.

In:  results, the files to write. Out: files; the lines of annotations.
Not: what stands in them (triage.render).
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from triage.core.causes import Cause
from triage.core.diagnosis import Advice, Decoy, Diagnosis
from triage.core.redactor import Redactor
from triage.core.results import Difference, Result
from triage.errors import HostError, hint

SUMMARY = "GITHUB_STEP_SUMMARY"
WORKSPACE = "GITHUB_WORKSPACE"  # GitHub's paths start here, whatever folder a step works in


def redactor() -> Redactor:
    """What takes out the names of this machine and this user, and those that logs give away."""
    names = {platform.node(): "host", platform.node().partition(".")[0]: "host"}
    names |= {os.environ[name]: "user" for name in ("USER", "LOGNAME") if name in os.environ}
    home = os.environ.get("HOME", "")
    paths = {home: "/home/user"} if home.count("/") > 1 else {}  # /root names nobody
    return Redactor(names=names, paths=paths)


def without_names(results: Sequence[Result]) -> tuple[Result, ...]:
    """The results as they may leave this machine."""
    clean = redactor()
    return tuple(_without(result, clean) for result in results)


def _without(result: Result, clean: Redactor) -> Result:
    return replace(
        result,
        name=clean.text(result.name),
        place=clean.text(result.place),
        note=clean.text(result.note),
        differences=tuple(
            Difference(key=d.key, say=clean.text(d.say), line=d.line) for d in result.differences
        ),
        diagnosis=_diagnosis(result.diagnosis, clean) if result.diagnosis else None,
    )


def _diagnosis(d: Diagnosis, clean: Redactor) -> Diagnosis:
    """What reports take of a diagnosis: texts of the log, and what was filled in from it."""
    return replace(
        d,
        source=clean.text(d.source),
        title=clean.text(d.title),
        root=replace(d.root, text=clean.text(d.root.text)) if d.root else None,
        decoys=tuple(Decoy(line=one.line, why=clean.text(one.why)) for one in d.decoys),
        remedies=tuple(_advice(one, clean) for one in d.remedies),
    )


def _advice(advice: Advice, clean: Redactor) -> Advice:
    return replace(advice, say=clean.text(advice.say))


def _from_workspace(results: Sequence[Result]) -> tuple[Result, ...]:
    """The results with their places relative to the checkout, if one of GitHub's is around."""
    root = os.environ.get(WORKSPACE)
    if not root:
        return tuple(results)
    base, here = Path(root).resolve(), Path.cwd()

    def moved(place: str) -> str:
        whole = here / place
        return whole.relative_to(base).as_posix() if whole.is_relative_to(base) else place

    return tuple(replace(result, place=moved(result.place)) for result in results)


def write_junit(results: Sequence[Result], file: Path, suite: str) -> None:
    """Write the results as JUnit XML."""
    from triage.render.junit import junit

    _write(file, junit(without_names(results), redactor().text(suite)))


def write_sarif(results: Sequence[Result], file: Path, known: Sequence[Cause]) -> None:
    """Write the results as SARIF 2.1.0."""
    from importlib.metadata import version

    from triage.render.sarif import sarif

    by_id: Mapping[str, Cause] = {cause.id: cause for cause in known}
    made = sarif(without_names(_from_workspace(results)), by_id, version("sglang-triage"))
    document = cast("dict[str, Any]", redactor().document(made))
    _write(file, json.dumps(document, indent=1, ensure_ascii=True) + "\n")


def github(results: Sequence[Result], title: str) -> tuple[str, ...]:
    """Add to the job's summary, if there is one; the annotations to print."""
    from triage.render.annotations import summary, workflow_commands

    shown = without_names(_from_workspace(results))
    if file := os.environ.get(SUMMARY):
        text = summary(shown, redactor().text(title)).encode("utf-8", "replace")
        try:
            with Path(file).open("ab") as out:
                out.write(text)
        except OSError as error:
            raise _cannot(Path(file), error) from error
    return workflow_commands(shown)


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise _cannot(file, error) from error


def _cannot(file: Path, error: OSError) -> HostError:
    return HostError(
        f"cannot write {file}: {error.strerror or error}", hint=hint("ls", "-ld", file.parent)
    )
