"""`triage bisect`: find by launching which flags make a launch fail."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from triage.cli import console
from triage.core.hide import hide_problem
from triage.errors import Inconclusive, UsageError, hint

if TYPE_CHECKING:
    from triage.core.search.pace import Outlook
    from triage.core.search.recommend import Recommendation
    from triage.core.trials import Done, Entry
    from triage.recipe import Recipe
    from triage.session.search import Search, Talk
    from triage.store import Journal, SessionFolder

_FILE = click.Path(path_type=Path)


@click.command(name="bisect")
@click.argument("recipe_file", metavar="[RECIPE]", required=False, type=_FILE)
@click.option("--good", type=_FILE, metavar="CMDFILE", help="A server command that starts.")
@click.option("--bad", type=_FILE, metavar="CMDFILE", help="The one that does not.")
@click.option("--save", type=_FILE, help="Write the recipe that --good and --bad make, and stop.")
@click.option("--session", "folder", type=_FILE, help="Keep the session in this folder.")
@click.option("--fresh", is_flag=True, help="Start anew, even if a session could be resumed.")
@click.option("--trials", type=click.IntRange(1, 10_000), help="Launch at most this often.")
@click.option("--hours", type=console.Above0(10_000), help="Launch for at most so long.")
@click.option(
    "--goal",
    type=click.Choice(["best", "first", "all"]),
    help="The best configuration, one failing set, or all of them.",
)
@click.option(
    "--audit", is_flag=True, help="Also launch what may start if one flag repairs a failure."
)
@click.option(
    "--rungs",
    metavar="LIST",
    help="What may answer a trial: static,resolution,twin,full.",
)
@click.option(
    "--target",
    type=click.Choice(["process", "systemd", "container", "slurm"]),
    help="Where each launch is made.",
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 4),
    help="Launch on so many nodes at the same time, each trial by itself.",
)
@click.option("--engine", type=click.Choice(["sglang", "replay"]), help="What is launched.")
@click.option("--landscape", type=_FILE, help="What the simulated engine plays.")
@click.option("--speed", type=console.Above0(1e6), help="How much faster it is than life.")
@console.take_over_option
@click.option("--no-doctor", is_flag=True, help="Search even if the machine has faults.")
@click.option("--dry-run", is_flag=True, help="Show what would be launched, launch nothing.")
@console.output_options
def command(
    recipe_file: Path | None,
    *,
    good: Path | None,
    bad: Path | None,
    save: Path | None,
    folder: Path | None,
    fresh: bool,
    trials: int | None,
    hours: float | None,
    goal: str | None,
    audit: bool,
    rungs: str | None,
    target: str | None,
    take_over: tuple[str, ...],
    nodes: int | None,
    engine: str | None,
    landscape: Path | None,
    speed: float | None,
    no_doctor: bool,
    dry_run: bool,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Find by launching which flags make a launch fail, and what starts.

    RECIPE states the baseline and what is wanted on top of it; or give a
    command that works and one that does not, each as a script, a one-line
    command, a systemd unit or an SGLang --config YAML.

    What is launched is a process on this machine, or with --target a systemd
    unit, a container or a Slurm job. A docker run line is launched as a
    container. Your own units are never touched, but for one that --take-over
    names: it is stopped meanwhile and runs again at every end.

    The same command goes on with a session that was interrupted, and so does
    triage bisect --session FOLDER.
    """
    from triage.session.prepare import prepare
    from triage.session.stored import reopen, reveal

    stored = None
    if recipe_file is None and good is None and bad is None and folder is not None:
        session, _, hidden = reopen(folder)
        stored = reveal(session, hidden)
    search = prepare(
        recipe_file, stored=stored, good=good, bad=bad, trials=trials, hours=hours,
        engine=engine, landscape=landscape, speed=speed, goal=goal, audit=audit, rungs=rungs,
        target=target, nodes=nodes,
    )  # fmt: skip
    for note in dict.fromkeys(search.recipe.notes):
        console.talk(f"note: {note}")
    if save is not None:
        return _save(search.recipe, save)
    if dry_run:
        if as_json:
            raise UsageError("a dry run is shown as text only", hint="triage bisect --dry-run ...")
        return _dry_run(search)
    console.take_over(take_over)
    return _bisect(
        search, folder, fresh=fresh, no_doctor=no_doctor, as_json=as_json, color=color,
        exit_zero=exit_zero,
    )  # fmt: skip


