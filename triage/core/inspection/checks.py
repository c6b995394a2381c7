"""Look for what cannot work: pairs without a kernel, unknown names, packages, sizes.

In:  an installed engine, a model, a configuration. Out: Inspection.
Not: whether what is left will work: only a launch shows that.

Source: `MoeRunner.__init__` and `MoeRunner.run` (layers/moe/moe_runner/runner.py),
`SpeculativeAlgorithm.from_string` (speculative/spec_info.py), `load_plugins_by_group`
(plugins) and `_set_envs_and_config` (entrypoints/engine.py) of SGLang 0.5.23.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from triage.core.config import Config
from triage.core.inspection.divide import EXPERTS, divisibility
from triage.core.inspection.facts import Check, Finding, Inspection, Installed, Model
from triage.core.inspection.packages import differing_packages
from triage.core.inspection.quantised import scheme_of
from triage.core.records import dataclass

_NAMED = 6  # alternatives that a finding names
_RUNNERS = "layers/moe/moe_runner/runner.py"


def inspect(installed: Installed, model: Model, config: Config) -> Inspection:
    """Everything that is known to fail, and what could not be looked at."""
    asked = _Asked(config)
    findings: list[Finding] = []
    open_: list[tuple[Check, str]] = []
    checks: tuple[tuple[Check, Callable[[], Iterator[Finding]]], ...] = (
        ("moe-pair", lambda: _moe_pair(installed, asked)),
        ("moe-quantization", lambda: _moe_quantization(installed, model, asked)),
        ("speculative-algorithm", lambda: _algorithm(installed, asked)),
        ("plugin", lambda: _plugins(installed, asked)),
        ("package", lambda: differing_packages(installed, config)),
    )
    for check, found in checks:
        why = installed.why if not installed.root else installed.unread.get(check, "")
        if why:
            open_.append((check, why))
        else:
            findings += found()
    if model.why:
        open_.append(("divisibility", model.why))
        if not installed.why:
            open_.append(("moe-quantization", model.why))
    else:
        findings += divisibility(model, config)
    return Inspection(
        installed=installed, model=model, findings=tuple(findings), open=tuple(dict.fromkeys(open_))
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """The flags that the checks read, with the engine's defaults."""

    config: Config

    def text(self, flag: str, default: str = "") -> str:
        value = self.config.get(flag)
        return value if isinstance(value, str) else default

    @property
    def a2a(self) -> str:
        return self.text("moe-a2a-backend", "none")

    @property
    def runner(self) -> str:
        return self.text("moe-runner-backend", "auto")


def _moe_pair(installed: Installed, asked: _Asked) -> Iterator[Finding]:
    """A runner that was named and that has nothing for the all-to-all backend."""
    moe, backend, runner = installed.moe, asked.a2a, asked.runner
    if runner == "auto" or runner not in moe.known or backend not in moe.formats:
        return
    if moe.works(backend, runner):
        return
    has = [backend_ for backend_ in moe.formats if moe.works(backend_, runner)]
    others = moe.runners(backend)
    at = moe.coreless.get(runner)
    yield Finding(
        check="moe-pair",
        say=f"no kernel of runner {runner} is registered for all-to-all backend {backend}"
        f" ({runner} has {_listed(has)}; {backend} has {_listed(others)})",
        where=(str(at) if at else _RUNNERS, *_places(installed, runner)),
        flags=tuple(
            flag for flag in ("moe-a2a-backend", "moe-runner-backend") if asked.config.get(flag)
        ),
        sure=at is not None,
    )


def _places(installed: Installed, runner: str) -> tuple[str, ...]:
    """Where the runner is registered for what it has."""
    found = [str(at) for (_, one), at in installed.moe.fused.items() if one == runner]
    found += [str(at) for (_, one), at in installed.moe.pre.items() if one == runner]
    return tuple(found[:_NAMED])


def _moe_quantization(installed: Installed, model: Model, asked: _Asked) -> Iterator[Finding]:
    """A quantisation whose only runners have nothing for the all-to-all backend."""
    moe, backend = installed.moe, asked.a2a
    experts, _ = model.number(*EXPERTS)
    scheme = scheme_of(model, asked.text("quantization"))
    if backend == "none" or not experts or scheme is None or backend not in moe.formats:
        return
    made = moe.schemes.get(scheme.file)
    if not made or any(moe.works(backend, runner) for runner, _ in made):
        return
    if asked.runner != "auto" and moe.works(backend, asked.runner):
        return
    yield Finding(
        check="moe-quantization",
        say=f"experts in {scheme.name} run on {' or '.join(r for r, _ in made)} only, and nothing"
        f" of that is registered for all-to-all backend {backend}"
        f" (it has {_listed(moe.runners(backend))})",
        where=(*(str(at) for _, at in made), *scheme.keys[:2]),
        flags=("moe-a2a-backend", *(["quantization"] if asked.config.get("quantization") else [])),
    )


def _algorithm(installed: Installed, asked: _Asked) -> Iterator[Finding]:
    """A speculative algorithm that neither the engine nor a plugin's source has."""
    name = asked.text("speculative-algorithm").upper()
    named = {one.upper() for plugin in installed.plugins for one in plugin.algorithms}
    if not name or not installed.algorithms or name in installed.algorithms or name in named:
        return
    known = [one for one in installed.algorithms if one != "NONE"]
    at = next(iter(installed.algorithms.values()))
    broken = [plugin for plugin in installed.plugins if plugin.trouble]
    unsure = bool(installed.plugins) and not broken
    yield Finding(
        check="speculative-algorithm",
        say=f"this engine has no speculative algorithm {name}; it has {_listed(known, len(known))}"
        + (f", and plugin {broken[0].name} cannot be loaded" if broken else "")
        + (
            ", and a plugin may register it in a way that its source does not show"
            if unsure
            else ""
        ),
        where=(str(at),),
        flags=("speculative-algorithm",),
        sure=not unsure,
    )


def _plugins(installed: Installed, asked: _Asked) -> Iterator[Finding]:
    """Plugins that cannot be loaded: the engine logs that and goes on without them."""
    allowed = asked.config.env_values().get("SGLANG_PLUGINS", "")
    names = {word.strip() for word in allowed.split(",") if word.strip()}
    known = {plugin.name for plugin in installed.plugins}
    for name in sorted(names - known):
        yield Finding(
            check="plugin",
            say=f"SGLANG_PLUGINS names {name}, and no installed package has such a plugin",
            where=("env:SGLANG_PLUGINS",),
            flags=("env:SGLANG_PLUGINS",),
        )
    for plugin in installed.plugins:
        if plugin.trouble and (not names or plugin.name in names):
            yield Finding(
                check="plugin",
                say=f"plugin {plugin.name} ({plugin.value}) cannot be loaded: {plugin.trouble}; the"
                " engine logs that and goes on without it",
                where=(str(plugin.at) if plugin.at else f"package {plugin.package}",),
            )


def _listed(names: list[str] | tuple[str, ...], most: int = _NAMED) -> str:
    shown = ", ".join(names[:most]) + (", ..." if len(names) > most else "")
    return shown or "none"
