"""Sessions between two commands: made, found again, and read back with their secrets.

In:  a Search, or the folder of one. Out: a SessionFolder, its Journal, its Search.
Not: launching (search.py) or the files' form (triage.store).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from triage.core.hide import hide_literals, hide_problem, is_hidden, secrets_of
from triage.core.redact import redact_env, redact_words
from triage.errors import HostError, UsageError, hint
from triage.recipe import Recipe, dump_recipe, load_recipe
from triage.session.logs import flag_table
from triage.session.prepare import prepare
from triage.session.search import Replay, Search
from triage.store import Journal, SessionFolder, find_session

JOURNAL, RECIPE = "journal.jsonl", "recipe.yaml"


def open_session(
    search: Search, folder: Path | None, *, fresh: bool
) -> tuple[SessionFolder, Journal]:
    """The session of this problem: the unfinished one if there is one, else a new one.

    Raises:
        UsageError: `folder` holds another search.
        HostError: it cannot be written, or another triage works in it.
    """
    digest = search.digest()
    found = folder if folder and (folder / "session.json").exists() else None
    if found is not None and fresh:
        raise UsageError(f"{found} holds a session already", hint=hint("ls", "-d", f"{found}-2"))
    if found is None and folder is None and not fresh:
        found = find_session(digest)
    if found is not None:
        session = SessionFolder.open(found)
        if session.facts["simulated"] and search.replay is None:
            raise UsageError(
                f"{found} is a session of the simulated engine",
                hint=hint("triage", "bisect", "--session", found),
            )
        if session.facts["digest"] != digest:
            raise UsageError(
                f"{found} investigates another problem ({session.facts['name']})",
                hint="triage bisect --help  # --session ANOTHER_FOLDER",
            )
        session.lock()
        # What does not change a verdict, such as a weight, is as it is wanted now.
        session.write(RECIPE, dump_recipe(_hidden(search.recipe)))
        session.note(**_told(search))
    else:
        session = _create(search, folder, digest)
        session.lock()
    return session, Journal(session.path / JOURNAL)


def _create(search: Search, folder: Path | None, digest: str) -> SessionFolder:
    """A new session; its recipe is there before session.json makes it one."""
    replay = search.replay
    facts = {
        "digest": digest,
        "name": search.recipe.name,
        "engine": "replay" if replay else search.recipe.engine,
        "simulated": replay is not None,
        "replay": {"landscape": str(replay.landscape.absolute()), "speed": replay.speed}
        if replay
        else None,
        **_told(search),
    }
    return SessionFolder.create(folder, facts, beside={RECIPE: dump_recipe(_hidden(search.recipe))})


def _told(search: Search) -> dict[str, object]:
    """What the user gave and what was assumed of it, for the runbook; secrets hidden."""
    secrets = secrets_of(search.recipe.problem, dict(search.recipe.env))
    return {
        "sources": {role: hide_literals(text, secrets) for role, text in search.sources.items()},
        "origin": {role: str(path.absolute()) for role, path in search.origin.items()},
        "notes": list(search.recipe.notes),
    }


def _hidden(recipe: Recipe) -> Recipe:
    """The recipe as it may be stored: every secret value hidden, wherever it stands."""
    return replace(
        recipe,
        problem=hide_problem(recipe.problem),
        command=redact_words(recipe.command),
        container=redact_words(recipe.container),
        sbatch=redact_words(recipe.sbatch),
        env=tuple(redact_env(dict(recipe.env)).items()),
        cwd=recipe.cwd.absolute(),
    )


def reopen(path: Path) -> tuple[SessionFolder, Journal, Search]:
    """A stored session, its journal and its search, secrets hidden.

    Raises:
        UsageError: it holds a single launch, or a damaged file.
        NothingError: there is no session.
    """
    return _read(_open_search(path))


def claim(path: Path) -> tuple[SessionFolder, Journal, Search]:
    """The same, locked first: what is read stays true until this process ends.

    Raises:
        HostError: another triage works in it.
    """
    session = _open_search(path)
    session.lock()
    return _read(session)


def _open_search(path: Path) -> SessionFolder:
    session = SessionFolder.open(path)
    if session.single:
        raise UsageError(
            f"{path} holds a single launch and no search",
            hint=hint("triage", "classify", path / "trials/001/server.log"),
        )
    return session


def _read(session: SessionFolder) -> tuple[SessionFolder, Journal, Search]:
    path = session.path
    recipe, facts = load_recipe(path / RECIPE, flag_table()), session.facts
    try:
        played = facts["replay"]
        search = Search(
            recipe=replace(recipe, notes=tuple(facts.get("notes", recipe.notes))),
            replay=Replay(landscape=Path(played["landscape"]), speed=float(played["speed"]))
            if played
            else None,
            sources=dict(facts["sources"]),
            origin={role: Path(file) for role, file in facts.get("origin", {}).items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        file = path / "session.json"
        raise UsageError(f"{file} is damaged", hint=hint("head", "-c", 900, file)) from error
    return session, Journal(path / JOURNAL), search


def reveal(session: SessionFolder, search: Search) -> Search:
    """The search with its secrets, read again from the files that it was made of.

    A configuration with a hidden value is never launched: it would be another one.

    Raises:
        HostError: those files are gone, or say something else by now.
    """
    hidden = _hidden_names(search.recipe)
    if not hidden:
        return search
    origin = search.origin
    try:
        again = prepare(
            origin.get("recipe"),
            good=origin.get("good"),
            bad=origin.get("bad"),
            engine="replay" if search.replay else None,
            landscape=search.replay.landscape if search.replay else None,
            speed=search.replay.speed if search.replay else None,
            target=search.recipe.target,
            nodes=search.recipe.at_once,
        )
    except UsageError:
        again = None
    if again is not None:
        # The folder of the launches is the one that it was, wherever this is typed.
        again = replace(again, recipe=replace(again.recipe, cwd=search.recipe.cwd))
    if again is None or again.digest() != session.facts["digest"]:
        files = [str(path) for path in origin.values()]
        raise HostError(
            f"{', '.join(hidden)} was hidden when the session was stored, and "
            f"{' and '.join(files)} no longer says the same",
            hint=hint("ls", "-l", *files),
        )
    problem = replace(
        again.recipe.problem,
        items=tuple(
            replace(item, weight=stored.weight)
            for item, stored in zip(
                again.recipe.problem.items, search.recipe.problem.items, strict=True
            )
        ),
    )
    return replace(search, recipe=replace(again.recipe, problem=problem))


def _hidden_names(recipe: Recipe) -> list[str]:
    """The flags and variables of a stored recipe whose value was hidden."""
    problem = recipe.problem
    config = problem.config(choice.key for choice in problem.choices())
    both = {**problem.baseline.flag_values(), **config.flag_values()}
    env = {**dict(recipe.env), **problem.baseline.env_values(), **config.env_values()}
    return [
        *(f"--{name}" for name, value in both.items() if is_hidden(value)),
        *(name for name, value in env.items() if is_hidden(value)),
        *(["the command"] if any(map(is_hidden, (*recipe.command, *recipe.container))) else []),
    ]
