"""`pytest --triage DIR`: every recorded case is one test.

In:  the option; the case.yaml files below DIR. Out: pytest items.
Not: comparing (triage.session.check).

pytest imports this module in every run of a machine that has triage, so it imports nothing
but pytest until the option is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from triage.core.causes import Cause
    from triage.core.results import Result

_ROOTS: pytest.StashKey[tuple[Path, ...]] = pytest.StashKey()
_KNOWN: pytest.StashKey[Sequence[Cause]] = pytest.StashKey()
CASE = "case.yaml"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--triage DIR` and `--triage-knowledge DIR`, both repeatable."""
    group = parser.getgroup("triage", "recorded launch logs (sglang-triage)")
    group.addoption(
        "--triage",
        action="append",
        default=[],
        metavar="DIR",
        help="Test the cases (server.log and case.yaml) below DIR.",
    )
    group.addoption(
        "--triage-knowledge",
        action="append",
        default=[],
        metavar="DIR",
        help="Use the cause files of DIR too.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect the folders: alone if no path was given, else beside it."""
    folders: list[str] = config.getoption("triage")
    if not folders:
        return
    from triage.errors import TriageError
    from triage.session.check import case_files
    from triage.session.knowledge import causes

    roots = tuple((config.invocation_params.dir / folder).resolve() for folder in folders)
    own = [config.invocation_params.dir / name for name in config.getoption("triage_knowledge")]
    try:
        for root in roots:
            case_files(root)  # a folder without a case is a mistake, not a pass
        config.stash[_KNOWN] = causes(own)
    except TriageError as error:
        raise pytest.UsageError(f"{error.message}; try: {error.hint}") from None
    config.stash[_ROOTS] = roots
    named = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
    config.args = [*named, *(str(root) for root in roots)]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CaseFile | None:
    """The case of a case.yaml below one of the folders."""
    roots = parent.config.stash.get(_ROOTS, ())
    if file_path.name != CASE or not any(file_path.is_relative_to(root) for root in roots):
        return None
    return CaseFile.from_parent(parent, path=file_path)


class CaseFile(pytest.File):
    """A case.yaml; its one item is named after its folder."""

    def collect(self) -> Iterator[CaseItem]:
        """The one test."""
        yield CaseItem.from_parent(self, name=self.path.parent.name)


class CaseDiffers(Exception):  # noqa: N818  it names a result, not a fault
    """The log shows something else than its case expects."""


class CaseItem(pytest.Item):
    """The log of a case against what the case expects."""

    def runtest(self) -> None:
        """Fail where something differs; a known miss that does is an expected failure."""
        from triage.core.results import Status
        from triage.session.check import compare

        result = compare(self.path, self.config.stash[_KNOWN])
        match result.status:
            case Status.EXPECTED:
                return
            case Status.KNOWN_MISS:
                pytest.xfail(result.note or "known_miss in case.yaml")
            case _:
                raise CaseDiffers(_text(result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The differences; a traceback would only show triage."""
        if isinstance(excinfo.value, CaseDiffers):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the case stands."""
        return self.path, 0, f"case {self.name}"


def _text(result: Result) -> str:
    """The differences of a case as `triage check` prints them, without names of machines."""
    from triage.core.results import Comparison
    from triage.render.comparison import comparison_text
    from triage.session.reports import without_names

    shown = Comparison(folder="", results=without_names((result,)))
    return comparison_text(shown).partition("\n\n")[2]
