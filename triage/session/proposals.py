"""From a log, or the log of a single launch, to proposals in the form of the user's command.

In:  a log; the command that was typed, if there is one. Out: Advised: diagnosis, proposals,
and each proposal as the command to paste.
Not: the proposal of a search (handover.py), ranking (triage.core.handover.propose).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from triage.command import (
    command_language,
    read_argv,
    read_command,
    read_command_file,
    write_command,
)
from triage.command.dropin import write_drop_in
from triage.core.causes import Cause
from triage.core.config import Config, ServerCommand
from triage.core.diagnosis import Diagnosis
from triage.core.flags import FlagTable
from triage.core.handover.actions import diff_commands
from triage.core.handover.proposals import Proposal, Proposals
from triage.core.handover.propose import propose
from triage.core.hide import hide_config, hide_literals, secret_values
from triage.core.redact import MARKER
from triage.core.server_args import find_dump
from triage.errors import NothingError, TriageError, UsageError, hint
from triage.session.logs import causes, classify, flag_table, log_sources

PROGRAM = ("python3", "-m", "sglang.launch_server")
_HEAD_BYTES = 4 << 20  # the arguments and the names of the GPUs stand near the start
_FULL = 40  # fields of a whole dump; a shorter one was cut, or made up
_GPU = re.compile(
    r"(?:NVIDIA[ _](?:Tesla[ _])?|Tesla[ _])"
    r"(?P<gpu>(?:[ABHLPV]\d{2,3}|T4|GB\d{2,3}|GeForce[ _]RTX[ _]\d{4}|RTX[ _]PRO[ _]\d{4}))"
    r"(?![0-9])"
)
# A number in a message may be what a kernel asks for; only a chosen runner tells what there is.
_CHOSEN = re.compile(r"(?:backend on |--gpu-name=)sm_?(?P<sm>\d{2,3})a?\b")
_CAPABILITY = {
    "P100": "60", "V100": "70", "T4": "75", "GeForce RTX 2080": "75", "GeForce RTX 3090": "86",
    "A100": "80", "A800": "80", "A10": "86", "L4": "89", "L40": "89", "L20": "89",
    "H100": "90", "H200": "90", "H800": "90", "H20": "90", "B200": "100", "GB200": "100",
    "B300": "103", "GB300": "103", "RTX PRO 6000": "120", "GeForce RTX 5090": "120",
    "GeForce RTX 4090": "89", "GB10": "121",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One proposal as the user pastes it.

    `text` is the command, "" where there is none; `language` names its syntax for a code
    block. `diff` compares it with the command that failed. `notes` say what to know before
    pasting: a hidden secret, what the form cannot hold.
    """

    text: str = ""
    language: str = "sh"
    diff: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """What is known of a failed launch, and what to do. `given`: the user gave the command."""

    source: str
    diagnosis: Diagnosis
    found: Proposals
    command: ServerCommand | None
    given: bool

    def written(self, option: Proposal) -> Written:
        """The option in the form of the user's command, secrets hidden."""
        if self.command is None or option.config is None:
            return Written()
        return written(self.command, option.config, flag_table())


def advise(
    log: str,
    command_file: Path | None = None,
    *,
    typed: ServerCommand | None = None,
    tried: Sequence[Config] = (),
    weights: Mapping[str, float] | None = None,
    here: bool = False,
) -> Advised:
    """The proposals against the failure in a log.

    Args:
        log: A path, or "-" for standard input.
        command_file: The command that was typed; without it, the one that the log tells.
        typed: The same, read already.
        tried: Configurations that failed already.
        weights: How much each flag or variable is wanted.
        here: The launch was made on this machine, whose GPUs count as facts.

    Raises:
        NothingError: the log holds no line of an engine, or is of a launch that came up.
        UsageError: the log stands for several, or the file holds no command.
    """
    sources = log_sources((log,))
    if len(sources) != 1:
        raise UsageError(
            f"{log} stands for {len(sources)} logs: name the one of the launch to repair",
            hint=hint("triage", "recommend", sources[0]),
        )
    (source,) = sources
    table = flag_table()
    diagnosis = classify(source)
    if diagnosis.outcome == "empty":
        raise NothingError(
            f"{source} holds no line of an engine", hint=hint("triage", "classify", source)
        )
    if diagnosis.outcome == "healthy":
        raise NothingError(
            f"the launch of {source} came up: there is nothing to repair",
            hint=hint("triage", "classify", source),
        )
    own = read_command_file(command_file, table) if command_file else typed
    command = own or _rebuilt(diagnosis)
    machine = this_machine() if here else {}
    found = proposals_of(
        diagnosis, own.config if own else None, tried=tried, weights=weights, machine=machine
    )
    return Advised(
        source=source,
        diagnosis=diagnosis,
        found=found,
        command=command,
        given=own is not None,
    )


def typed_in(argv: Sequence[str]) -> ServerCommand | None:
    """The command of a single launch, from its words; None if they hold none that can be read."""
    try:
        return read_argv(argv, flag_table())
    except TriageError:
        return None


