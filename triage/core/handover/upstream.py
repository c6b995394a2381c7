"""The report to the engine's authors: what fails, the nearest that starts, what was ruled out.

In:  Failure: a diagnosis with its log's lines and, of a search, the pair of launches.
Out: a document whose sections are the fields of the engine's form; UpstreamReport.
Not: reading logs (triage.session.issue) or Markdown (triage.render.markdown).

Source: the bug forms of sgl-project/sglang (1-bug-report.yml) and vllm-project/vllm
(400-bug-report.yml): the names of their fields, as of 2026.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from triage.core.config import Config
from triage.core.diagnosis import Diagnosis
from triage.core.handover.document import (
    Block,
    Bullets,
    Code,
    Paragraph,
    Runbook,
    Section,
    Table,
)
from triage.core.handover.summary import ranks_of
from triage.core.search.journal import signature
from triage.core.trials import Entry, Problem, Seen
from triage.core.units import format_seconds
from triage.core.wording import braces

MOST_CHARACTERS = 65_536  # of an issue's text on the site
# Lines of traceback, rows of trials, characters of a line: cut further until it fits.
CUTS = ((400, 60, 1000), (120, 40, 500), (60, 20, 300), (30, 10, 200), (12, 5, 160))


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form of one engine's authors: address, mark of the title, names of its fields."""

    engine: str
    address: str
    title: str
    environment: str
    bug: str
    reproduction: str  # "" where the form has no field of its own for it
    check: str  # the command whose output the form asks for
    before: str


