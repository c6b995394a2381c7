"""The causes that a command works with: triage's own, and those of the user's folders.

In:  folders of cause files, named on the command line or by TRIAGE_KNOWLEDGE.
Out: causes, triage's own first.
Not: reading files (triage.knowledge). No YAML is read where no folder is named.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache

from triage.core.causes import Cause
from triage.core.typed import TYPE_CHECKING
from triage.errors import UsageError, hint
from triage.knowledge import load_causes, load_causes_from

if TYPE_CHECKING:
    from pathlib import Path

VARIABLE = "TRIAGE_KNOWLEDGE"  # folders, separated as those of PATH are


def causes(folders: Sequence[Path] = ()) -> Sequence[Cause]:
    """The knowledge base with the user's folders, read once a process.

    Raises:
        UsageError: a folder or a file in it cannot be read, or an id is there twice.
    """
    words = os.environ.get(VARIABLE, "").split(os.pathsep)
    if not folders and not any(words):
        return _causes(())
    from pathlib import Path

    named = [Path(word) for word in words if word]
    return _causes(tuple(dict.fromkeys((*named, *folders))))


@cache
def _causes(folders: tuple[Path, ...]) -> Sequence[Cause]:
    if not folders:
        return load_causes()  # as they are: each is read when it is asked for
    known = {cause.id: cause for cause in load_causes()}
    origin: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder of cause files", hint=hint("ls", "-d", folder))
        for cause in load_causes_from(folder):
            if cause.id in known:
                other = origin.get(cause.id)
                raise UsageError(
                    f"{folder / cause.id}.yaml: the id {cause.id} is taken by "
                    + (f"{other / cause.id}.yaml" if other else "a cause of triage's own"),
                    hint=hint("mv", f"{folder / cause.id}.yaml", f"{folder / cause.id}-2.yaml"),
                )
            known[cause.id] = cause
            origin[cause.id] = folder
    return tuple(known.values())


def one_cause(name: str, known: Sequence[Cause]) -> Cause:
    """The cause of that id; UsageError with the nearest one if there is none."""
    for cause in known:
        if cause.id == name:
            return cause
    import difflib

    near = difflib.get_close_matches(name, [c.id for c in known], 1)
    say = f"triage explain {near[0]}" if near else "triage causes list"
    raise UsageError(f"there is no cause {name!r}", hint=say)
