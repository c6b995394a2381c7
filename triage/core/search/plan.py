"""Choose the next launch of a search, and say why; or say that it has ended.

In:  a Problem and its journal, nothing else: resuming is calling it again.
Out: Trials, each with its reason, or Done; a forecast.
Not: launching (triage.session) or reading a log (triage.core.log).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import ceil

from triage.core.search.audit import unproved
from triage.core.search.batch import as_if, companions
from triage.core.search.belief import SURE, Belief, belief_of
from triage.core.search.bound import worthiest
from triage.core.search.chance import worthwhile
from triage.core.search.exact import MOST as FEW
from triage.core.search.exact import plan as exact_plan
from triage.core.search.explain import what, why
from triage.core.search.fallback import Reduced, reduce_all, reduce_best, reduce_first
from triage.core.search.goals import Decision, decide, shown, truth
from triage.core.search.joint import NEVER
from triage.core.search.journal import Known, read_journal, signature
from triage.core.search.lawful import largest, uncovered
from triage.core.search.space import space_of
from triage.core.search.subsets import Keys, distinct, heaviest, rank
from triage.core.trials import Done, Entry, Problem, Seen, Trial
from triage.core.wording import join

NOTHING: Keys = frozenset()
PER_FLAG, PLUS = 1.5, 8  # launches after which the model is left
NOISY = 3  # times as many where launches lie
LEVELS = {
    "proved": "proved, if adding a flag never repairs a failure",
    "97%": "97 % under the model (causes of a few flags each)",
    "seen": "best seen so far",
}


def next_trials(
    problem: Problem, journal: Sequence[Entry], k: int = 1, flying: Collection[Keys] = ()
) -> tuple[Trial, ...] | Done:
    """The next launches worth making, at most `k` more, or why the search has ended.

    `flying` are subsets that are being launched already: none of them is asked for, and
    there may be nothing worth making beside them.

    First the baseline, then all that is wanted. From then on the launch that saves most:
    it is probably the best configuration, or tells most about which one is, or fails and
    so rules out all that could be better. A configuration is launched once, and again
    only while unresolved, where noise is expected, or where two answers contradict each
    other. Where no hypothesis explains the answers, or more launches were made than
    forecast, failing sets are reduced without a model.
    """
    known = read_journal(problem, journal)
    spent_s = sum(entry.seconds for entry in journal)
    left = problem.budget_trials - sum(entry.launched for entry in journal) - len(flying)
    within = left > 0 and spent_s < problem.budget_s
    step = _next_step(known, k, tuple(flying), more=within)
    if isinstance(step, Done):
        return step
    if left <= 0:
        count = problem.budget_trials
        spent = "The one trial is" if count == 1 else f"All {count} trials are"
        return Done(reason="budget", level="seen", say=f"{spent} spent.")
    if not within:
        return Done(
            reason="budget",
            level="seen",
            say=f"The trials took {spent_s:.0f} s of the {problem.budget_s:.0f} s that they may.",
        )
    return tuple(_again(known, trial) for trial in step[: max(1, min(k, left))])


def _next_step(
    known: Known, k: int = 1, flying: tuple[Keys, ...] = (), *, more: bool = True
) -> tuple[Trial, ...] | Done:
    """What the search asks for; without `more` nothing that a proof can do without."""
    opening = _opening(known)
    if opening is not None:
        if isinstance(opening, Done):
            return opening
        return tuple(trial for trial in opening if trial.items not in flying)[:k]
    belief = belief_of(known)
    decision = _decision(known, belief, more=more)
    if isinstance(decision, Done):
        return decision
    if k <= 1 and not flying:
        return (_trial(belief, known, decision, _searched(known)),)
    return tuple(
        _trial(belief, known, one, _searched(known))
        for one in _at_once(known, belief, decision, k, [belief.space.mask(f) for f in flying])
    )


def _at_once(
    known: Known, belief: Belief, decision: Decision, k: int, flying: list[int]
) -> list[Decision]:
    """At most `k` launches beside those in flight, the decision among them if it still tells."""
    found: list[Decision] = []
    mask = decision.mask or 0
    # Of launches that only tell something, what is in flight may tell the same.
    if mask not in flying and not (flying and decision.kind == "split"):
        found.append(decision)
        flying = [*flying, mask]
    if decision.kind == "audit" and not known.problem.audit:
        return found  # the search is over but for this: nothing is open beside it
    for mask in companions(belief, known.problem.goal, flying, k - len(found)):
        found.append(replace(decision, mask=mask, kind="beside"))
        flying = [*flying, mask]
    while len(found) < k:
        then = as_if(known, belief, flying)
        step = _decision(then, belief_of(then))
        if isinstance(step, Done) or step.mask is None or step.mask in flying:
            break
        found.append(replace(step, kind="beside"))
        flying = [*flying, step.mask]
    return found


def _opening(known: Known) -> tuple[Trial, ...] | Done | None:
    """The two ends: the baseline, and all that is wanted; None once both are known.

    Of two trials the second waits for the answer of the first, if one is launched at a time.
    """
    problem = known.problem
    wanted = heaviest(problem) or NOTHING
    ends: list[Trial] = []
    if known.pending(NOTHING):
        ends.append(
            Trial(
                items=NOTHING,
                why="The baseline must start: if it fails, the fault is not in what was added "
                "to it.",
            )
        )
    elif NOTHING not in known.resolved:
        return Done(reason="stuck", say="The baseline stayed unresolved, so nothing rests on it.")
    elif known.resolved[NOTHING].seen is Seen.FAILS and not problem.noise:
        failure = signature(known.resolved[NOTHING])
        return Done(
            reason="baseline-fails",
            say=f"The baseline itself fails ({failure}): the fault is not in what was added to it.",
        )
    if wanted and known.pending(wanted):
        ends.append(Trial(items=wanted, why=_why_wanted(problem, wanted)))
    if ends:
        return tuple(ends)
    if wanted not in known.starting():
        return None
    if problem.goal == "best":
        return None if problem.noise else _all_started(known, wanted)
    return None if known.failing() else _uncovered(known, wanted)


def _why_wanted(problem: Problem, wanted: Keys) -> str:
    """The reason of the launch of all that is wanted, or of the most of it that the rules allow."""
    every, started = "Everything wanted", "there is nothing to search"
    if wanted != problem.keys():
        every = "All that can be had"
    if space_of(problem).excluded:
        every = "The most that the rules allow"
        if problem.goal != "best":
            started = "what it leaves out is next"
    return (
        f"{every} at once: if it starts, {started}; if it fails, its failure is the one to explain."
    )


def _uncovered(known: Known, wanted: Keys) -> tuple[Trial, ...] | Done:
    """Nothing failed: the largest lawful combination that no start holds, or none is left.

    Where launches lie each is believed once it started so often that luck is out of the question.
    """
    problem, space = known.problem, space_of(known.problem)
    times = 1
    while problem.noise.miss**times > 1 - SURE:
        times += 1
    starts = Counter(e.items for e in known.entries if e.seen is Seen.STARTS)
    missed = Counter(e.items for e in known.entries if e.seen is Seen.UNRESOLVED)
    few = [keys for keys, count in starts.items() if keys and count < times]
    doubted = [keys for keys in few if missed[keys] <= problem.retries]
    if problem.noise and doubted:
        why = "Once more: nothing failed so far, and a start may be luck."
        return (Trial(items=doubted[0], why=why),)
    lost = [space.mask(keys) for keys in known.given_up()]
    mask, share = uncovered(space, [space.mask(keys) for keys in starts], lost)
    if mask is not None and (problem.stop == "proved" or share > 1 - SURE):
        why = (
            "Nothing failed so far, but the rules keep some of this out of what started; so it "
            "tells of what no launch had together."
        )
        return (Trial(items=space.items(mask), why=why),)
    unresolved = [*known.given_up(), *(few if problem.noise else ())]
    if unresolved:
        names = "; ".join(join(keys, problem) for keys in unresolved)
        say = f"Nothing failed, but these stayed unresolved: {names}."
        return Done(reason="stuck", level="seen", say=say)
    done = _all_started(known, wanted)
    if mask is not None:
        say = f"Nothing failed in {len(known.entries)} launches; some flags were in none together."
        return replace(done, say=say, level="97%")
    return replace(done, level="97%") if problem.noise else done


def _all_started(known: Known, wanted: Keys) -> Done:
    """The end of a search in which nothing failed that the goal asks about."""
    problem, space = known.problem, space_of(known.problem)
    if wanted == problem.keys() and not space.excluded:
        say = "Everything that is wanted starts together."
        return Done(reason="wanted-starts", level="proved", say=say)
    if not space.excluded:
        say = "All that the rules allow of what is wanted starts together."
    elif problem.goal == "best":
        say = (
            f"{what(problem, wanted)} started and keeps {problem.weight(wanted):g} of "
            f"{problem.weight(problem.keys()):g}; the rules allow nothing that keeps more."
        )
    else:
        count = len(known.starting()) - (NOTHING in known.starting())
        say = (
            "No combination that the rules allow fails: each lies inside one of "
            f"{count} that started."
        )
    return Done(reason="found", level="proved", say=say)


def _searched(known: Known) -> str | None:
    """The failure under search: that of the wanted launch, else the first one seen."""
    wanted = heaviest(known.problem)
    if wanted is not None and wanted in known.failing():
        return signature(known.resolved[wanted])
    return next(iter(known.signatures()), None)


def _decision(known: Known, belief: Belief, *, more: bool = True) -> Decision | Done:
    problem = known.problem
    for conflict in belief.evidence.conflicts:
        if conflict.probe is not None and _may(known, belief, conflict.probe, again=conflict.again):
            return Decision(conflict.probe, kind="again" if conflict.again else "between")
    decision = _modelled(known, belief)
    if decision is None:
        decision = _reduced(known, belief)
    if decision.mask is not None:
        return decision
    if problem.goal == "best":
        for mask in _doubted(known, belief, decision.level, more=more):
            if _may(known, belief, mask):
                return Decision(mask, kind="audit")
    return _ended(known, belief, decision.level)


def _may(known: Known, belief: Belief, mask: int, *, again: bool = False) -> bool:
    """Whether a launch of the mask may be made and may tell something."""
    keys = belief.space.items(mask)
    return (again or known.pending(keys)) and keys not in known.given_up()


def _modelled(known: Known, belief: Belief) -> Decision | None:
    """What the posterior asks for; None where it knows nothing, or took too long."""
    problem, space = known.problem, belief.space
    launches = len(known.entries)
    if not space.n:
        return None
    limit = PER_FLAG * space.n + PLUS
    if problem.noise or belief.evidence.noise:
        if launches > NOISY * limit:
            return Decision(None, level="seen")
    elif launches > limit:
        return None
    plain = not belief.evidence.noise and not belief.evidence.conflicts
    if problem.goal == "best" and space.n <= FEW and plain and not space.repairs:
        return _exact(belief, problem.stop)
    if problem.goal == "first" and space.n <= FEW and plain and not space.repairs:
        found = _exact_first(belief, problem.stop)
        if found is not None:
            return found
    return decide(belief, problem.goal, problem.stop)


def _exact(belief: Belief, stop: str) -> Decision:
    found = exact_plan(belief, "best", stop, belief.closed)
    if found is None or found.mask is None:
        return Decision(None, level="proved" if stop == "proved" else "97%")
    value = belief.space.value(found.mask)
    top = belief.best is None or value > belief.space.value(belief.best)
    return Decision(found.mask, kind="finish" if top else "bar", open=found.launches)


def _exact_first(belief: Belief, stop: str) -> Decision | None:
    """The next launch of the exact policy; None where the goal is reached or cannot be so."""
    known = shown(belief)
    if not any(s.mask for s in known) or any(s.proved for s in known):
        return None
    found = exact_plan(belief, "first", stop, belief.closed)
    if found is None or found.mask is None:
        return None
    return Decision(found.mask, kind="split", open=found.launches)


def _reduced(known: Known, belief: Belief) -> Decision:
    """The search without a model."""
    space, evidence = belief.space, belief.evidence
    order = _innocent_first(belief)
    bars = belief.bars()
    if known.problem.goal == "first" and bars:
        step: Reduced = reduce_first(space, evidence.started, bars, order)
    elif known.problem.goal == "all":
        step = reduce_all(space, evidence.started, bars, order)
    else:
        step = reduce_best(space, evidence.started, bars, order)
    if step.probe is not None and _may(known, belief, step.probe):
        return Decision(step.probe, kind="reduce")
    # Reducing tells no failure from another: one that hides behind another one is not found.
    proved = step.probe is None and step.whole and known.problem.goal != "all"
    proved = proved and not (known.problem.noise or evidence.noise)
    return Decision(None, level="proved" if proved else "seen")


def _innocent_first(belief: Belief) -> list[int]:
    """The bits, those that no likely cause holds first."""
    h = belief.hypotheses
    share = [0.0] * belief.space.n
    for row, weight in zip(h.mask.tolist(), h.weight.tolist(), strict=True):
        for mask in row:
            if mask != int(NEVER):
                for j in belief.space.bits(mask):
                    share[j] += weight
    return sorted(range(belief.space.n), key=lambda j: (share[j], -belief.space.worth[j], j))


def _doubted(known: Known, belief: Belief, level: str, *, more: bool) -> list[int]:
    """What could start though it holds a set that failed, worth a launch before the end.

    Without an audit all of it once one repair was seen, some where no causes explain the
    answers; else one that is likely enough to start, for what it keeps, if a proof was asked for.
    """
    if known.problem.audit:
        return [*_audit(belief), *unproved(belief, together=True)]
    if belief.evidence.conflicts or not belief.explained:
        return unproved(belief, together=bool(belief.evidence.conflicts))
    proved = level == known.problem.stop == "proved"
    if not proved or not more or belief.space.n <= FEW:
        return []
    mask = worthwhile(belief)
    return [] if mask is None else [mask]


def _audit(belief: Belief) -> list[int]:
    """The best configuration with each flag that it dropped, whatever that flag failed with."""
    space = belief.space
    if belief.best is None:
        return []
    found = []
    for j in space.bits(space.full & ~belief.best):
        more = space.trimmed(belief.best | space.needs[j])
        if space.value(more) > space.value(belief.best) and more not in belief.evidence.asked:
            found.append(more)
    return found


def _trial(belief: Belief, known: Known, decision: Decision, searching: str | None) -> Trial:
    return Trial(
        items=belief.space.items(decision.mask or 0),
        why=why(belief, decision, known.problem),
        searching=searching,
    )


def _ended(known: Known, belief: Belief, level: str) -> Done:
    """Nothing is left to launch: found, unless an unresolved subset might have been better."""
    problem, space = known.problem, belief.space
    if problem.goal == "best" or belief.best is None:
        best = belief.best if belief.best is not None else space.base
        keys = space.items(best)
        said = (
            f"{what(problem, keys)} started and keeps {problem.weight(keys):g} of "
            f"{problem.weight(problem.keys()):g}"
        )
        claim = f"nothing better starts: {LEVELS[level]}" if level != "seen" else LEVELS[level]
    else:
        said, claim = _sets(belief, problem, level)
    doubts = _in_the_way(known, belief)
    if doubts:
        names = "; ".join(join(keys, problem) for keys in doubts)
        say = f"{said}, but these stayed unresolved: {names}."
        return Done(reason="stuck", level="seen", say=say)
    reason = "stuck" if level == "seen" else "found"
    return Done(reason=reason, level=level, say=f"{said}; {claim}.")


def _sets(belief: Belief, problem: Problem, level: str) -> tuple[str, str]:
    """What was found for the goals first and all."""
    names, space = belief.evidence.names, belief.space

    def say(mask: int, d: int) -> str:
        return f"{{{', '.join(sorted(space.items(mask) & problem.keys()))}}} fails with {names[d]}"

    if problem.goal == "first":
        found = shown(belief)
        said = say(found[0].mask, found[0].failure) if found else "no failing set is known"
        return said, f"with any flag less it does not: {LEVELS[level]}"
    causes, _ = truth(belief)
    if level == "seen":
        causes = [(found.mask, found.failure) for found in shown(belief) if found.proved]
    said = "; ".join(say(m, d) for m, d in causes) or "no failing set is known"
    if level == "seen":
        return said, "others may fail as well: no causes of a few flags each explain the answers"
    return said, f"these are all: {LEVELS[level]}"


def _in_the_way(known: Known, belief: Belief) -> tuple[Keys, ...]:
    """Unresolved subsets that could have been better."""
    space = belief.space
    value = -1.0 if belief.best is None else space.value(belief.best)
    bars = belief.bars()
    found = []
    for keys in known.given_up():
        mask = space.mask(keys)
        hidden = not any(bar.bars(mask) for bar in bars)
        if hidden and (known.problem.goal != "best" or space.value(mask) > value):
            found.append(keys)
    return tuple(sorted(found, key=lambda keys: rank(known.problem, keys)))


def _again(known: Known, trial: Trial) -> Trial:
    """The trial as it is, or said to be a repetition if an attempt was lost."""
    if trial.items not in known.lost:
        return trial
    return replace(trial, why=f"Once more, as the last attempt proved nothing. {trial.why}")


def forecast(problem: Problem, journal: Sequence[Entry] = ()) -> tuple[int, int]:
    """Launches that a search of this problem takes: (fewest, at most in 9 of 10 cases).

    Fewest: what is wanted starts. At most: what was launched, and by how many bits the
    decision is open.
    """
    known = read_journal(problem, journal)
    opening = _opening(known)
    if isinstance(opening, Done):
        return len(journal), len(journal)
    if opening is not None:
        return _forecast_opening(known, problem)
    belief = belief_of(known)
    decision = _decision(known, belief)
    if isinstance(decision, Done):
        return len(journal), len(journal)
    most = min(problem.budget_trials, len(journal) + _most(belief))
    return min(len(journal) + 1, most), most


def _forecast_opening(known: Known, problem: Problem) -> tuple[int, int]:
    """The forecast while nothing failed: the ends, the largest lawful sets, then a search."""
    space, made = space_of(known.problem), len(known.entries)
    started = [space.mask(keys) for keys in known.starting()] if made else []
    sets = 1 if problem.goal == "best" else max(1, len(largest(space, started)))
    ends = known.pending(NOTHING) + sets
    n = len(distinct(problem).choices())
    most = min(2**n, made + _most(_unopened(problem)) + ends, problem.budget_trials)
    # Nothing fails; or the last launch of these fails, and one more shows why.
    return min(made + min(ends, 2 + known.pending(NOTHING)), most), most


def _unopened(problem: Problem) -> Belief:
    """What would be believed if all that is wanted failed, nobody knows how."""
    wanted = heaviest(distinct(problem)) or NOTHING
    return belief_of(
        read_journal(
            problem,
            (
                Entry(number=1, items=NOTHING, seen=Seen.STARTS),
                Entry(number=2, items=wanted, seen=Seen.FAILS, signature="?"),
            ),
        )
    )


def _most(belief: Belief) -> int:
    """Launches that decide what is open, in 9 of 10 cases."""
    if not belief.explained or worthiest(belief.space, belief.bars()) is None:
        return 1
    return ceil(1.5 * belief.open + 3)
