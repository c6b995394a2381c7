"""The documents of a search, key by key: trial, plan, recommendation, confirmation.

In:  nothing. Out: Trial, Plan, Recommendation, Confirmation.
Not: making them (triage/render/search_documents.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.parts import (
    Closed,
    Count,
    Document,
    Id,
    Number,
    Phase,
    Seconds,
    Settings,
    Value,
    Weight,
)
from schemas.proposals import Proposal


class MovedValue(Closed):
    """An effective value that moved although the trial was not meant to change it."""

    name: str
    """Its name."""
    before: str | None
    """In the trial compared with; null: the engine's default. Without one: what was set."""
    after: str | None
    """What the engine made of it; null: its default."""
    against: Number | None
    """The trial that it is compared with; null where the engine overrode what this trial set."""
    with_: list[str] = Field(alias="with")
    """The items that it moved with: one, or those of which one did it."""


class Trial(Document):
    """One finished launch of a search: a line of journal.jsonl."""

    number: Number
    """Place in the order of launches, from 1; its files are in trials/NNN/."""
    items: list[str]
    """Keys of the wanted items that were on top of the baseline, by name: a flag, env:NAME,
    without:FLAG or without:env:NAME."""
    config: Settings
    """The whole configuration that was launched, less host and port."""
    why: str
    """Why the search asked for it."""
    searching: str | None
    """Signature of the failure under search; null before any was seen."""
    verdict: Literal["STARTS", "SAME_FAILURE", "OTHER_FAILURE", "UNRESOLVED"]
    """What it says about the failure under search; follows from seen and signature."""
    seen: Literal["starts", "fails", "unresolved", "passes"]
    """What was observed, whatever was searched for; passes: the engine accepts it before it starts
    a process, and it was not launched."""
    signature: str | None
    """Names the failure: cause id, else fingerprint; null unless it fails."""
    cause: Id | None
    """Id of the cause; null if none is known."""
    title: str
    """The cause in one sentence; empty without one."""
    phase: Phase
    """Where in the startup it ended; serving if it started."""
    ranks: list[str]
    """The ranks that failed first; empty if it started."""
    seconds: Seconds
    """Wall time of the launch, in seconds."""
    reason: str
    """Why it is unresolved; else empty."""
    early: bool
    """Whether it was rejected before any weight was read."""
    provenance: str
    """launched: a real engine answered; resolved: it was asked only; rule: a rule of triage did;
    recorded or assumed: the replay engine did."""
    simulated: bool
    """Whether the replay engine answered."""
    effective: dict[str, str]
    """What the engine made of the configuration, as text, by name."""
    confounded: list[str]
    """Names of effective values that moved although the trial did not set them, or that the engine
    overrode: the verdict is about them as well."""
    moved: list[MovedValue] = Field(default_factory=list)
    """The same with their values."""
    suspects: list[str]
    """Flags that the diagnosis points at."""
    log_digest: str
    """SHA-256 of the raw log, in hexadecimal."""
    rung: Literal["static", "resolution", "twin", "full"]
    """What was spent: rules of the knowledge base; a question to the engine, nothing launched; a
    launch with a smaller model; or the launch itself."""
    resolved_key: str
    """Equal for configurations that are the same to the engine; empty if it was not asked."""
    same_as: Number | None
    """Number of the launch whose verdict this is, as the engine makes the same of both."""
    saved_seconds: Seconds
    """Seconds of a launch that the rung saved, at least; 0 for a launch in full."""
    masks: str
    """What the rung cannot see, whatever it showed."""


class PlannedTrial(Closed):
    """A launch that the search would make."""

    number: Number
    """The place that it would have in the order of launches."""
    items: list[str]
    """Keys of the wanted items and repairs on top of the baseline."""
    config: Settings
    """The whole configuration, less host and port; secrets hidden."""
    why: str
    """Why the search asks for it, and what its likely answers would point at."""
    searching: str | None
    """Signature of the failure under search; null before any was seen."""


class Forecast(Closed):
    """How many launches the whole search takes, those made included."""

    fewest: Count
    """At least."""
    most: Count
    """At most, in nine of ten searches."""
    minutes: float | None
    """Minutes until then; null where nobody knows how long a launch takes."""
    source: str
    """Where the seconds of a launch are from; empty if they are not known."""


class Ended(Closed):
    """Why nothing is left to launch."""

    reason: Literal["found", "baseline-fails", "wanted-starts", "budget", "stuck"]
    """How it ended."""
    level: Literal["proved", "97%", "seen", ""]
    """How surely the goal is reached: proved, if adding a flag never repairs a failure; 97 % under
    the model; the best seen so far; empty without an answer."""
    say: str
    """The same in a sentence."""


