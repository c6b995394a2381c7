"""What the user set: flags and environment of one server, and edits to them.

In:  names and values that a reader already made canonical (flags.py).
Out: Config, Change, and diff/apply between two configs.
Not: parsing a command line (flags.py, triage.command) or defaults of the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from triage.core.records import dataclass, field

# A flag's value. True: the switch is present. False: its negative form
# (`--no-x`) is present. A tuple: a list flag's words. A flag that is not in a
# Config is absent from the command line.
Value = str | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Flag:
    """One server argument: canonical name without dashes, and its value."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Config:
    """The flags and environment that the user set; never a default.

    Both tuples are sorted by name, and a name occurs once, so equal configs
    are equal values and have equal keys.
    """

    flags: tuple[Flag, ...] = ()
    env: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls, flags: Mapping[str, Value] | None = None, env: Mapping[str, str] | None = None
    ) -> Config:
        """Config of two mappings, put into canonical order."""
        return cls(
            flags=tuple(Flag(name, value) for name, value in sorted((flags or {}).items())),
            env=tuple(sorted((env or {}).items())),
        )

    def flag_values(self) -> dict[str, Value]:
        """Flag name -> value, in canonical order."""
        return {flag.name: flag.value for flag in self.flags}

    def env_values(self) -> dict[str, str]:
        """Variable name -> value, in canonical order."""
        return dict(self.env)

    def get(self, name: str) -> Value | None:
        """The flag's value, or None if the user did not set it."""
        return self.flag_values().get(name)

    def without(self, names: Iterable[str]) -> Config:
        """This config less the named flags; unknown names are ignored."""
        dropped = set(names)
        return Config(tuple(f for f in self.flags if f.name not in dropped), self.env)


@dataclass(frozen=True, slots=True)
class SetFlag:
    """Set a flag, or replace its value."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class UnsetFlag:
    """Remove a flag from the command line."""

    name: str


@dataclass(frozen=True, slots=True)
class SetEnv:
    """Set an environment variable, or replace its value."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class UnsetEnv:
    """Remove a variable from the command's environment."""

    name: str


Change = SetFlag | UnsetFlag | SetEnv | UnsetEnv


def diff(old: Config, new: Config) -> tuple[Change, ...]:
    """The edits that turn `old` into `new`: flags first, each group by name."""
    changes: list[Change] = []
    before, after = old.flag_values(), new.flag_values()
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            changes.append(UnsetFlag(name))
        elif before.get(name) != after[name]:
            changes.append(SetFlag(name, after[name]))
    env_before, env_after = old.env_values(), new.env_values()
    for name in sorted(env_before.keys() | env_after.keys()):
        if name not in env_after:
            changes.append(UnsetEnv(name))
        elif env_before.get(name) != env_after[name]:
            changes.append(SetEnv(name, env_after[name]))
    return tuple(changes)


def apply(config: Config, changes: Iterable[Change]) -> Config:
    """`config` with the edits made, in order; unsetting what is absent is no error."""
    flags, env = config.flag_values(), config.env_values()
    for change in changes:
        match change:
            case SetFlag(name, value):
                flags[name] = value
            case UnsetFlag(name):
                flags.pop(name, None)
            case SetEnv(name, text):
                env[name] = text
            case UnsetEnv(name):
                env.pop(name, None)
    return Config.of(flags, env)


def words(flag: Flag) -> tuple[str, ...]:
    """The flag as command-line words; paste-ready after shell quoting.

    A value that begins with a dash is joined by `=`, or argparse would take it
    for an option; a list flag's words follow its name. A name that has dashes
    already is an option that the flag table does not know, such as `-x`.
    """
    option = flag.name if flag.name.startswith("-") else f"--{flag.name}"
    match flag.value:
        case True:
            return (option,)
        case False:
            return (f"--no-{flag.name}",)
        case str(text) | (str(text),) if text.startswith("-"):
            return (f"{option}={text}",)
        case str(text):
            return (option, text)
        case items:
            return (option, *items)


def argv(config: Config) -> tuple[str, ...]:
    """All flags as command-line words, the model first, the rest by name.

    No flag can take a word of the next one for its value: each begins with a dash.
    """
    ordered = sorted(config.flags, key=lambda f: (f.name != "model-path", f.name))
    return tuple(word for flag in ordered for word in words(flag))


@dataclass(frozen=True, slots=True)
class Given:
    """One flag as the user wrote it: words `first` to `end` (not included) of the flag words."""

    name: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """A server command as people have it, read into its parts.

    `wrapper` is what stands before the program (the `docker run` words up to
    and with the image), empty otherwise. `program` is what stands before the
    server's flags. `text` is the source as it was given, so that an edit can be
    written back in the same form; `given` says which of its words (keys, in a
    YAML file) are which flag, in their order. `notes` say what a reader had to
    assume, `problems` what the engine will refuse. `unresolved` holds the parts
    that only a shell on the user's machine could know: (which, as it is written).
    """

    form: str  # argv, shell, docker, systemd, sbatch, kubernetes, sglang-config or server-args
    program: tuple[str, ...]
    config: Config
    wrapper: tuple[str, ...] = ()
    cwd: str = ""
    text: str = ""
    notes: tuple[str, ...] = field(default=())
    given: tuple[Given, ...] = ()
    problems: tuple[str, ...] = ()
    unresolved: tuple[tuple[str, str], ...] = ()
