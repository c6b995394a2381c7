"""Find the server's program and its flags among the words of one command.

In:  the words of a simple command, with the layers of text around them.
Out: Located, or None if the command starts no server.
Not: the meaning of the flags (triage.core.flags).

Source: `sglang/cli/serve.py` and `sglang/launch_server.py` of SGLang 0.5.23 for
what starts a server; env(1), timeout(1), numactl(8) for their options.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from triage.command.docker import PROGRAMS, read_docker_run
from triage.command.source import ASSIGNMENT, EnvSite, Layer, Located, Word, values
from triage.errors import UsageError

# Words that only start what follows: a launch of ours does without them.
STARTERS = {"exec": "-a", "nohup": "", "setsid": "", "command": "", "builtin": ""}
# Wrappers that change how the server runs; option letters that take a word.
WRAPPERS = {
    "numactl": ("-i", "-N", "-m", "-C", "-p", "-P", "-w"),
    "taskset": (),
    "nice": ("-n",),
    "ionice": ("-c", "-n"),
    "chrt": (),
    "stdbuf": ("-i", "-o", "-e"),
    "sudo": ("-u", "-g", "-C", "-h", "-p"),
    "prlimit": (),
}
WRAPPER_OPERANDS = {"taskset": 1, "chrt": 1}
TIMEOUT_WITH_VALUE = ("-s", "-k")
LAUNCHERS = frozenset(["srun", "mpirun", "mpiexec"])
SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh"])
MAX_DEPTH = 4

# Finds the server in the text of a `sh -c`.
Inner = Callable[[str, list[Layer]], Located | None]


@dataclass(slots=True)
class _Peeled:
    """What was taken off in front of the program."""

    at: int = 0
    kept: list[str] = field(default_factory=list)
    wrapper: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cwd: str = ""
    entrypoint: str = ""


def locate(words: Sequence[Word], form: str, layers: list[Layer], inner: Inner) -> Located | None:
    """The server that these words start.

    `layers` ends with the text that the words stand in; its `env_at` is set
    already. `inner` reads the string of a `sh -c`.
    """
    layer = layers[-1]
    peeled = _Peeled()
    while peeled.at < len(words):
        base = _base(words[peeled.at].value)
        if _base(peeled.entrypoint) in SHELLS and words[peeled.at].value.startswith("-"):
            peeled.at -= 1  # the shell is the entry point, its options follow the image
            return _inside(words, form, layers, inner, peeled)
        if base in SHELLS:
            return _inside(words, form, layers, inner, peeled)
        if not _peel(words, layers, peeled, base):
            break
    rest = words[peeled.at :]
    flags = _flags_start(values(rest))
    if flags is None:
        return None
    program = (*peeled.kept, *values(rest[:flags]))
    before = words[: peeled.at + flags]
    located = Located(
        form="docker" if peeled.wrapper and form == "shell" else form,
        layers=layers,
        program=program,
        program_end=before[-1].end if before else words[0].start,
        words=tuple(rest[flags:]),
        wrapper=tuple(peeled.wrapper),
        cwd=peeled.cwd,
        env={site.name: site.value for one in layers for site in one.sites},
        notes=list(peeled.notes),
        unresolved=[("the program", w.value) for w in before if w.open and w.value in program],
    )
    _take_positional(located)
    if layer.env_as != "docker" and not layer.env_at:
        layer.env_at = words[0].start
    return located


def _take_positional(located: Located) -> None:
    """`sglang serve MODEL`: the model stands where only options may stand otherwise."""
    words = located.words
    if located.program[-1:] == ("serve",) and words and not words[0].value.startswith("-"):
        located.positional, located.words = words[0], words[1:]
        located.program_end = words[0].end


def _peel(words: Sequence[Word], layers: list[Layer], peeled: _Peeled, base: str) -> bool:
    """Takes one wrapper off; False if the word is none."""
    at, layer = peeled.at, layers[-1]
    if base in STARTERS:
        peeled.at = _skip_options(words, at + 1, (STARTERS[base],))
    elif base == "env":
        _peel_env(words, layer, peeled)
    elif base == "timeout":
        peeled.at = _skip_options(words, at + 1, TIMEOUT_WITH_VALUE) + 1
        peeled.notes.append("`timeout` is left out: the launch has its own patience")
    elif base in WRAPPERS:
        end = _skip_options(words, at + 1, WRAPPERS[base]) + WRAPPER_OPERANDS.get(base, 0)
        peeled.kept += values(words[at:end])
        peeled.at = end
    elif base in PROGRAMS:
        return _peel_docker(words, layers, peeled)
    elif base in LAUNCHERS:
        return _peel_launcher(words, peeled)
    else:
        return False
    return True


def _peel_launcher(words: Sequence[Word], peeled: _Peeled) -> bool:
    """`srun OPTIONS bash -c STRING`: the options, which are many, end where a shell begins."""
    own = _named_server(values(words))  # from here on a word `sh` is the value of a flag
    for at in range(peeled.at + 1, len(words) if own is None else own):
        if _base(words[at].value) in SHELLS and words[at + 1 :]:
            peeled.kept += values(words[peeled.at : at])
            peeled.at = at
            return True
    return False


def _peel_env(words: Sequence[Word], layer: Layer, peeled: _Peeled) -> None:
    start = peeled.at
    at = _skip_options(words, start + 1, ("-u", "-C", "-S"))
    kept = at > start + 1
    while at < len(words) and (assignment := ASSIGNMENT.match(words[at].value)):
        word = words[at]
        name, value = assignment["name"], word.value[assignment.end() :]
        if word.open:
            peeled.notes.append(f"{name} is left out of the environment: its value is not known")
        else:
            layer.sites.append(EnvSite(name, value, word.start, word.start, word.end))
        at += 1
    if kept:
        peeled.kept += values(words[start:at])
    peeled.at = at


def _peel_docker(words: Sequence[Word], layers: list[Layer], peeled: _Peeled) -> bool:
    run = read_docker_run(words[peeled.at :])
    if run is None:
        return False
    layer = layers[-1]
    if any(one.sites for one in layers):
        names = ", ".join(site.name for one in layers for site in one.sites)
        peeled.notes.append(f"{names}: set for the container tool, not inside the container")
    for one in layers:
        one.sites.clear()
    for site in run.sites:
        if site.open:
            run.notes.append(f"{site.name} is left out of the environment: its value is not known")
        else:
            layer.sites.append(site)
    image = peeled.at + run.image
    layer.env_at, layer.env_as = words[image].start, "docker"
    peeled.wrapper = [*peeled.kept, *values(words[peeled.at : image + 1])]
    peeled.kept = []
    peeled.notes += run.notes
    peeled.cwd, peeled.entrypoint = run.workdir, run.entrypoint
    peeled.at = image + 1
    return True


def _inside(
    words: Sequence[Word], form: str, layers: list[Layer], inner: Inner, peeled: _Peeled
) -> Located | None:
    """The server in the string of `bash -c STRING`."""
    at = peeled.at + 1
    while at < len(words) and words[at].value.startswith("-") and "c" not in words[at].value[1:]:
        at += 1
    if at + 1 >= len(words) or not words[at].value.startswith("-") or len(layers) > MAX_DEPTH:
        return None
    layers[-1].link = words[at + 1]
    found = inner(words[at + 1].value, layers)
    if found is None:
        layers[-1].link = None
        return None
    found.form = "docker" if peeled.wrapper and form == "shell" else form
    found.wrapper = (*peeled.wrapper, *found.wrapper)
    found.program = (*peeled.kept, *found.program)
    found.cwd = found.cwd or peeled.cwd
    found.notes = [*peeled.notes, *found.notes]
    return found


def _skip_options(words: Sequence[Word], at: int, with_value: Sequence[str]) -> int:
    while at < len(words) and words[at].value.startswith("-"):
        word = words[at].value
        at += 2 if word in with_value else 1
        if word == "--":
            break
    return at


def _flags_start(words: tuple[str, ...]) -> int | None:
    """Position of the first word that is the server's own, None if no server is started."""
    named = _named_server(words)
    if named is not None:
        return named
    for at, word in enumerate(words):
        if word == "--model-path" or word.startswith("--model-path="):
            # A program of the user's: what follows its last bare `--`, or its first option.
            for split in range(at - 1, -1, -1):
                if words[split] == "--":
                    return split + 1
            return next(i for i, w in enumerate(words) if w.startswith("--"))
    return None


def _named_server(words: tuple[str, ...]) -> int | None:
    """Position after the words that name the engine's own server, None if they stand nowhere."""
    for at, word in enumerate(words):
        if word == "sglang.launch_server" and at and words[at - 1] == "-m":
            return at + 1
        if word == "-msglang.launch_server" or _base(word) == "launch_server.py":
            return at + 1
        if _base(word) == "sglang" and words[at + 1 : at + 2] == ("serve",):
            return at + 2
    return None


def _base(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def no_server(what: str) -> UsageError:
    """Nothing in the text starts a server."""
    return UsageError(
        f"{what} starts no SGLang server that triage can see",
        hint="give a command such as: python -m sglang.launch_server --model-path MODEL",
    )
