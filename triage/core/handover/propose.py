"""Ways out of a failure, ranked: what to change of the configuration, and what a person must do.

In:  a diagnosis, the configuration that failed, what is known of engine and machine.
Out: Proposals: each option with its resulting config; what the facts rule out, and why.
Not: launching them (triage.session), or the order of launches after more failures (chain.py).

The order: what a launch here has shown, then what reports confirm, then what the engine's
message asks for, what somebody suggested, what only follows from the cause; within one
basis what costs nothing before what costs something before a step by hand; then the
weight of what is given up; then the size of the change; then the order of the knowledge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from triage.core.causes import Cause
from triage.core.config import (
    Change,
    Config,
    SetEnv,
    SetFlag,
    UnsetEnv,
    UnsetFlag,
    apply,
    diff,
)
from triage.core.diagnosis import Advice, Diagnosis
from triage.core.flags import FlagTable
from triage.core.handover.expected import misleads
from triage.core.handover.needs import Judged, Truth, judge
from triage.core.handover.proposals import (
    Basis,
    Disposition,
    Kind,
    Proposal,
    Proposals,
    RuledOut,
    Span,
)
from triage.core.handover.spelling import ambiguous, older, refused, vllm
from triage.core.log.suspects import advice as advice_of
from triage.core.regex import regex
from triage.core.wording import spell

_BASIS = {
    "maintainer-confirmed": Basis.REPORTED,
    "user-confirmed": Basis.REPORTED,
    "program-output": Basis.STATED,
    "suggested": Basis.SUGGESTED,
    "inferred": Basis.INFERRED,
}
GUESS = "a guess"  # the evidence of leaving out a suspect: nobody says that it helps
_RANK = {basis: rank for rank, basis in enumerate(Basis)}
_PREFERENCE = {disposition: rank for rank, disposition in enumerate(Disposition)}
_SPOKEN = 5  # characters; a shorter value stands in many a message by chance
_CHANGED_WEIGHT = 0.5  # of a flag that keeps its place and loses its value
# Without these there is no server of this model on this machine.
ESSENTIAL = frozenset(
    ("model-path", "tokenizer-path", "tp-size", "pp-size", "nnodes", "node-rank", "host", "port",
     "dist-init-addr", "served-model-name", "device", "load-format", "base-gpu-id")
)  # fmt: skip


def facts_of(diagnosis: Diagnosis) -> dict[str, str]:
    """What the diagnosis itself says, under the names that preconditions use."""
    facts = {"engine": diagnosis.engine, "phase": diagnosis.phase}
    if diagnosis.root is not None:
        more = diagnosis.traceback.message if diagnosis.traceback else ""
        facts["message"] = f"{diagnosis.root.text}\n{more}"
    if diagnosis.engine_version:
        facts["engine-version"] = diagnosis.engine_version
    if diagnosis.ranks_total:
        facts["ranks"] = str(diagnosis.ranks_total)
    return facts


def propose(
    diagnosis: Diagnosis,
    config: Config | None = None,
    *,
    cause: Cause | None = None,
    table: FlagTable | None = None,
    facts: Mapping[str, str] | None = None,
    fields: Collection[str] = (),
    weights: Mapping[str, float] | None = None,
    pinned: Collection[str] = (),
    tried: Collection[Config] = (),
) -> Proposals:
    """The options against one failure, best first, and what is ruled out with the fact.

    Args:
        diagnosis: Of the failed launch.
        config: What the user typed; without it, what the log says the engine had.
        cause: The knowledge of the diagnosed cause: with it, values are computed from `config`;
            without it, the remedies are those that the diagnosis made from the log alone.
        table: The flags of the engine.
        facts: More than the diagnosis tells: gpu, capability, gpus, ...; they win over it.
        fields: Names of the arguments that the engine printed, for older spellings.
        weights: How much each flag or `env:NAME` is wanted; 1 where it is not named.
        pinned: Flags that stay as they are.
        tried: Configurations that were launched already and did not come up.
    """
    remedies = _remedies(diagnosis, config, cause, table, facts or {})
    base = config if config is not None else _told(diagnosis, remedies)
    known = base if base.flags or base.env else None
    maker = _Maker(
        diagnosis=diagnosis,
        base=known,
        table=table,
        facts=facts_of(diagnosis) | dict(facts or {}),
        fields=frozenset(fields),
        weights=weights or {},
        pinned=frozenset(pinned),
        tried=frozenset(tried),
        env_known=config is not None,
        cause=cause if cause is not None and cause.id == diagnosis.cause else None,
    )
    values = known.flag_values() if known is not None else {}
    if table is not None and diagnosis.root is not None:
        for one in refused(diagnosis.root.text, values, table):
            maker.add(one)
        for one in ambiguous(diagnosis.root.text, values, table):
            maker.add(one)
    for one in remedies:
        maker.add(one)
    if not any(o.changes and not o.probe for o in maker.options):
        for one in _dropping(diagnosis, known):
            maker.add(one)
    return Proposals(
        cause=diagnosis.cause,
        signature=diagnosis.signature,
        title=diagnosis.title,
        phase=diagnosis.phase,
        config=known,
        options=ranked(maker.options),
        ruled_out=tuple(maker.ruled_out),
    )


def _remedies(
    diagnosis: Diagnosis,
    config: Config | None,
    cause: Cause | None,
    table: FlagTable | None,
    facts: Mapping[str, str],
) -> tuple[Advice, ...]:
    """The advice of the diagnosis, with values of what was typed and of the machine."""
    root = diagnosis.root
    if cause is None or cause.id != diagnosis.cause or root is None:
        return diagnosis.remedies
    if config is None and "gpus" not in facts:
        return diagnosis.remedies
    values = diagnosis.config.flag_values() | (config.flag_values() if config else {})
    message = root.text
    if diagnosis.traceback is not None:
        message = f"{message}\n{diagnosis.traceback.message}"
    captures = dict(facts) | captures_of(cause, message)
    return advice_of(cause, captures, message, Config.of(values), table)


def captures_of(cause: Cause, message: str) -> dict[str, str]:
    """What the cause's patterns capture in a message, from the first that matches on."""
    found: dict[str, str] = {}
    for pattern in cause.patterns:
        for line in message.split("\n"):
            if (match := regex(pattern).search(line)) is not None:
                known = {k: v for k, v in match.groupdict().items() if v is not None}
                found = known | found
    return found


