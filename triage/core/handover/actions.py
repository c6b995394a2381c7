"""The sections of a runbook that tell what to do, and how far to trust it.

In:  an Investigation. Out: the blocks of each section, without markup.
Not: the sections on what was found (runbook.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import unified_diff
from shlex import join as shell_join

from triage.core.config import UnsetFlag, argv
from triage.core.handover.document import Block, Bullets, Code, Paragraph, Table
from triage.core.handover.investigation import Investigation
from triage.core.handover.proof import checked, measured
from triage.core.log.compute import in_words
from triage.core.redact import MARKER
from triage.core.search.claims import Kind
from triage.core.search.recommend import Choice
from triage.core.trials import Seen
from triage.core.units import format_seconds
from triage.core.wording import spell_setting

LONG_LINE = 100  # characters; a longer one-line command is compared flag by flag


def change(found: Investigation) -> Iterable[Block]:
    """The settings of the proposal, the diff of the commands, and the new one to paste."""
    plan = found.recommendation
    if plan.config is None:
        yield Paragraph(plan.say)
        return
    rows = [
        *(_choice_row("keep", choice) for choice in plan.keep),
        *(_choice_row("drop", choice) for choice in plan.drop),
        *(_choice_row("change", choice) for choice in plan.change),
        *(_choice_row("add", choice) for choice in plan.add),
    ]
    yield Table(("what", "setting", "why"), tuple(rows))
    for old, name, said in (
        (found.base_command, "working", "the command that worked before"),
        (found.old_command, "wanted", "the wanted command"),
    ):
        compared = diff_commands(old, found.new_command, name)
        if old and found.new_command and compared:
            yield Paragraph(
                f"As a diff, from {said} to the proposed one (a long line is split at its flags):"
            )
            yield Code(compared, "diff")
    if found.new_command:
        where = f" (the launches ran in {found.cwd})" if found.cwd else ""
        yield Paragraph(f"To paste{where}:")
        if MARKER in found.new_command:
            yield Paragraph(
                f"{MARKER} stands for a secret that was hidden; put the value in its place."
            )
        yield Code(found.new_command.rstrip("\n"), found.command_language)
    else:
        yield Paragraph("The flags of the proposal, to paste:")
        yield Code(shell_join(argv(plan.config)), "sh")


def _choice_row(what: str, choice: Choice) -> tuple[str, ...]:
    return (what, spell_setting(choice.key, choice.value), choice.why)


def price(found: Investigation) -> Iterable[Block]:
    """What the proposal gives up, setting by setting, and who says so."""
    plan = found.recommendation
    given = [
        (w, c)
        for w, some in (("drop", plan.drop), ("change", plan.change), ("add", plan.add))
        for c in some
    ]
    if plan.config is None:
        return
    if not given:
        yield Paragraph("Nothing is given up: the proposal is what was wanted.")
        return
    yield Paragraph(
        f"{plan.weight_kept:g} of {plan.weight_wanted:g} of what was wanted is kept, by weight."
    )
    yield Table(
        ("what", "setting", "price"),
        tuple(
            (what, spell_setting(c.key, c.value), c.price or "nothing is known")
            for what, c in given
        ),
    )


def diff_commands(old: str, new: str, name: str = "wanted") -> str:
    """Unified diff of two commands, the old one called `name`; "" if they are equal.

    A long command on one line is first put on lines of one flag each, or the diff
    would show nothing but two long lines.
    """
    if max(map(len, (*old.splitlines(), *new.splitlines())), default=0) > LONG_LINE:
        old, new = _one_flag_a_line(old), _one_flag_a_line(new)
    lines = unified_diff(
        old.splitlines(), new.splitlines(), fromfile=name, tofile="proposed", lineterm=""
    )
    return "\n".join(lines)


def _one_flag_a_line(command: str) -> str:
    return re.sub(r"[ \t]+(?=--[A-Za-z])", "\n  ", command)


def proof(found: Investigation) -> Iterable[Block]:
    """The trial that started, and the confirmation if there is one."""
    plan, shown = found.recommendation, found.confirmation
    how = "simulated " if found.simulated else ""
    if plan.proof is not None:
        yield Paragraph(f"The proposal started in {how}trial {plan.proof}.")
    if shown is None:
        if plan.config is not None:
            yield Paragraph(
                "It is not confirmed: no launch of it has answered generations yet. To do that:"
            )
            yield Code(found.command("confirm"), "sh")
        return
    where = f" ({shown.folder})" if shown.folder else ""
    ready = "never" if shown.ready_s is None else f"after {format_seconds(shown.ready_s)}"
    if shown.confirmed:
        yield Paragraph(
            f"{'Simulated: the' if shown.simulated else 'The'} proposed configuration works: it "
            f"was launched{where}, was ready {ready}, and gave the same answer twice to each "
            "prompt at temperature 0."
        )
    else:
        reason = shown.reason or "the two answers at temperature 0 do not agree"
        yield Paragraph(f"Not confirmed{where}: {reason}. It was ready {ready}.")
    if shown.exchanges:
        yield Table(
            ("prompt", "first answer", "second answer", "agree"),
            tuple((e.prompt, *e.answers, "yes" if e.agree else "no") for e in shown.exchanges),
        )
    yield from checked(shown)


def undo(found: Investigation) -> Iterable[Block]:
    """The command to go back to, and the baseline's flags."""
    if found.recommendation.config is None:
        return
    if found.base_command:
        yield Paragraph(
            "Nothing but the command is changed. To go back to the one that worked before, "
            "restore it:"
        )
        yield Code(found.base_command.rstrip("\n"), found.command_language)
        return
    yield Paragraph(
        "Nothing but the command is changed. To go back to what was wanted, which is known to "
        "fail, restore it:"
        if found.recommendation.drop or found.recommendation.change
        else "Nothing but the command is changed. To go back, restore it:"
    )
    if found.old_command:
        yield Code(found.old_command.rstrip("\n"), found.command_language)
    else:
        yield Code(shell_join(argv(found.problem.config(found.problem.keys()))), "sh")
    if any(e.seen is Seen.STARTS and not e.items for e in found.journal):
        yield Paragraph("To go back to the baseline, which started, use these flags:")
        yield Code(shell_join(argv(found.problem.baseline)), "sh")


