"""What is known about failing startups: cause files, flag tables, recorded cases.

In:  package data (`causes/`, `flags/`) or a folder that the user names.
Out: values of `triage.core`.
Not: deciding which cause a log shows (triage.core.log.diagnose).

`load_causes` and `load_flag_table` read generated JSON, so that naming a cause
costs neither a YAML parser nor a validator; the rest imports them when called.
"""

from __future__ import annotations

from triage.core.causes import Cause
from triage.core.typed import TYPE_CHECKING
from triage.knowledge.stored import load_causes, load_flag_table

if TYPE_CHECKING:
    from pathlib import Path

    from triage.knowledge.cases import Case

__all__ = ["check_causes", "load_cases", "load_causes", "load_causes_from", "load_flag_table"]


def load_causes_from(folder: Path) -> tuple[Cause, ...]:
    """The causes of a folder of YAML files, by id; raises UsageError with file and line."""
    from triage.knowledge.loader import load_causes_from as load  # noqa: PLC0415

    return load(folder)


def check_causes(folder: Path) -> tuple[str, ...]:
    """What is wrong with the cause files of a folder, one sentence each; empty if all is well."""
    from triage.knowledge.check import check_causes as check  # noqa: PLC0415

    return check(folder)


def load_cases(folder: Path) -> tuple[Case, ...]:
    """The recorded cases of a folder, by name; raises UsageError with file and line."""
    from triage.knowledge.cases import load_cases as load  # noqa: PLC0415

    return load(folder)