def _save(recipe: Recipe, target: Path) -> int:
    from triage.recipe import dump_recipe

    if target.exists():
        raise UsageError(f"{target} exists already", hint=hint("mv", target, f"{target}.old"))
    target.touch(mode=0o600)  # it launches, so it holds what the commands hold, keys too
    target.write_text(dump_recipe(recipe), encoding="utf-8")
    console.talk(f"recipe: {target}")
    return 0


def _dry_run(search: Search) -> int:
    """The launches that would be made, as a tree and as commands; nothing is launched."""
    from triage.core.config import argv
    from triage.core.search.subsets import distinct, heaviest
    from triage.core.search.tree import decision_lines
    from triage.render.session_text import pasted
    from triage.session.places import shown_before

    problem, setup = hide_problem(search.recipe.problem), search.setup
    console.answer(f"{_Forecast(search, []).first()}\nNothing is launched now.\n")
    _foresee(search)
    console.answer("\n".join(decision_lines(problem)))
    if search.recipe.at_once > 1:
        console.answer(
            f"\nWith {search.recipe.at_once} launches at the same time each is chosen beside those "
            "in flight."
        )
    wanted = heaviest(distinct(problem)) or frozenset()
    whole = (
        "All that is wanted" if wanted == distinct(problem).keys() else "The most that is allowed"
    )
    for name, keys in (("The baseline", frozenset[str]()), (whole, wanted)):
        words = [*shown_before(setup.place), *setup.program, *argv(problem.config(keys))]
        console.answer(f"\n{name}, as it would be launched:\n{pasted(words)}")
    return 0


class _Forecast:
    """What a search still takes, as its journal grows; launches, and minutes where known."""

    def __init__(self, search: Search, entries: Sequence[Entry], own: Path | None = None) -> None:
        from triage.session.pace import known_before

        self.problem, self.entries = search.recipe.problem, entries
        self.nodes = search.recipe.at_once
        self.before = known_before(search, own)

    def now(self) -> Outlook:
        """After the entries that there are by now."""
        from triage.core.search.pace import filled, outlook, pace_of

        pace = filled(pace_of(self.entries, "as in this search so far"), self.before)
        return outlook(self.problem, self.entries, pace, self.nodes)

    def first(self) -> str:
        """The forecast in a line, before anything is launched or when a search goes on."""
        from triage.core.search.pace import filled, pace_of, span

        pace = filled(pace_of(self.entries, "as in this search so far"), self.before)
        ahead = self.now()
        more = " more" if self.entries else ""
        said = f"forecast: {ahead.fewest} to {ahead.most}{more} launches"
        if ahead.fewest == ahead.most:
            said = f"forecast: {ahead.most}{more} launch{'' if ahead.most == 1 else 'es'}"
        at_once = f" on {self.nodes} nodes" if self.nodes > 1 else ""
        if ahead.minutes is None:
            return f"{said}{at_once}; how long one takes is not known yet"
        low, high = (span(minutes) for minutes in ahead.minutes)
        return f"{said}{at_once}, {low if low == high else f'{low} to {high}'} ({pace.say()})"