class Plan(Document):
    """What a search would launch next; nothing is launched to tell."""

    session: str
    """Its folder."""
    name: str
    """The name of its recipe."""
    goal: Literal["best", "first", "all"]
    """What is searched."""
    made: Count
    """Launches made so far."""
    forecast: Forecast
    """Launches of the whole search."""
    trials: list[PlannedTrial]
    """The next launches, to be made side by side if there are several; empty if none is left."""
    ended: Ended | None
    """Why nothing is launched any more; null while the search goes on. Where the budget is spent,
    `trials` are those that a larger one would launch."""


class _Choice(Closed):
    """One setting and what becomes of it."""

    why: str
    """Why it stays or goes."""
    price: str
    """What is given up, with who says so; empty if nothing is."""


class FlagChoice(_Choice):
    """A flag and what becomes of it."""

    flag: str
    """Canonical flag name without dashes."""
    value: Value
    """Its value in the proposal; of what is dropped, the one that was wanted."""


class EnvChoice(_Choice):
    """A variable and what becomes of it."""

    env: str
    """The variable's name."""
    value: str
    """Its value in the proposal; of what is dropped, the one that was wanted."""


class UnsetChoice(_Choice):
    """A setting of the baseline that was wanted away."""

    unset: str
    """Canonical flag name without dashes, or env:NAME."""
    value: Literal[True]
    """Always true."""


Choices = list[FlagChoice | EnvChoice | UnsetChoice]


class Weights(Closed):
    """How much of what was wanted is kept, in the weights of the recipe."""

    kept: Weight
    """Sum of the weights of the items that are kept."""
    wanted: Weight
    """Sum of the weights of all items."""


class Claim(Closed):
    """One statement and how far it is supported."""

    kind: Literal["shown", "implied", "assumed", "not-shown"]
    """shown: by a launch; implied: if adding a flag never repairs a failure; assumed: by an answer
    that nobody recorded; not-shown: by nothing here."""
    say: str
    """The statement."""


class FailingSet(Closed):
    """Items that together show one failure, while dropping any one of them does not."""

    items: list[str]
    """Keys of the items, by name."""
    signature: str
    """Names the failure: cause id, else fingerprint."""
    cause: Id | None
    """Id of the cause; null if none is known."""
    title: str
    """The cause in one sentence; empty without one."""
    phase: Phase
    """Where in the startup it fails."""
    trial: Number
    """Number of the trial that showed it."""
    minimal: bool
    """False if a smaller set was never resolved."""
    assumed: bool
    """Whether it rests on an answer that nobody recorded."""


class Started(Closed):
    """Another configuration that started."""

    items: list[str]
    """Keys of its items, by name."""
    weight: Weight
    """Sum of their weights."""
    trial: Number
    """Number of the trial in which it started."""


class Spent(Closed):
    """What a search cost, and what was answered for less than a launch."""

    launches: Count
    """Servers that were started."""
    without_launch: Count
    """Answers for which none was: the engine was asked, or a launch of the same configuration."""
    twins: Count
    """Launches with a smaller model."""
    seconds: Seconds
    """Of all trials."""
    saved_launches: Count
    """Launches that an answer without one took the place of."""
    saved_seconds: Seconds
    """What they would have taken, at least: a launch imports the engine before it can refuse."""


class Implied(Closed):
    """Combinations of what is wanted, by what the launches say of each."""

    asked: Count
    """With an answer."""
    fails: Count
    """Not launched; each holds a set that failed, so it fails, if adding a flag never repairs."""
    starts: Count
    """Not launched; each lies inside one that started, so it starts, under the same condition."""
    open: Count
    """All others."""


class Recommendation(Document):
    """The configuration closest to the wanted one that a launch has shown to start."""

    reason: Literal[
        "found", "baseline-fails", "wanted-starts", "budget", "stuck", "resolved", "unfinished"
    ]
    """Why the search ended."""
    say: str
    """The whole in one or two sentences."""
    level: Literal["proved", "97%", "seen", ""]
    """How surely the goal was reached: proved, if adding a flag never repairs a failure; 97 % under
    the model; the best seen so far; empty without an answer."""
    simulated: bool
    """Whether the replay engine answered in any trial."""
    keep: Choices
    """What stays: the baseline, then the wanted items."""
    drop: Choices
    """What goes."""
    change: Choices
    """What goes back to the baseline's value."""
    add: Choices
    """What was wanted away and has to stay."""
    weight: Weights
    """How much of what was wanted is kept."""
    claim: list[Claim]
    """What can be said of the proposal, and how far each statement is supported."""
    sets: list[FailingSet]
    """The minimal failing sets, each with its failure."""
    proof: Number | None
    """Number of the trial that started; null without a proposal."""
    alternatives: list[Started]
    """Other configurations that started, the heaviest first."""
    config: Settings | None
    """The proposed configuration in full; null if none is known to start."""
    spent: Spent
    """What the search cost so far."""
    implied: Implied | None
    """Combinations that the rules allow, counted by what the launches say of them; null where there
    are too many, or launches may lie."""
    proposals: list[Proposal] = []  # noqa: RUF012  pydantic copies it
    """What `triage recommend` prints: what a trial has shown to start, the proposed one first,
    then remedies that nobody tried and that would keep more, each with the command to paste."""