def proposals_of(
    diagnosis: Diagnosis,
    config: Config | None = None,
    *,
    tried: Sequence[Config] = (),
    weights: Mapping[str, float] | None = None,
    pinned: Sequence[str] = (),
    known: Sequence[Cause] | None = None,
    machine: Mapping[str, str] | None = None,
) -> Proposals:
    """The proposals against a diagnosed failure, with what its log tells of the machine.

    Args:
        diagnosis: Of the launch; its log is read again if it is a file.
        config: What was typed, if it is known; else what the log tells.
        tried: Configurations that failed already.
        weights: How much each flag or variable is wanted.
        pinned: Flags that stay as they are.
        known: The causes, if not triage's own.
        machine: Facts of the machine of the launch, as `machine_facts` gives them.
    """
    head = _head(Path(diagnosis.source))
    everything = causes() if known is None else known
    return propose(
        diagnosis,
        config,
        cause=next((one for one in everything if one.id == diagnosis.cause), None),
        table=flag_table(),
        facts=facts_in(head) | dict(machine or {}),
        fields=fields_in(head),
        weights=weights,
        pinned=pinned,
        tried=tried,
    )


def _rebuilt(diagnosis: Diagnosis) -> ServerCommand | None:
    """The command that the log tells: its arguments under the usual program."""
    if not diagnosis.config.flags or diagnosis.engine != "sglang":
        return None
    return ServerCommand(form="server-args", program=PROGRAM, config=diagnosis.config)


def _head(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""  # classify has read it, and told why if it could not


def machine_facts(gpus: Sequence[tuple[str, str]], driver: str = "") -> dict[str, str]:
    """Facts under the names that preconditions use, of (name, capability as 10.3) of each GPU."""
    facts = {"gpus": str(len(gpus))} if gpus else {}
    if driver:
        facts["driver"] = driver
    for name, capability in gpus[:1]:
        if model := _GPU.search(f"NVIDIA {name.removeprefix('NVIDIA ')}"):
            facts["gpu"] = model["gpu"]
        if capability:
            facts["capability"] = capability.replace(".", "")
    return facts


def this_machine() -> dict[str, str]:
    """What the driver of this machine tells; empty without one."""
    from triage.core.machine.facts import Unavailable, known_or
    from triage.machine.gpus import gpus

    found = gpus()
    if isinstance(found, Unavailable):
        return {}
    pairs = []
    for gpu in found.devices:
        major, minor = known_or(gpu.capability, (0, 0))
        pairs.append((gpu.name, f"{major}.{minor}" if major else ""))
    return machine_facts(pairs, found.driver)


def facts_in(text: str) -> dict[str, str]:
    """What a log says of the machine: the GPU, its compute capability."""
    facts: dict[str, str] = {}
    if found := _GPU.search(text):
        facts["gpu"] = found["gpu"].replace("_", " ")
        if facts["gpu"] in _CAPABILITY:
            facts["capability"] = _CAPABILITY[facts["gpu"]]
    if chosen := _CHOSEN.search(text):
        facts["capability"] = chosen["sm"]
    return facts


def fields_in(text: str) -> frozenset[str]:
    """The names of all arguments that the engine printed; empty if the line is not whole."""
    at = text.find("server_args=")
    end = text.find("\n", at)
    dump = find_dump(text[at : end if end >= 0 else None]) if at >= 0 else None
    if dump is None or not dump.complete or len(dump.values) < _FULL:
        return frozenset()
    return frozenset(dump.values)


def written(
    command: ServerCommand, config: Config, table: FlagTable, *, failed: Config | None = None
) -> Written:
    """The command with another config, in its own form; of a unit, a drop-in.

    The diff is against the command with the `failed` config, without it against its own.

    Secrets of both configs are hidden, also in the diff; what is printed is read as the
    config with its secrets hidden, or a note says that it is not.
    """
    before = command.config if failed is None else failed
    secrets = secret_values(command.config, before, config)
    try:
        old = _harmless(command, before, secrets, table)
        new = _harmless(command, config, secrets, table)
        text = new.text
        if command.form == "systemd":
            drop_in = _harmless(command, config, secrets, table, as_drop_in=True)
            text, new = drop_in.text, _Harmless(new.text, exact=drop_in.exact)
    except UsageError as error:
        return Written(notes=tuple(filter(None, (error.message, error.hint))))
    notes = [f"{how} in {what} is not known here" for what, how in command.unresolved]
    if MARKER in text:
        notes.append(f"{MARKER} stands for a secret that was hidden; put the value in its place")
    if not new.exact:
        notes.append("something that looks like a secret was hidden: compare before you paste")
    return Written(
        text=text,
        language=command_language(command.form),
        diff=diff_commands(old.text, new.text, "failed"),
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class _Harmless:
    """A command without secrets, and whether it still says what was meant."""

    text: str
    exact: bool


def _harmless(
    command: ServerCommand,
    config: Config,
    secrets: Sequence[str],
    table: FlagTable,
    *,
    as_drop_in: bool = False,
) -> _Harmless:
    """The command with its secrets hidden where they stand, else with hidden values put in.

    The first keeps a variable that holds a secret; the second is exact whatever the quoting.
    """
    write = write_drop_in if as_drop_in else write_command
    before = f"{command.text}\n" if as_drop_in else ""
    meant = hide_config(config)
    tried = ""
    for one, hidden in ((config, secrets), (meant, ())):
        tried = hide_literals(write(command, one, table), hidden)
        try:
            if read_command(before + tried, table).config == meant:
                return _Harmless(tried, exact=True)
        except TriageError:
            continue
    return _Harmless(tried, exact=False)
