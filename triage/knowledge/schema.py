"""What one cause file may hold, checked when it is read.

In:  the mapping of a YAML file (triage.yamlfile). Out: a Cause of the core.
Not: whether the patterns are good (check.py).

A file may leave out every key but `id`, `title`, `role` and `patterns`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from triage.core.causes import Cause, Disposition, Origin, Remedy, Role, Severity

Text = Annotated[str, Field(min_length=1)]
# A class of the public list has an underscore in its name; it keeps it.
Id = Annotated[str, Field(pattern=r"^[a-z0-9]+([-_][a-z0-9]+)*$")]
Scalar = str | bool | int | float


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ChangesFile(_Strict):
    """The edits of a remedy; values may hold placeholders (triage.core.log.compute)."""

    set: dict[str, Scalar] = {}
    unset: tuple[Text, ...] = ()
    env: dict[str, Scalar] = {}
    unset_env: tuple[Text, ...] = ()


class SpanFile(_Strict):
    """Values of a flag among which one that works may be searched; `start` is tried first."""

    flag: Text
    start: Scalar
    end: Scalar
    step: Scalar

    def words(self) -> tuple[str, ...]:
        """Flag, start, end and step as text."""
        return (self.flag, str(self.start), str(self.end), str(self.step))


class RemedyFile(_Strict):
    """A way out, what it costs, and who says that it works."""

    say: Text
    changes: ChangesFile = ChangesFile()
    needs: tuple[Text, ...] = ()
    span: SpanFile | None = None
    probe: bool = False
    weight: float | int = 0
    disposition: Disposition
    cost: Text
    evidence: Literal[
        "maintainer-confirmed", "user-confirmed", "program-output", "suggested", "inferred"
    ]

    def remedy(self) -> Remedy:
        """The remedy as the core knows it; numbers become the words of a command line."""
        return Remedy(
            say=self.say,
            set_flags=tuple((flag, _word(value)) for flag, value in self.changes.set.items()),
            unset=self.changes.unset,
            set_env=tuple((name, str(value)) for name, value in self.changes.env.items()),
            unset_env=self.changes.unset_env,
            needs=self.needs,
            span=self.span.words() if self.span else (),
            probe=self.probe,
            weight=float(self.weight),
            disposition=self.disposition,
            cost=self.cost,
            evidence=self.evidence,
        )


class OriginFile(_Strict):
    """What may bring the cause about, how that is known, and what would show it."""

    say: Text
    basis: Literal["report", "code", "hypothesis"]
    look: str = ""
    sources: tuple[Text, ...] = ()

    def origin(self) -> Origin:
        """The same as the core knows it; folded text loses its line ends."""
        return Origin(
            say=_line(self.say), basis=self.basis, look=_line(self.look), sources=self.sources
        )


class CulpritsFile(_Strict):
    """Flags and variables that the cause makes suspect, in their canonical names."""

    flags: tuple[Text, ...] = ()
    env: tuple[Text, ...] = ()


class CauseFile(_Strict):
    """One file of `causes/`. `fork_flags` are flags that no released SGLang has."""

    id: Id
    title: Text
    means: str = ""
    role: Role
    severity: Severity = Severity.SUSPECT
    phases: tuple[Text, ...] = ()
    patterns: tuple[Text, ...] = Field(min_length=1)
    frames: tuple[Text, ...] = ()
    context: tuple[Text, ...] = ()
    absent: tuple[Text, ...] = ()
    hang: bool = False
    transient: bool = False
    yields_to: tuple[Id, ...] = ()
    yields_to_kernels: bool = False
    general: bool = False
    explains: tuple[Id, ...] = ()
    culprits: CulpritsFile = CulpritsFile()
    group_by: tuple[Text, ...] = ()
    confused_with: tuple[Id, ...] = ()
    probe: Text | tuple[Text, ...] = ()
    decoys: tuple[Text, ...] = ()
    remedies: tuple[RemedyFile, ...] = ()
    origins: tuple[OriginFile, ...] = ()
    discriminator: str = ""
    escalate: str = ""
    fork_flags: tuple[Text, ...] = ()
    examples: tuple[Text, ...] = Field(min_length=1)
    counter_examples: tuple[Text, ...] = ()
    sources: tuple[Text, ...] = ()

    def cause(self) -> Cause:
        """The cause as the core knows it; folded text loses its line ends."""
        return Cause(
            id=self.id,
            title=self.title,
            means=_line(self.means),
            role=self.role,
            severity=self.severity,
            phases=self.phases,
            patterns=self.patterns,
            frames=self.frames,
            context=self.context,
            absent=self.absent,
            hang=self.hang,
            transient=self.transient,
            yields_to=self.yields_to,
            yields_to_kernels=self.yields_to_kernels,
            general=self.general,
            explains=self.explains,
            culprit_flags=self.culprits.flags,
            culprit_env=self.culprits.env,
            group_by=self.group_by,
            confused_with=self.confused_with,
            probe=(self.probe,) if isinstance(self.probe, str) else self.probe,
            decoys=self.decoys,
            remedies=tuple(remedy.remedy() for remedy in self.remedies),
            origins=tuple(origin.origin() for origin in self.origins),
            discriminator=_line(self.discriminator),
            escalate=_line(self.escalate),
            examples=self.examples,
            counter_examples=self.counter_examples,
            sources=self.sources,
        )


def _line(text: str) -> str:
    return " ".join(text.split())


def _word(value: Scalar) -> str | bool:
    return value if isinstance(value, bool) else str(value)
