"""A recipe file into a Recipe: names made canonical, parts held against each other.

In:  the file and the engine's flag table. Out: Recipe, or a UsageError with file and line.
Not: the shape of the file (schema.py).
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from triage.core.config import (
    Change,
    Config,
    SetEnv,
    SetFlag,
    UnsetEnv,
    UnsetFlag,
    Value,
    apply,
)
from triage.core.flags import Ambiguous, FlagTable, Known, Unknown
from triage.core.handover.judged import Assumption, Doubt, Worth
from triage.core.launch import Patience
from triage.core.phases import PHASES
from triage.core.redact import MARKER
from triage.core.trials import CHOICES, Item, Noise, Problem, left_out
from triage.core.units import parse_duration
from triage.core.wording import ENV, WITHOUT, item_key, settings, spell
from triage.errors import UsageError, hint
from triage.recipe import Confirm, Figure, Range, Recipe, Repair, Workload
from triage.recipe.levels import chain
from triage.recipe.places import Where, mistake
from triage.recipe.schema import AssumptionPart, PinPart, RecipeFile, WantedPart
from triage.yamlfile import load_yaml


def read_recipe(path: Path, table: FlagTable) -> Recipe:
    """The Recipe of a file; see triage.recipe.load_recipe."""
    return _Reading(path, table, load_yaml(path, RecipeFile)).recipe()


def _assumption(part: str | AssumptionPart) -> Assumption:
    return Assumption(say=part) if isinstance(part, str) else Assumption(**part.model_dump())


class _Reading:
    def __init__(self, path: Path, table: FlagTable, file: RecipeFile) -> None:
        self.path = path
        self.table = table
        self.file = file
        self.notes: list[str] = []

    def recipe(self) -> Recipe:
        file, folder = self.file, self.path.resolve().parent
        launch = file.launch
        problem = self._problem()
        return Recipe(
            name=file.name,
            problem=problem,
            engine=file.engine,
            engine_version=file.engine_version,
            target=launch.target,
            unit=_below(folder, launch.unit) if launch.unit else None,
            container=launch.container,
            nodes=launch.nodes,
            sbatch=launch.sbatch,
            devices=launch.devices,
            at_once=file.budget.nodes,
            command=launch.command,
            env=tuple(sorted((name, str(value)) for name, value in launch.env.items())),
            cwd=_below(folder, launch.cwd),
            patience=self._patience(),
            takes=self._takes(),
            repairs=self._repairs(),
            ranges=self._ranges(),
            confirm=Confirm(
                file.confirm.requests,
                file.confirm.concurrency,
                file.confirm.tokens,
                file.confirm.text == "any",
            ),
            assumptions=tuple(map(_assumption, file.assumptions)),
            workload=self._workload(),
            reported=file.reported,
            worth=tuple(Worth(**part.model_dump()) for part in file.worth),
            not_shown=tuple(Doubt(**part.model_dump()) for part in file.not_shown),
            landscape=_below(folder, file.landscape) if file.landscape else None,
            speed=file.speed,
            rungs=tuple(dict.fromkeys(file.rungs)),
            notes=tuple(self.notes),
        )

    def _problem(self) -> Problem:
        file = self.file
        baseline = self._baseline()
        items = self._items(baseline)
        keys = {item.key for item in items}
        present = {key for key, _ in settings(baseline)}
        pinned = self._pinned(present, keys | {left_out(item.change) for item in items})
        repairs, steps = self._choices(baseline, items, pinned)
        if (count := len(items) + len(repairs)) > CHOICES:
            self._wrong(
                ("ranges",) if self.file.ranges else ("wanted",),
                f"{count} choices, levels and repairs among them, and a search can tell {CHOICES} "
                "apart: leave some out, or take larger steps",
            )
        return Problem(
            name=file.name,
            baseline=baseline,
            items=items,
            repairs=repairs,
            pinned=pinned,
            requires=(*self._requires(keys, present), *steps),
            not_both=self._not_both(keys),
            goal=file.goal,
            noise=Noise(file.noise.miss, file.noise.transient),
            budget_trials=file.budget.trials,
            budget_s=file.budget.hours * 3600,
        )

    def _baseline(self) -> Config:
        flags: dict[str, Value] = {}
        written: dict[str, str] = {}
        for name, given in self.file.baseline.flags.items():
            where: Where = ("baseline", "flags", name)
            key, value = self._flag(name, given, where)
            if key in flags:
                self._wrong(where, f"the same flag as {written[key]}")
            if value is not None:
                flags[key] = value
                written[key] = name
        for index, pin in enumerate(self.file.pin):
            if isinstance(pin, PinPart):
                at: Where = ("pin", index, "value")
                key, value = self._flag(pin.flag, self._on(pin.flag, pin.value, at), at)
                if flags.get(key, value) != value:
                    self._wrong(at, f"the baseline sets {key} to {flags[key]}")
                if value is not None:
                    flags[key] = value
        env = {name: str(value) for name, value in self.file.baseline.env.items()}
        return Config.of(flags, env)

    def _items(self, baseline: Config) -> tuple[Item, ...]:
        items: dict[str, Item] = {}
        for index, part in enumerate(self.file.wanted):
            where: Where = ("wanted", index)
            item = self._item(part, where)
            if item.key in items:
                self._wrong(where, f"{item.key} is wanted twice")
            if self._so_already(item.change, baseline):
                self._wrong(where, f"{spell(item.change)}: the baseline is so already")
            self._contradicts(item, items, where)
            items[item.key] = item
        return tuple(items.values())

    def _so_already(self, change: Change, baseline: Config) -> bool:
        """Whether every launch has it; `launch.env` is there, below the baseline's variables."""
        had = baseline
        # Of two hidden values nobody can say that they are the same.
        if not (isinstance(change, SetEnv) and change.value == MARKER):
            every = {name: str(value) for name, value in self.file.launch.env.items()}
            had = Config.of(baseline.flag_values(), every | baseline.env_values())
        return apply(had, (change,)) == had

    def _contradicts(self, item: Item, earlier: dict[str, Item], where: Where) -> None:
        """Refuse an item that leaves out what an earlier one sets, or the other way round."""
        other = earlier.get(left_out(item.change) or WITHOUT + item.key)
        if other is not None:
            said = f"{spell(item.change)} contradicts wanted {spell(other.change)}"
            self._wrong(where, f"{said}: both can never be had")

    def _item(self, part: WantedPart, where: Where) -> Item:
        change = self._change(part, where)
        return Item(key=item_key(change), change=change, weight=part.weight)

    def _change(self, part: WantedPart, where: Where) -> Change:
        if part.unset is not None:
            if part.unset.startswith(ENV):
                return UnsetEnv(part.unset.removeprefix(ENV))
            return UnsetFlag(self._name(part.unset, (*where, "unset")))
        if part.flag is None:
            return SetEnv(str(part.env), str(part.value))
        name, value = self._flag(part.flag, self._on(part.flag, part.value, where), where)
        if value is None:
            self._wrong(
                (*where, "value"), f"{name}: leaving a switch out is no change that can be wanted"
            )
        return SetFlag(name, value)

    def _on(self, spelling: str, given: object, where: Where) -> object:
        """The value as written; without one the flag is a switch that is wanted on."""
        if given is not None:
            return given
        meaning = self.table.lookup(spelling)
        if isinstance(meaning, Known) and meaning.spec.style in ("value", "list"):
            self._wrong(where, f"{meaning.spec.name} needs a value")
        return True

    def _flag(self, spelling: str, given: object, where: Where) -> tuple[str, Value | None]:
        """Canonical name and value; None: the flag stays off the command line."""
        name = self._name(spelling, where)
        meaning = self.table.lookup(spelling)
        if isinstance(meaning, Unknown):
            known = f"{name} is no flag of {self.table.engine} {self.table.version}"
            close = f", did you mean {meaning.close[0]}?" if meaning.close else ""
            if meaning.successor is not None:
                self.notes.append(f"{known}{meaning.hint()}")
            else:
                self.notes.append(f"{known}{close}; kept as a fork's own")
        try:
            found = self.table.normal({spelling: given})
        except UsageError as error:
            self._wrong(where, error.message)
        return name, found.get(name)

    def _name(self, spelling: str, where: Where) -> str:
        meaning = self.table.lookup(spelling)
        if isinstance(meaning, Ambiguous):
            self._wrong(where, f"{spelling} could mean {', '.join(meaning.options)}")
        if isinstance(meaning, Unknown):
            return spelling.strip().lstrip("-").replace("_", "-")
        return meaning.spec.name

    def _key(self, spelling: str, where: Where) -> str:
        """The key of an item or of the baseline's that another part names."""
        return spelling if spelling.startswith(ENV) else self._name(spelling, where)

    def _pinned(self, present: set[str], keys: set[str]) -> tuple[str, ...]:
        pinned = []
        for index, pin in enumerate(self.file.pin):
            where: Where = ("pin", index)
            name = self._key(pin.flag if isinstance(pin, PinPart) else pin, where)
            if name in keys:
                self._wrong(where, f"{name} is pinned but also wanted")
            if name not in present:
                self._wrong(where, f"{name} is not in the baseline" + _suggest(name, present))
            pinned.append(name)
        return tuple(pinned)

    def _requires(self, keys: set[str], present: set[str]) -> tuple[tuple[str, str], ...]:
        pairs = []
        for index, part in enumerate(self.file.requires):
            where: Where = ("requires", index)
            item = self._key(part.flag, (*where, "flag"))
            needs = self._key(part.needs, (*where, "needs"))
            if item not in keys:
                self._wrong((*where, "flag"), f"{item} is not wanted" + _suggest(item, keys))
            if needs not in keys | present:
                said = f"{needs} is neither wanted nor in the baseline"
                self._wrong((*where, "needs"), said + _suggest(needs, keys | present))
            pairs.append((item, needs))
        return tuple(pairs)

    def _not_both(self, keys: set[str]) -> tuple[tuple[str, str], ...]:
        pairs = []
        for index, pair in enumerate(self.file.not_both):
            first, second = (self._key(name, ("not_both", index)) for name in pair)
            for name in (first, second):
                if name not in keys:
                    said = f"{name} is not wanted"
                    self._wrong(("not_both", index), said + _suggest(name, keys))
            if first == second:
                self._wrong(("not_both", index), f"{first} is named twice")
            pairs.append((first, second))
        return tuple(pairs)

    def _patience(self) -> Patience:
        seconds: dict[str, float] = {}
        known = ("silent", "total", "settle", *PHASES)
        for name, given in self.file.launch.patience.items():
            where: Where = ("launch", "patience", name)
            if name not in known:
                self._wrong(where, "no phase of a startup" + _suggest(name, known))
            try:
                seconds[name] = parse_duration(given)
            except ValueError as error:
                self._wrong(where, str(error))
        silent_s = seconds.pop("silent", Patience().silent_s)
        total_s = seconds.pop("total", Patience().total_s)
        settle_s = seconds.pop("settle", Patience().settle_s)
        return Patience(silent_s=silent_s, total_s=total_s, settle_s=settle_s, phases=seconds)

    def _takes(self) -> tuple[float | None, float | None]:
        """Seconds of a launch that starts, and of one that fails; None where nothing is said."""
        seconds: dict[str, float] = {}
        for name, given in self.file.launch.takes.items():
            try:
                seconds[name] = parse_duration(given)
            except ValueError as error:
                self._wrong(("launch", "takes", name), str(error))
        return seconds.get("starts"), seconds.get("fails")

    def _repairs(self) -> tuple[Repair, ...]:
        repairs = []
        for index, part in enumerate(self.file.repairs):
            where: Where = ("repairs", index)
            name, value = self._flag(part.flag, self._on(part.flag, part.value, where), where)
            if value is None:
                self._wrong((*where, "value"), f"{name}: leaving a switch out repairs nothing")
            repairs.append(Repair(SetFlag(name, value), part.cost, part.price))
        return tuple(repairs)

    def _workload(self) -> Workload:
        part = self.file.workload
        figures = []
        for index, one in enumerate(part.figures):
            where: Where = ("workload", "figures", index, "without")
            without = tuple(self._key(name, where) for name in one.without)
            figures.append(Figure(one.concurrency, one.tokens_per_s, one.source, without))
        return Workload(part.gpu, part.gpus, part.input_tokens, part.output_tokens, tuple(figures))

    def _choices(
        self, baseline: Config, items: tuple[Item, ...], pinned: tuple[str, ...]
    ) -> tuple[tuple[Item, ...], tuple[tuple[str, str], ...]]:
        """Repairs and the levels of ranges as items, and which level needs which."""
        found: dict[str, Item] = {}
        steps: list[tuple[str, str]] = []
        wanted = {item.key: item for item in items}
        for index, repair in enumerate(self._repairs()):
            where: Where = ("repairs", index)
            name = repair.change.name
            if name in wanted:
                self._wrong(where, f"{name} is wanted, so it cannot be a repair as well")
            if name in pinned:
                self._wrong(where, f"{name} is pinned, so no repair may change it")
            if name in found:
                self._wrong(where, f"{name} is a repair twice")
            if self._so_already(repair.change, baseline):
                self._wrong(where, f"{spell(repair.change)}: the baseline is so already")
            found[name] = Item(key=name, change=repair.change, weight=repair.price)
        for index, range_ in enumerate(self._ranges()):
            where = ("ranges", index)
            if range_.flag in pinned:
                self._wrong(where, f"{range_.flag} is pinned, so its value may not change")
            if any(range_.flag == item.change.name for item in found.values()):
                self._wrong(where, f"{range_.flag} is a repair or a range already")
            try:
                levels, pairs = chain(range_)
            except ValueError as error:
                self._wrong(where, str(error))
            found |= {level.key: level for level in levels}
            steps += pairs
        return tuple(found.values()), tuple(steps)

    def _ranges(self) -> tuple[Range, ...]:
        ranges = []
        for index, part in enumerate(self.file.ranges):
            name = self._name(part.flag, ("ranges", index, "flag"))
            ranges.append(Range(name, part.from_, part.to, part.step, part.price))
        return tuple(ranges)

    def _wrong(self, where: Where, what: str) -> NoReturn:
        error = mistake(self.path, where, what)
        raise UsageError(error.message, hint=error.hint or hint("cat", "-n", self.path))


def _below(folder: Path, path: str) -> Path:
    return Path(os.path.normpath(folder / Path(path).expanduser()))


def _suggest(word: str, known: set[str] | tuple[str, ...]) -> str:
    close = get_close_matches(word, sorted(known), n=1, cutoff=0.5)
    return f", did you mean {close[0]}?" if close else ""
