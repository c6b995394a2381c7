"""Run probes, for themselves or to revise a diagnosis, and keep what they gave.

In:  names, or a log or session; the Python of the engine. Out: results, a revised diagnosis.
Not: what outcomes mean (triage.core.probes).
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triage.core.diagnosis import Diagnosis
from triage.core.physics.model import Model
from triage.core.probes.catalogue import PROBES, Probe, named
from triage.core.probes.meaning import explained
from triage.core.probes.results import ProbeResult, result_of
from triage.core.probes.revise import Revision, probes_for, revise
from triage.errors import HostError, NothingError, UsageError, hint
from triage.launch.probe import run_probe
from triage.render.documents import diagnosis_document
from triage.render.probe_document import probe_document, probe_result_of
from triage.session.logs import causes, classify, flag_table
from triage.store import SessionFolder

FOLDER = "probes"
LIMIT_S = 20.0
_PYTHONS = ("python", "python3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How to run probes. `python` is "" for that of the engine, else of triage."""

    python: str = ""
    device: str = "auto"
    limit_s: float = LIMIT_S
    model_config: Path | None = None
    settings: tuple[str, ...] = ()  # name=JSON, for one probe


def probe(name: str, asked: Asked, say: Callable[[str], None]) -> ProbeResult:
    """Run one probe by its name.

    Raises:
        UsageError: there is no such probe, or a file or setting is wrong.
        HostError: it cannot be made on this machine, or torch is missing.
    """
    found = named(name)
    if found is None:
        import difflib

        near = difflib.get_close_matches(name, [p.name for p in PROBES], 1)
        raise UsageError(
            f"there is no probe {name!r}",
            hint=hint("triage", "probe", near[0]) if near else "triage probe --list",
        )
    result = _run(found, asked, say)
    if result.outcome == "unavailable":
        raise HostError(
            f"{result.reason[:1].lower()}{result.reason[1:]}", hint=_way_out(found, result, asked)
        )
    return result


def run_all(name: str, asked: Asked) -> dict[str, Any]:
    """The document of one probe, whatever happens to it; for tools that record them all."""
    found = named(name)
    if found is None:
        raise UsageError(f"there is no probe {name!r}", hint="triage probe --list")
    return probe_document(_run(found, asked, lambda _: None))


def probe_for(
    subject: Path, asked: Asked, say: Callable[[str], None]
) -> tuple[Revision, tuple[ProbeResult, ...]]:
    """Run the probes that would discriminate the failure of a log or session, cheapest first.

    In a session results and the revised diagnosis are stored; of a log nothing is.

    Raises:
        NothingError: no cause of the failure names a probe.
        HostError: none of them can be made on this machine.
    """
    session = SessionFolder.open(subject) if (subject / "session.json").exists() else None
    diagnosis = _diagnosis(subject, session)
    wanted = probes_for(diagnosis, causes())
    if not wanted:
        what = diagnosis.cause or "a failure without a cause"
        raise NothingError(
            f"no probe would tell {what} from anything else",
            hint=hint("triage", "explain", diagnosis.cause) if diagnosis.cause
            else "triage probe --list",
        )  # fmt: skip
    asked = _as_in(session, asked, diagnosis)
    results = []
    for one in wanted:
        say(f"probe {one.name}: {one.question} (about {one.seconds} s)")
        results.append(_run(one, asked, say))
    if all(r.outcome == "unavailable" for r in results):
        raise HostError(
            f"none of {', '.join(r.probe for r in results)} can be made here: {results[0].reason}",
            hint=_way_out(wanted[0], results[0], asked),
        )
    revision = revise(diagnosis, results)
    if session is not None:
        _store(session, results, revision)
    return revision, tuple(results)


def _run(one: Probe, asked: Asked, say: Callable[[str], None]) -> ProbeResult:
    def told(line: bytes) -> None:
        try:
            made = json.loads(line.split(b" ", 1)[1])
        except ValueError:
            return
        if made.get("event") == "experiment":
            say(f"  {made.get('name')}: {made.get('outcome')} {made.get('status') or ''}".rstrip())

    ran = run_probe(
        _python(asked.python),
        one.name,
        device=asked.device,
        limit_s=asked.limit_s,
        arguments=_arguments(one, asked),
        on_line=told,
    )
    return explained(
        result_of(
            one.name,
            ran.output,
            exit_code=ran.exit_code,
            by=ran.by,
            silent=ran.silent,
            seconds=ran.seconds,
        )
    )