def _bisect(
    search: Search,
    folder: Path | None,
    *,
    fresh: bool,
    no_doctor: bool,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    from triage.render.search_documents import recommendation_document
    from triage.render.session_text import recommendation_text
    from triage.session.search import bisect
    from triage.session.stored import open_session

    session, journal = open_session(search, folder, fresh=fresh)
    ahead = _Forecast(search, journal.entries, session.path)
    _announce(search, session, ahead)
    if not no_doctor and session.facts.get("ended") != "found":
        _examine(search, session)
    with _talk(search, journal, ahead, color) as talk:
        done, found = bisect(search, session, journal, talk)
    console.talk("")
    if as_json:
        console.document(recommendation_document(found))
    elif found.config is not None and done.reason != "wanted-starts":
        console.answer(recommendation_text(found, hide_problem(search.recipe.problem)))
    return console.code(
        _ended(done, found, session, journal, search, as_json=as_json), exit_zero=exit_zero
    )


def _announce(search: Search, session: SessionFolder, ahead: _Forecast) -> None:
    """Where the session lies, before anything that takes long, and what it will cost."""
    simulated = " (simulated)" if search.replay else ""
    console.talk(f"session: {session.path}{simulated}")
    if session.facts.get("ended") == "found":
        console.talk("this search has its answer; --fresh launches anew")
        return
    if ahead.entries:
        count = len(ahead.entries)
        console.talk(f"resumed with {count} finished trial{'s' if count != 1 else ''}")
    console.talk(ahead.first())
    if not ahead.entries:
        _foresee(search)


def _foresee(search: Search) -> None:
    """What the engine on disk tells of the wanted configuration, before anything is launched."""
    from triage.session.inspecting import foreseen

    for line in foreseen(search):
        console.talk(f"foreseen: {line}")


def _examine(search: Search, session: SessionFolder) -> None:
    """Look at the machine before the first launch; its faults are no work for a search.

    Raises:
        HostError: the machine is at fault.
    """
    from triage.render.doctor_documents import finding_document, machine_document
    from triage.render.doctor_text import finding_line
    from triage.session.doctor import before_search, refuse

    found = before_search(search)
    session.note(
        machine=machine_document(found.facts),
        findings=[finding_document(finding) for finding in found.findings],
    )
    for finding in found.findings:
        if finding.severity != "note":
            console.talk(finding_line(finding))
    refuse(found)


@contextmanager
def _talk(search: Search, journal: Journal, ahead: _Forecast, color: str) -> Iterator[Talk]:
    """One line a trial; in a terminal also a table of the trials and what goes on meanwhile."""
    import sys

    from triage.cli.live import Screen
    from triage.core.trials import Seen, Trial
    from triage.render.session_text import trial_event
    from triage.session.search import Talk

    problem = hide_problem(search.recipe.problem)
    on = console.coloured(color, stream="stderr")
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with Screen(problem, journal.entries, ahead.now, colour=on) as screen:
            yield Talk(
                starting=screen.starting,
                finished=screen.finished,
                event=screen.event,
                doing=screen.doing,
                note=screen.event,
            )
        return
    styles = {Seen.STARTS: "good", Seen.FAILS: "error", Seen.UNRESOLVED: "dim", Seen.PASSES: "dim"}

    def starting(number: int, trial: Trial) -> None:
        """A line is written once the answer is there."""

    def finished(entry: Entry) -> None:
        console.talk(trial_event(entry, ahead.now(), problem), styles[entry.seen], on=on)

    def note(text: str) -> None:
        console.talk(f"note: {text}")

    def event(text: str) -> None:
        """Where lines stay, only answers are lines."""

    yield Talk(starting=starting, finished=finished, event=event, note=note)


def _ended(
    done: Done,
    found: Recommendation,
    session: SessionFolder,
    journal: Journal,
    search: Search,
    *,
    as_json: bool,
) -> int:
    """Say what comes next, and give the exit code of how the search ended."""
    from triage.core.trials import Seen

    path = session.path
    match done.reason:
        case "found":
            console.talk(f"next: {hint('triage', 'confirm', path)}")
            return 0
        case "wanted-starts":
            raise Inconclusive(
                "the configuration that was said to fail starts: there is nothing to bisect",
                hint=hint("triage", "confirm", path),
            )
        case "resolved":
            from triage.core.search.rungs import spent
            from triage.render.session_text import sets_text, spent_text

            if found.sets and not as_json:
                console.answer(sets_text(hide_problem(search.recipe.problem), found.sets))
            console.talk(spent_text(spent(journal.entries)))
            console.talk(f"{done.say}\n  try: {hint('triage', 'bisect', '--session', path)}")
            return 12
        case "baseline-fails":
            last = [entry for entry in journal.entries if not entry.items][-1]
            log = path / f"trials/{last.number:03d}/server.log"
            console.talk(
                f"error: the configuration that was said to start fails: "
                f"{last.cause or last.signature}\n  try: {hint('triage', 'classify', log)}"
            )
            return 10 if last.cause else 11
        case "budget":
            more = ["--trials", 2 * len(journal.entries)]
            if len(journal.entries) < search.recipe.problem.budget_trials:
                more = ["--hours", f"{2 * sum(e.seconds for e in journal.entries) / 3600:.2g}"]
            console.talk(f"{done.say}\n  try: {hint('triage', 'bisect', '--session', path, *more)}")
            return 12
        case _:
            lost = [e for e in journal.entries if e.seen is Seen.UNRESOLVED]
            log = path / (f"trials/{lost[-1].number:03d}/server.log" if lost else "trials")
            console.talk(f"{done.say}\n  try: {hint('triage', 'classify', log)}")
            return 13 if found.config is None else 12