SGLANG = Form(
    engine="sglang",
    address="https://github.com/sgl-project/sglang/issues/new?template=1-bug-report.yml",
    title="[Bug] ",
    environment="Environment",
    bug="Describe the bug",
    reproduction="Reproduction",
    check="python3 -m sglang.check_env",
    before="Checklist",
)
VLLM = Form(
    engine="vllm",
    address="https://github.com/vllm-project/vllm/issues/new?template=400-bug-report.yml",
    title="[Bug]: ",
    environment="Your current environment",
    bug="Describe the bug",
    reproduction="",
    check="python collect_env.py",
    before="Before submitting a new issue...",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A log to be attached; `what` says whose it is, `size` counts bytes."""

    file: str
    what: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two launches that differ in as little as possible: one starts, the other fails.

    `only` names what the failing one has and the other has not, and the other way round.
    """

    starts: Entry
    fails: Entry
    only: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """All that a report is made of; texts as they are, not redacted yet.

    `command` turns a configuration into what is pasted into a shell. `traceback` are the
    root rank's lines, without what other programs wrapped around them.
    """

    diagnosis: Diagnosis
    failing: str
    starting: str = ""
    pair: Pair | None = None
    problem: Problem | None = None
    journal: tuple[Entry, ...] = ()
    traceback: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    attachments: tuple[Attachment, ...] = ()
    related: tuple[str, ...] = ()
    simulated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamReport:
    """The finished text; `cut` says whether something was left out so that it fits."""

    form: Form
    document: Runbook
    text: str
    cut: bool
    attachments: tuple[Attachment, ...]
    simulated: bool


def form_of(told: Diagnosis) -> Form:
    """The form of the engine that printed the log, or else of the one that its failure names."""
    if told.engine in ("vllm", "sglang") and (told.engine_version or told.engine == "vllm"):
        return VLLM if told.engine == "vllm" else SGLANG
    frames = told.traceback.frames if told.traceback else ()
    named = [told.root.text if told.root else "", *(f.file for f in frames)]
    vllm = any("vllm" in text for text in named) and not any("sglang" in text for text in named)
    return VLLM if vllm else SGLANG


def nearest_pair(journal: Sequence[Entry], failure: str) -> Pair | None:
    """The launch with this failure and the one that started whose items differ least.

    Recorded launches go before assumed ones, and fewer items before more.
    """
    pairs = [
        Pair(starts=good, fails=bad, only=good.items ^ bad.items)
        for bad in journal
        if bad.seen is Seen.FAILS and signature(bad) == failure
        for good in journal
        if good.seen is Seen.STARTS
    ]
    return min(
        pairs,
        key=lambda p: (
            sum(e.provenance == "assumed" for e in (p.starts, p.fails)),
            len(p.only),
            len(p.fails.items),
            p.fails.number,
        ),
        default=None,
    )


def issue_document(found: Failure, cut: int = 0) -> Runbook:
    """The report; `cut` is how far it is cut down, an index of CUTS."""
    form = form_of(found.diagnosis)
    lines, rows, width = CUTS[cut]
    bug = [*_bug(found), *_trace(found, lines, width), *_ruled_out(found, rows)]
    reproduction = list(_reproduction(found, form))
    environment = list(_environment(found, form))
    before = list(_before(found))
    files = list(_files(found))
    parts: tuple[tuple[str, list[Block]], ...]
    if form.reproduction:
        parts = (
            (form.before, before),
            (form.bug, bug),
            (form.reproduction, reproduction),
            (form.environment, environment),
            ("Attachments", files),
        )
    else:
        parts = (
            (form.environment, environment),
            (form.bug, [*bug, *reproduction]),
            (form.before, before),
            ("Attachments", files),
        )
    mark = " (simulated)" if found.simulated else ""
    return Runbook(
        title=f"{form.title}{_title(found)}{mark}",
        sections=tuple(Section(name, tuple(blocks)) for name, blocks in parts if blocks),
        simulated=found.simulated,
    )


def _title(found: Failure) -> str:
    told = found.diagnosis
    what = told.title.rstrip(".") or (told.traceback.exception if told.traceback else "")
    if not what:
        what = "The server does not start"
    at = f" in {told.phase}" if told.phase != "unknown" else ""
    return f"{what}{at}{_with(found)}"


def _with(found: Failure) -> str:
    if found.pair is None or found.problem is None or not found.pair.only:
        return ""
    return f" with {braces(found.pair.fails.items, found.problem).strip('{}')}"


def _bug(found: Failure) -> Iterable[Block]:
    told = found.diagnosis
    if found.simulated:
        yield Paragraph(
            "This comes from the simulated engine. It is an example, and must not be filed."
        )
    version = f" {told.engine_version}" if told.engine_version else ""
    name = {"sglang": "SGLang", "vllm": "vLLM"}.get(told.engine, "The server")
    where = f" in phase {told.phase}" if told.phase != "unknown" else ""
    ranks = f", on {ranks_of(told)}" if told.ranks else ""
    what = {"hung": "comes to a halt", "interrupted": "was interrupted"}.get(told.outcome, "fails")
    yield Paragraph(f"{name}{version} {what} in startup{where}{ranks}.")
    if told.root is not None and told.ranks == ("all",):
        yield Paragraph(f"The first rank that failed is {told.root.rank}.")
    pair = found.pair
    if pair is not None and found.problem is not None:
        only = braces(pair.only, found.problem)
        yield Paragraph(
            f"A launch that differs in nothing but {only} starts."
            if len(pair.only) == 1
            else f"The nearest launch that starts differs in {only}."
        )
    if told.cause:
        yield Paragraph(
            f"It is taken for {told.cause} ({told.confidence} confidence): {told.title}"
        )
    elif told.fingerprint:
        yield Paragraph(f"No cause is known for it; fingerprint {told.fingerprint}.")


def _trace(found: Failure, most: int, width: int) -> Iterable[Block]:
    told = found.diagnosis
    if not found.traceback:
        return
    rank = told.root.rank if told.root else "main"
    at = f" in phase {told.phase}" if told.phase != "unknown" else ""
    what = "Traceback" if told.traceback is not None else "Last lines"
    yield Paragraph(f"{what} of the first failing rank, {rank},{at}:")
    yield Code("\n".join(_shortened(found.traceback, most, width)))
    noise = len(told.cascade) + len(told.teardown)
    if noise:
        yield Paragraph(
            f"{noise} further error lines are consequences or the shutdown, from line "
            f"{min((*told.cascade, *told.teardown))} of the log on."
        )
    if told.decoys:
        yield Paragraph("Printed beside it, and not the reason:")
        yield Bullets(tuple(f"line {d.line}: {d.why}" for d in told.decoys[:6]))


def _shortened(lines: Sequence[str], most: int, width: int) -> list[str]:
    """The first and last lines, the last ones mostly: they say what was raised."""
    cut = [line if len(line) <= width else f"{line[:width]} ..." for line in lines]
    if len(cut) <= most:
        return cut
    head = most // 4
    left = len(cut) - most
    return [*cut[:head], f"... {left} lines left out ...", *cut[len(cut) - (most - head) :]]


def _ruled_out(found: Failure, most: int) -> Iterable[Block]:
    problem, told = found.problem, found.diagnosis
    if problem is None or not found.journal:
        return
    rows = []
    for entry in sorted(found.journal, key=lambda e: e.number)[:most]:
        what = {
            Seen.STARTS: "starts",
            Seen.FAILS: "this failure"
            if signature(entry) == told.signature
            else f"another failure: {entry.title or signature(entry)}",
            Seen.UNRESOLVED: f"unresolved: {entry.reason}",
            Seen.PASSES: "accepted by the checks before any process, not launched",
        }[entry.seen]
        assumed = ", assumed" if entry.provenance == "assumed" else ""
        items = braces(entry.items, problem) if entry.items else "nothing"
        rows.append((items, what + assumed, entry.phase, format_seconds(entry.seconds)))
    yield Paragraph("What was tried, on top of a configuration that starts:")
    yield Table(("with", "outcome", "phase", "after"), tuple(rows))
    cleared = [
        item.key
        for item in problem.items
        if any(
            e.seen is Seen.STARTS and item.key in e.items and e.provenance != "assumed"
            for e in found.journal
        )
    ]
    if cleared:
        yield Paragraph(
            f"Ruled out as the reason on its own, because a launch with it starts: "
            f"{', '.join(cleared)}."
        )
    if len(found.journal) > most:
        yield Paragraph(f"{len(found.journal) - most} further trials are left out here.")


def _reproduction(found: Failure, form: Form) -> Iterable[Block]:
    yield Paragraph("Fails:")
    yield Code(found.failing, "sh")
    if found.starting:
        yield Paragraph("Starts:")
        yield Code(found.starting, "sh")
    else:
        yield Paragraph(
            "A configuration that starts is not known; triage bisect --good FILE --bad FILE finds "
            "the nearest one."
        )
    model = found.diagnosis.config.get("model-path") or found.diagnosis.config.get("model")
    if isinstance(model, str):
        yield Paragraph(f"Model: {model}")


def _environment(found: Failure, form: Form) -> Iterable[Block]:
    yield Paragraph(f"The form asks for the output of {form.check}; put it here:")
    yield Code(f"$ {form.check}\n")
    if found.environment:
        yield Paragraph("What the log tells:")
        yield Table(("what", "value"), found.environment)


def _before(found: Failure) -> Iterable[Block]:
    """What the form asks whoever files it to have done; nobody can tick it for them."""
    steps = [
        "Search the form's own list of issues for the last line of the traceback.",
        "Try the latest release: the report is about "
        f"{found.diagnosis.engine_version or 'a version that the log does not print'}.",
        "Read the text once more for names that must not leave your site.",
    ]
    yield Paragraph("To be done by whoever files this, and then to be taken out:")
    yield Bullets(tuple(steps))
    if found.related:
        yield Paragraph("Possibly the same, to be read first:")
        yield Bullets(found.related)


def _files(found: Failure) -> Iterable[Block]:
    if found.attachments:
        yield Table(
            ("file", "what", "bytes", "SHA-256"),
            tuple((a.file, a.what, str(a.size), a.sha256[:16]) for a in found.attachments),
        )


def shown_command(program: Sequence[str], config: Config) -> str:
    """A command to paste: variables in front, then a flag a line."""
    from shlex import join, quote  # noqa: PLC0415  with its only use

    from triage.core.config import words  # noqa: PLC0415

    env = [f"{name}={quote(value)}" for name, value in config.env]
    flags = [join(words(flag)) for flag in config.flags]
    return " \\\n  ".join([" ".join([*env, join(program)]), *flags])