def _python(asked: str) -> str:
    """The interpreter's path; that of triage if none is named."""
    if not asked:
        return sys.executable
    found = shutil.which(asked)
    if found is None:
        raise UsageError(f"there is no Python {asked!r}", hint=hint("command", "-v", asked))
    return found


def _way_out(one: Probe, result: ProbeResult, asked: Asked) -> str:
    if "torch" in result.reason and one.torch:
        if not asked.python:
            return "pip install 'sglang-triage[probes]'"
        return hint(_python(asked.python), "-m", "pip", "install", "torch")
    return "nvidia-smi"


def _arguments(one: Probe, asked: Asked) -> dict[str, Any]:
    """Shapes of the model, then what was set by hand."""
    found: dict[str, Any] = {}
    if one.model and asked.model_config is not None:
        from triage.session.advise import model_from_file

        found |= _shapes(one, model_from_file(asked.model_config, str(asked.model_config)))
    for text in asked.settings:
        name, _, value = text.partition("=")
        try:
            found[name] = json.loads(value)
        except ValueError as error:
            raise UsageError(
                f"{text!r} is no setting: name=JSON is wanted",
                hint=hint("triage", "probe", one.name, "--set", "tp=8"),
            ) from error
    return found


def _shapes(one: Probe, model: Model) -> dict[str, Any]:
    if one.name == "moe-kernel":
        if not model.experts:
            return {}
        return {
            "experts": model.experts,
            "per_token": model.experts_per_token,
            "hidden": model.hidden,
            "intermediate": model.expert_intermediate,
        }
    if model.latent is None:
        raise UsageError(
            f"{model.name} has no latent attention (MLA)", hint="triage probe graph-capture"
        )
    return {
        "heads": model.heads,
        "nope": model.latent.nope_dim,
        "kv_rank": model.latent.kv_rank,
        "value": model.latent.value_dim,
    }


def _diagnosis(subject: Path, session: SessionFolder | None) -> Diagnosis:
    """Of the log, or of the last failed launch of the session."""
    if session is None:
        return classify(str(subject))
    logs = sorted(subject.glob("trials/*/server.log"), reverse=True)
    for log in logs:
        found = classify(str(log))
        if found.outcome in ("failed", "hung"):
            return found
    raise NothingError(f"{subject} holds no failed launch", hint=hint("ls", subject / "trials"))


def _as_in(session: SessionFolder | None, asked: Asked, diagnosis: Diagnosis) -> Asked:
    """With the session's own Python and the failed launch's model, where nothing else is said."""
    from dataclasses import replace

    if session is not None and not asked.python and not session.facts["simulated"]:
        python = _engine_python(session)
        asked = replace(asked, python=python) if python else asked
    named_model = diagnosis.config.get("model-path")
    if asked.model_config is None and isinstance(named_model, str):
        file = Path(named_model) / "config.json"
        asked = replace(asked, model_config=file) if file.is_file() else asked
    return asked


def _engine_python(session: SessionFolder) -> str:
    """The interpreter that the session launches its server with; "" if it is none."""
    from triage.recipe import load_recipe
    from triage.session.stored import RECIPE

    words: Sequence[str] = session.facts.get("argv", ())
    if (session.path / RECIPE).exists():
        words = load_recipe(session.path / RECIPE, flag_table()).command
    first = words[0] if words else ""
    return first if Path(first).name.rstrip("0123456789.") in _PYTHONS else ""


def stored_probes(session: SessionFolder) -> tuple[ProbeResult, ...]:
    """What the probes of a session found; a damaged file is left out."""
    found = []
    for one in PROBES:
        stored = session.read(f"{FOLDER}/{one.name}.json")
        try:
            found += [] if stored is None else [probe_result_of(stored)]
        except (KeyError, TypeError, ValueError):
            continue
    return tuple(found)


def with_probes(session: SessionFolder, diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis of a launch of the session, in the light of its probes."""
    return revise(diagnosis, stored_probes(session)).diagnosis


def _store(session: SessionFolder, results: Sequence[ProbeResult], revision: Revision) -> None:
    session.lock()
    (session.path / FOLDER).mkdir(exist_ok=True)
    for result in results:
        session.write(f"{FOLDER}/{result.probe}.json", probe_document(result))
    session.write(f"{FOLDER}/diagnosis.json", diagnosis_document(revision.diagnosis))