def not_shown(found: Investigation) -> Iterable[Block]:
    """What no launch here shows, with what would show it; what others report."""
    claims = [c.say for c in found.recommendation.claims if c.kind is Kind.NOT_SHOWN]
    general: list[str] = []
    if found.recommendation.config is not None:
        loads = measured(found.confirmation)
        general.append(
            f"Speed at other loads than {loads} requests at once, and with longer prompts and "
            "answers: a benchmark with those of the service would show it."
            if loads
            else "Speed: no launch here measured throughput or latency; a benchmark of the "
            "proposal at the concurrency that is asked for would show it."
        )
        if found.confirmation is None or not found.confirmation.confirmed:
            general.append("That the proposal answers requests: a confirmation would show it.")
        else:
            general.append(
                "That it holds for days: the load lasted minutes; a longer one would show it."
                if loads
                else "That it holds under load and for days: only single prompts were answered; a "
                "load test would show it."
            )
    general.append(
        "Other builds, models and machines: the sets hold for what was launched; the same search "
        "there would show theirs."
    )
    if found.doubts:
        yield Paragraph("Claimed by others, and not shown by what is known:")
        yield Table(
            ("claim", "verdict", "why", "what would show it"),
            tuple((d.claim, "not shown", d.why, d.would_show) for d in found.doubts),
        )
        yield Paragraph("Not shown by any launch here:")
    yield Bullets((*claims, *general))
    if found.reported:
        yield Paragraph("Reported by others, and neither measured nor checked here:")
        yield Bullets(found.reported)


def next_steps(found: Investigation) -> Iterable[Block]:
    """What to type next, and the remedies that nobody tried here."""
    steps: list[str] = []
    confirmed = found.confirmation is not None and found.confirmation.confirmed
    if found.recommendation.config is not None and not confirmed:
        steps.append(f"Confirm the proposal: {found.command('confirm')}")
    if found.recommendation.reason in {"budget", "unfinished"}:
        steps.append(
            f"Go on with the search, with a larger budget: {found.command('bisect', '--session')} "
            f"--trials {2 * max(len(found.journal), 1)}"
        )
    steps += _remedies(found)
    if steps:
        yield Bullets(tuple(dict.fromkeys(steps)))


def _remedies(found: Investigation) -> Sequence[str]:
    """Remedies of the causes of the failing sets, and of the diagnosis.

    What the proposal does already, dropping a flag, is no further step.
    """
    gone = {choice.key for choice in found.recommendation.drop}
    told = found.diagnosis
    steps: list[str] = []
    filled_in = None
    if told is not None and told.remedies:
        filled_in = told.cause
        steps += [
            _remedy(told.cause or "this failure", r.say, r.disposition, r.cost, r.evidence)
            for r in told.remedies
            if not (gone & {c.name for c in r.changes if isinstance(c, UnsetFlag)})
        ]
    by_id = {cause.id: cause for cause in found.causes}
    for name in dict.fromkeys(s.cause for s in found.recommendation.sets):
        if name in by_id and name != filled_in:
            steps += [
                _remedy(name, r.say, r.disposition.value, r.cost, r.evidence)
                for r in by_id[name].remedies
                if not gone & set(r.unset)
            ]
    return steps


def _remedy(cause: str, say: str, disposition: str, cost: str, evidence: str) -> str:
    """One remedy in a line; the placeholders of an unfilled one are said in words."""
    text = in_words(say).rstrip(".")
    price = f", costs: {cost}" if cost else ""
    basis = f", evidence: {evidence}" if evidence else ""
    return f"Suggested against {cause}: {text} ({disposition}{price}{basis})."