class Exchange(Closed):
    """One prompt and the answers to it."""

    prompt: str
    """The prompt."""
    answers: Annotated[list[str], Field(min_length=2, max_length=2)]
    """Two answers, generated one after the other."""
    agree: bool
    """Whether they are equal and not empty."""


class Check(Closed):
    """One thing that was looked at."""

    name: str
    """ready, answers, text, accept-length, kv-pool, config, load or stop."""
    result: Literal["passed", "failed", "noted", "cannot tell"]
    """Only failed stands in the way of a confirmation; noted is to be read."""
    say: str
    """What was seen, in a sentence."""


class Start(Closed):
    """One of the repeated starts."""

    trial: str
    """Folder of the launch, relative to the session."""
    ready_s: Seconds | None
    """Seconds to the first answered generation; null if it never came."""
    reason: str
    """Why it is no start that counts; empty if it is one."""
    cause: Id | None
    """Id of the cause of its failure; null if none is known, or it did not fail."""


class StartCount(Closed):
    """How many of the starts came up."""

    up: int
    """Starts that came up, stayed up and answered."""
    starts: int
    """All starts that were made."""


class LoadError(Closed):
    """An error of a request under load."""

    text: str
    """As the server or the connection told it."""
    count: int
    """How many requests had it."""


class Level(Closed):
    """One concurrency of the load. Figures are null of a simulated server."""

    concurrency: Number
    """Requests at once."""
    requests: int
    """Requests that were sent."""
    answered: int
    """Requests that were answered to their end."""
    cut: int
    """Requests that were given up because the level's time was over."""
    seconds: Seconds
    """From the first request to the last answer."""
    tokens: int
    """Generated tokens, of all requests without an error."""
    errors: list[LoadError]
    """Errors by their text, the commonest first."""
    tokens_per_s: float | None
    """Generated tokens a second, of all requests together."""
    ttft_p50: Seconds | None
    """Median of the time to the first part of an answer."""
    ttft_p99: Seconds | None
    """The same, of which 1 % of the requests is above."""
    itl_p50: Seconds | None
    """Median of the time between two parts of an answer; a part may hold several tokens."""
    itl_p99: Seconds | None
    """The same, of which 1 % is above."""
    client_share: float | None
    """Share of one core that the client used; near 1 the figures are the client's."""


class RegimeReading(Closed):
    """What the readings of the GPUs say of one regime."""

    regime: Literal[
        "hbm", "compute", "kernel", "comms", "launch", "power-or-thermal", "idle", "hung"
    ]
    """What may limit, or be wrong."""
    answer: Literal["shown", "not shown", "cannot tell"]
    """Utilisation and power alone never show a bottleneck."""
    why: str
    """The figures that it rests on."""
    needs: str
    """What would tell; empty if this does."""


class Gpus(Closed):
    """Readings of the GPUs while the load ran, five a second."""

    gpus: list[str]
    """The GPUs that the launch uses; all visible ones if nothing tells which."""
    samples: int
    """Readings that were taken."""
    seconds: Seconds
    """From the first to the last."""
    missing: str
    """Why there are none; empty if there are."""
    share: float | None
    """Share of one core that reading used."""
    bottleneck: str
    """The regime that is shown to limit, or "not shown" and why."""
    readings: list[RegimeReading]
    """One for each regime."""


class Confirmation(Document):
    """One configuration launched in full, and whether it may be said to work."""

    confirmed: bool
    """Whether every start came up and answered twice alike, and no check failed."""
    flaky: bool
    """Whether it started and did not start."""
    reason: str
    """Why it is not confirmed; empty if it is."""
    date: str
    """When the first start was made, ISO 8601 with its zone."""
    versions: dict[str, str]
    """Versions of the engine, of the NVIDIA driver and of triage, as far as they are told."""
    count: StartCount
    """How many of the starts came up."""
    items: list[str]
    """Keys of the items that the configuration holds, by name."""
    config: Settings
    """The configuration that was launched, less host and port."""
    command: str
    """What was launched, less host and port, secrets hidden."""
    ready_s: Seconds | None
    """Seconds from the start to the first answered generation; null if it never came."""
    temperature: Literal[0]
    """Sampling temperature of every answer."""
    exchanges: list[Exchange]
    """Prompts and answers, in the order in which they were asked."""
    agree: bool
    """Whether there are answers, and each pair of them agrees."""
    checks: list[Check]
    """Every check of the first start that came up; none if no start did."""
    starts: list[Start]
    """Every start that was made, in order."""
    load: list[Level]
    """What each level of the load showed; empty if none was asked for."""
    gpus: Gpus | None
    """What the GPUs showed under load; null without load, and of a simulated server."""
    trial: str
    """Folder of the launch that the checks are of, relative to the session."""
    simulated: bool
    """Whether the replay engine answered."""
    provenance: str
    """launched: a real engine answered; recorded or assumed: the replay engine did."""
