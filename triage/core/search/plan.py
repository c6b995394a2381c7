"""Choose the next launch of a search, and say why; or say that it has ended.

In:  a Problem and its journal, nothing else: resuming is calling it again.
Out: Trials, each with its reason, or Done; a forecast and a tree for a dry run.
Not: launching (triage.session) or reading a log (triage.core.log).
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.core.search.journal import Known, read_journal, signature
from triage.core.search.reduce import probes, shown_sets
from triage.core.search.subsets import Keys, distinct, heaviest, one_smaller, rank, with_needs
from triage.core.trials import Done, Entry, Problem, Seen, Trial
from triage.core.wording import join

NOTHING: Keys = frozenset()


def next_trials(problem: Problem, journal: Sequence[Entry], k: int = 1) -> tuple[Trial, ...] | Done:
    """The next launches worth making, at most `k`, or why the search has ended.

    The stages: the baseline; all that is wanted; one item at a time; for each
    failure seen, the smallest set that shows it; the heaviest subset without a
    known failing set. A failure that comes up late is explained before the
    search goes on. A subset is launched once, and again only while unresolved.
    """
    known = read_journal(problem, journal)
    step = _next_step(known)
    if isinstance(step, Done):
        return step
    spent_s = sum(entry.seconds for entry in journal)
    left = problem.budget_trials - len(journal)
    if left <= 0:
        return Done(reason="budget", say=f"All {problem.budget_trials} trials are spent.")
    if spent_s >= problem.budget_s:
        return Done(
            reason="budget",
            say=f"The trials took {spent_s:.0f} s of the {problem.budget_s:.0f} s that they may.",
        )
    return tuple(_again(known, trial) for trial in step[: max(1, min(k, left))])


def _next_step(known: Known) -> tuple[Trial, ...] | Done:
    """All trials that the current stage asks for, best first, whatever the budget says."""
    problem = known.problem
    if known.pending(NOTHING):
        return (_baseline(),)
    if NOTHING not in known.resolved:
        return Done(reason="stuck", say="The baseline stayed unresolved, so nothing rests on it.")
    if known.resolved[NOTHING].seen is Seen.FAILS:
        failure = signature(known.resolved[NOTHING])
        return Done(
            reason="baseline-fails",
            say=f"The baseline itself fails ({failure}): the fault is not in what was added to it.",
        )
    wanted = heaviest(problem) or NOTHING
    if known.pending(wanted):
        return (_wanted(problem, wanted),)
    if wanted in known.starting():
        if wanted == problem.keys():
            return Done(reason="wanted-starts", say="Everything that is wanted starts together.")
        return Done(
            reason="found", say="All that the rules allow of what is wanted starts together."
        )
    searched = _searched(known, wanted)
    return (
        _singles(known, searched)
        or _explain(known, searched)
        or _closest(known, searched)
        or _ended(known)
    )


def _baseline() -> Trial:
    return Trial(
        items=NOTHING,
        why="The baseline must start: if it fails, the fault is not in what was added to it.",
    )


def _wanted(problem: Problem, wanted: Keys) -> Trial:
    every = "Everything wanted" if wanted == problem.keys() else "All that can be had"
    return Trial(
        items=wanted,
        why=f"{every} at once: if it starts, there is nothing to search; if it fails, its "
        "failure is the one to explain.",
    )


def _searched(known: Known, wanted: Keys) -> str | None:
    """The failure under search: that of the wanted launch, else the first one seen."""
    if wanted in known.resolved:
        return signature(known.resolved[wanted])
    return next(iter(known.signatures()), None)


def _singles(known: Known, searched: str | None) -> tuple[Trial, ...]:
    """One item at a time on the baseline, suspects first, then the heaviest."""
    problem, suspects = known.problem, known.suspects(None)
    found: dict[Keys, Trial] = {}
    for item in problem.items:
        keys = with_needs(problem, (item.key,))
        if keys is None or not known.pending(keys) or keys in found:
            continue
        needs = keys - {item.key}
        alone = f"{item.key} alone" + (f" with {join(needs, problem)}, as it must" if needs else "")
        found[keys] = Trial(
            items=keys,
            searching=searched,
            why=f"Does {alone} show {searched or 'a failure'}? If it starts, it takes company to "
            "fail; another failure gets a search of its own.",
        )
    return tuple(
        sorted(found.values(), key=lambda t: (-len(t.items & suspects), rank(problem, t.items)))
    )


def _explain(known: Known, searched: str | None) -> tuple[Trial, ...]:
    """Launches that narrow down the first failure without a minimal set, the searched one first."""
    for sig in sorted(known.signatures(), key=lambda seen: seen != searched):
        found = probes(known, sig)
        if found:
            return tuple(Trial(items=p.keys, why=p.why, searching=sig) for p in found)
    return ()


def _closest(known: Known, searched: str | None) -> tuple[Trial, ...]:
    """The heaviest subset without a known failing set, if it is heavier than what has started."""
    problem = known.problem
    keys = heaviest(problem, known.failing(), known.given_up())
    best = max(problem.weight(started) for started in known.starting())
    if keys is None or not known.pending(keys) or problem.weight(keys) <= best:
        return ()
    return (
        Trial(
            items=keys,
            searching=searched,
            why="Does the heaviest combination without a known failing set start "
            f"({problem.weight(keys):g} of {problem.weight(problem.keys()):g} by weight)? If so, "
            "it is the one to recommend; if it fails, that failure is explained next.",
        ),
    )


def _ended(known: Known) -> Done:
    """Nothing is left to launch: found, unless an unresolved subset might have been better."""
    problem = known.problem
    best = min(known.starting(), key=lambda keys: rank(problem, keys))
    say = (
        f"{join(best, problem)} started and keeps {problem.weight(best):g} of "
        f"{problem.weight(problem.keys()):g}"
    )
    doubts = _in_the_way(known, best)
    if doubts:
        names = "; ".join(join(keys, problem) for keys in doubts)
        return Done(reason="stuck", say=f"{say}, but these stayed unresolved: {names}.")
    return Done(reason="found", say=f"{say}; each failure seen has its minimal set.")


def _in_the_way(known: Known, best: Keys) -> tuple[Keys, ...]:
    """Unresolved subsets that could have been better, or on which a failing set rests."""
    problem, failing = known.problem, known.failing()
    neighbours = {
        smaller
        for sig in known.signatures()
        for keys in shown_sets(known, sig)
        for _, smaller in one_smaller(problem, keys)
    }
    return tuple(
        keys
        for keys in known.given_up()
        if keys in neighbours
        or (problem.weight(keys) > problem.weight(best) and not any(bad <= keys for bad in failing))
    )


def _again(known: Known, trial: Trial) -> Trial:
    """The trial as it is, or said to be a repetition if an attempt was lost."""
    if trial.items not in known.lost:
        return trial
    return Trial(
        items=trial.items,
        searching=trial.searching,
        why=f"Once more, as the last attempt proved nothing. {trial.why}",
    )


def forecast(problem: Problem) -> tuple[int, int]:
    """Launches that a search of this problem takes: (fewest, at most in 9 of 10 cases).

    Fewest: what is wanted starts. At most: the baseline, all, each item, and twice
    as many to narrow failures down and to prove what is left; so it was in random
    landscapes of 3 to 5 items with up to four causes.
    """
    n = len(distinct(problem).items)
    most = min(2**n, 3 * n + 3, problem.budget_trials)
    return min(2, most), most


def decision_lines(problem: Problem, depth: int = 3) -> tuple[str, ...]:
    """The first `depth` launches as a tree: what is launched, and what follows each answer.

    Lines without trailing space, two spaces an answer; items are named as keys.
    """
    return tuple(_tree(problem, (), depth, ""))


def _tree(problem: Problem, journal: tuple[Entry, ...], depth: int, indent: str) -> list[str]:
    step = next_trials(problem, journal)
    if isinstance(step, Done):
        return [f"{indent}end ({step.reason}): {step.say}"]
    trial = step[0]
    lines = [f"{indent}launch {len(journal) + 1}: {join(trial.items, problem)}"]
    if depth <= 1:
        return [*lines, f"{indent}  ..."]
    answers: list[tuple[str, Seen, str | None]] = [("starts", Seen.STARTS, None)]
    if trial.searching is None:
        answers.append(("fails (call it A)", Seen.FAILS, "A"))
    else:
        answers.append((f"fails with {trial.searching}", Seen.FAILS, trial.searching))
        answers.append(("fails with B, another failure", Seen.FAILS, "B"))
    for say, seen, sig in answers:
        entry = Entry(number=len(journal) + 1, items=trial.items, seen=seen, signature=sig)
        lines.append(f"{indent}  {say}:")
        lines += _tree(problem, (*journal, entry), depth - 1, f"{indent}    ")
    return lines