def _told(diagnosis: Diagnosis, remedies: Sequence[Advice]) -> Config:
    """What the log tells of the command: also flags that no table knows, if a remedy drops them."""
    values = diagnosis.config.flag_values()
    printed = dict(diagnosis.effective)
    for one in remedies:
        for change in one.changes:
            if isinstance(change, UnsetFlag) and change.name in printed:
                text = printed[change.name]
                values.setdefault(change.name, True if text == "True" else text)
    return Config.of(values, diagnosis.config.env_values())


def ranked(options: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """The options in the order of this module; of two that make the same edits the first."""
    return tuple(_first_of_each(sorted(options, key=_place)))


def _first_of_each(options: Sequence[Proposal]) -> Iterator[Proposal]:
    seen: set[tuple[object, ...]] = set()
    for option in options:
        if option.key not in seen:
            seen.add(option.key)
            yield option


def _place(option: Proposal) -> tuple[object, ...]:
    # What rests on something that nothing here shows is no better than an inference.
    basis = Basis.INFERRED if option.unsure else option.basis
    return (
        option.probe,
        max(_RANK[option.basis], _RANK[basis]),
        option.evidence == GUESS,
        bool(option.unsure),
        not option.why,  # a remedy whose preconditions are met fits better than a general one
        # What must be thought of first is a step by hand, whatever it costs.
        _PREFERENCE[option.disposition if option.changes else Disposition.MANUAL],
        option.weight,
        option.size,
    )


class _Maker:
    """Collects the options of one failure."""

    def __init__(
        self,
        *,
        diagnosis: Diagnosis,
        base: Config | None,
        table: FlagTable | None,
        facts: Mapping[str, str],
        fields: frozenset[str],
        weights: Mapping[str, float],
        pinned: frozenset[str],
        tried: frozenset[Config],
        env_known: bool,
        cause: Cause | None,
    ) -> None:
        self.diagnosis = diagnosis
        self.base = base
        self.table = table
        self.facts = facts
        self.fields = fields
        self.weights = weights
        self.pinned = pinned
        self.tried = tried
        self.env_known = env_known
        self.cause = cause
        self.options: list[Proposal] = []
        self.ruled_out: list[RuledOut] = []

    def add(self, advice: Advice) -> None:
        """Makes an option of the advice, or rules it out."""
        judged = [judge(need, self.base, self.facts) for need in advice.needs]
        fact = next((j.fact for j in judged if j.truth is Truth.CONTRADICTED), "")
        changes, lost = self._translated(advice)
        fact = fact or lost or self._contradiction(changes)
        basis = _BASIS.get(advice.evidence, Basis.INFERRED)
        if not fact and not advice.probe and misleads(advice.changes, basis, self.cause):
            fact = "the engine prints this advice whatever the reason, and it does not fit here"
        if fact:
            self.ruled_out.append(RuledOut(say=advice.say, changes=advice.changes, fact=fact))
            return
        self.options.append(self._option(advice, changes, judged))

    def _translated(self, advice: Advice) -> tuple[tuple[Change, ...], str]:
        """The edits under the names of this engine; or why it cannot have them."""
        changes: list[Change] = []
        for change in advice.changes:
            values = self.base.flag_values() if self.base else {}
            own = older(change, self.fields, self.table, values)
            if own is None:
                return (), f"this engine has no --{change.name}: it printed no such argument"
            changes.append(own)
        if self.facts.get("engine") == "vllm":
            there = [vllm(change, self.table) for change in changes]
            for change, other in zip(changes, there, strict=True):
                if other is None:
                    return (), f"the engine is vLLM, which has no --{change.name}"
            return tuple(change for change in there if change is not None), ""
        return tuple(changes), ""

    def _contradiction(self, changes: Sequence[Change]) -> str:
        """Why these edits lead nowhere; "" if they may be made."""
        for change in changes:
            if isinstance(change, SetFlag | UnsetFlag) and change.name in self.pinned:
                return f"--{change.name} is pinned"
        if self.base is None or not changes:
            return ""
        after = apply(self.base, changes)
        if after == self.base:
            match changes[0]:
                case SetFlag() | SetEnv():
                    return f"the launch already has {spell(changes[0])}"
                case UnsetFlag(name):
                    return f"the launch does not set --{name}"
                case UnsetEnv(name) if self.env_known:
                    return f"the launch does not set {name}"
                case _:
                    return ""  # a log does not tell the environment
        if after in self.tried:
            return "it was launched here and did not come up"
        return ""

    def _option(
        self, advice: Advice, changes: tuple[Change, ...], judged: Sequence[Judged]
    ) -> Proposal:
        base = self.base
        config = apply(base, changes) if base is not None and changes else None
        if base is not None and config is not None and config != base:
            changes = diff(base, config)
        elif config == base:
            config = None  # of an environment that is not known
        given_up = tuple(_given_up(change, base) for change in changes)
        lost = tuple(name for name in given_up if name)
        return Proposal(
            say=advice.say,
            kind=kind_of(changes, base),
            basis=_BASIS.get(advice.evidence, Basis.INFERRED),
            changes=changes,
            config=config,
            disposition=Disposition(advice.disposition),
            cost=advice.cost,
            evidence=advice.evidence,
            given_up=lost,
            weight=advice.weight + self._weight(changes, lost),
            size=len(changes),
            span=_span(advice.span),
            why=", ".join(
                j.need for j in judged if j.truth is Truth.HOLDS and not j.need.startswith("no ")
            ),
            unsure=tuple(j.need for j in judged if j.truth is Truth.UNKNOWN),
            probe=advice.probe,
        )

    def _weight(self, changes: Sequence[Change], lost: Sequence[str]) -> float:
        changed = {_key(c) for c in changes if isinstance(c, SetFlag | SetEnv)}
        return sum(
            self.weights.get(name, 1.0) * (_CHANGED_WEIGHT if name in changed else 1.0)
            for name in lost
        )


def _key(change: Change) -> str:
    return f"env:{change.name}" if isinstance(change, SetEnv | UnsetEnv) else change.name


def _given_up(change: Change, base: Config | None) -> str:
    """The key of the setting whose value is lost; "" if nothing was set."""
    key = _key(change)
    if base is None:
        return key if isinstance(change, UnsetFlag | UnsetEnv) else ""
    had = base.env_values() if key.startswith("env:") else base.flag_values()
    return key if change.name in had else ""


def kind_of(changes: Sequence[Change], base: Config | None) -> Kind:
    """What the edits do to the command, in one word."""
    if not changes:
        return Kind.MANUAL
    flags = [c for c in changes if isinstance(c, SetFlag | UnsetFlag)]
    if not flags:
        return Kind.ENV
    had = base.flag_values() if base is not None else {}
    gone = any(isinstance(c, UnsetFlag) for c in flags)
    changed = any(isinstance(c, SetFlag) and c.name in had for c in flags)
    new = any(isinstance(c, SetFlag) and c.name not in had for c in flags)
    if gone and new:
        return Kind.REPLACE
    if gone:
        return Kind.DROP
    return Kind.CHANGE if changed else Kind.ADD


def _span(words: Sequence[str]) -> Span | None:
    if len(words) != 4:  # noqa: PLR2004  flag, start, end, step
        return None
    try:
        start, end, step = (float(word) for word in words[1:])
    except ValueError:
        return None
    return Span(flag=words[0], start=start, end=end, step=step) if step else None


def _dropping(diagnosis: Diagnosis, base: Config | None) -> Iterator[Advice]:
    """Without any better advice: to leave out each suspect, then what the message speaks of."""
    if base is None:
        return  # a message names flags that it asks for, too: only those that are set can go
    values = base.flag_values()
    for suspect in diagnosis.suspects:
        if suspect.flag in values and suspect.flag not in ESSENTIAL:
            yield replace(
                _DROP,
                say=f"Leave out --{suspect.flag}: {suspect.why}",
                changes=(UnsetFlag(suspect.flag),),
            )
    told = diagnosis.root.text if diagnosis.root is not None else ""
    for name, value in values.items():
        # A name or path that stands in the message: a file that is missing, a value unheard of.
        spoken = isinstance(value, str) and len(value) >= _SPOKEN and not value.isdecimal()
        if spoken and str(value) in told and name not in ESSENTIAL:
            yield replace(
                _DROP,
                say=f"Leave out --{name}: the message names its value",
                changes=(UnsetFlag(name),),
            )


_DROP = Advice(
    say="", changes=(), disposition="lossy", cost="what the flag was meant to do",
    evidence=GUESS,
)  # fmt: skip
