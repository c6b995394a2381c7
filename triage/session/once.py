"""Launch a command once, as typed, and say what happened.

In:  the words of a server command. Out: Once: its capture and diagnosis.
Not: searching (search.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from triage.command import read_argv, read_command_file
from triage.core.diagnosis import Diagnosis
from triage.core.evidence import Evidence
from triage.core.launch import Capture, Hung, LaunchSpec, Patience
from triage.errors import UsageError, hint
from triage.finder import fast
from triage.launch import free_port, launch
from triage.render.documents import diagnosis_document
from triage.session.evidence import Gathering, in_its_light
from triage.session.logs import causes, classify, flag_table, with_stacks
from triage.store import SessionFolder

DEFAULT_PORT = 30000  # Source: SGLang 0.5.23, server_args.py


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """One launch and what it showed."""

    capture: Capture
    diagnosis: Diagnosis
    evidence: Evidence


def run_once(
    words: Sequence[str],
    folder: Path | None,
    *,
    silent_s: float,
    total_s: float,
    settle_s: float,
    say: Callable[[str], None],
) -> Once:
    """Launch `words`, on the port they name or on a free one, and classify the log.

    Raises:
        UsageError: the program does not exist.
        HostError: the port is taken, the disk is full.
    """
    from triage.core.log.live import Live

    argv = tuple(words)
    direct, port = _named_port(words)
    session = _session(folder, argv)
    say(f"session: {session.path}")
    chosen = direct and port == 0
    with free_port() if chosen else nullcontext(port or DEFAULT_PORT) as used:
        if chosen:
            argv = (*argv, "--port", str(used))
            say(f"port: {used} (none was given)")
        elif port == 0:
            say(f"port: {used} (SGLang's default; the command names none)")
        spec = LaunchSpec(
            argv=argv,
            cwd=str(Path.cwd()),
            port=used,
            patience=Patience(silent_s=silent_s, total_s=total_s, settle_s=settle_s),
        )
        watcher, trial = Live(causes(), finder=fast), session.trial_folder(1)
        with Gathering(spec, trial, lambda: watcher.phase, words) as gathering:
            capture = launch(spec, trial, watcher, while_ready=gathering.asking(None), on_event=say)
            evidence = gathering.finish(capture)
    if isinstance(capture.outcome, Hung):
        say(f"silent for {capture.outcome.silent_s:.0f} s; stacks: {capture.stacks or 'none'}")
    diagnosis = with_stacks(classify(capture.log, outcome=capture.outcome), capture.stacks)
    diagnosis = in_its_light(diagnosis, capture.exits, evidence, capture.said)
    session.write("diagnosis.json", diagnosis_document(diagnosis))
    return Once(capture=capture, diagnosis=diagnosis, evidence=evidence)


def _session(folder: Path | None, argv: Sequence[str]) -> SessionFolder:
    """A new session for one launch, or the folder of an earlier one, whose launch is replaced.

    Raises:
        UsageError: the folder holds something else.
    """
    if folder is not None and (folder / "session.json").exists():
        session = SessionFolder.open(folder)
        if session.facts.get("name") != "run":
            raise UsageError(
                f"{folder} holds a search, not a single launch",
                hint=hint("triage", "recommend", folder),
            )
    else:
        session = SessionFolder.create(
            folder,
            {
                "digest": "",
                "name": "run",
                "engine": "sglang",
                "simulated": False,
                "replay": None,
                "sources": {},
                "argv": list(argv),
                "cwd": str(Path.cwd()),
            },
        )
    session.lock()
    return session


def _named_port(words: Sequence[str]) -> tuple[bool, int]:
    """Whether flags can be added at the end of the words, and the port that they name (or 0).

    Nothing can be added to a script or to words that start a container; what
    port a script names is read from it.
    """
    try:
        command = read_argv(words, flag_table())
        direct = not command.wrapper
    except UsageError:
        direct = False
        try:
            command = read_command_file(Path(words[-1]), flag_table())
        except UsageError:
            return False, 0
    named = command.config.get("port")
    return direct, int(named) if isinstance(named, str) and named.isdigit() else 0
