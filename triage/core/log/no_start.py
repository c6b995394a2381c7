"""Lines that say why no engine began: refused, not found, no container.

In:  the text of a line. Out: yes or no; the wordings.
Not: how a process that began ends (endings.py).

Source: the messages of argparse, Python, bash, dash, docker, podman, runc, crun and pyxis.
"""

from __future__ import annotations

from functools import lru_cache

from triage.core.log.wordings import Wordings

# A command line that argparse refuses; compilers write "name: error: ..." too.
_REFUSED = Wordings(
    (r"^(?:[\w./-]{1,80}\.py|(?:sglang|vllm)(?: [\w-]+)?): error: ", ": error: "),
    (
        r"(?:^|[\]] )[\w./ -]{1,80}: error: (?:unrecognized arguments|ambiguous option|argument -"
        r"|the following arguments are)",
        ": error: ",
    ),
)
# The interpreter or the shell finds no engine to run, and ends. Scripts go on without modules.
_NO_PROGRAM = Wordings(
    (
        r"^[^ ]*python[\d.]*: (?:Error while finding module specification for|No module named)"
        r" '?(?:sglang|vllm)\b",
        "python",
    ),
    (r"^[^ ]*python[\d.]*: can't open file ", ": can't open file "),
)
_NO_COMMAND = Wordings(
    (
        r"^(?:[\w./-]*(?:ba|da|z|k)?sh|\S+\.sh): (?:line \d+: |\d+: )?(?:exec: )?[\w./-]*"
        r"(?:python|sglang|vllm|numactl|torchrun|srun|docker|nvidia)[\w./-]*: "
        r"(?:command not found|not found|No such file or directory|Permission denied)",
        ": No such file or directory",
        ": Permission denied",
        ": command not found",
        ": not found",
    ),
    (r"^exec: \"?\S+\"?: (?:not found|executable file not found|permission denied)",
     ": executable file not found", ": not found", ": permission denied"),
    (r"^exec \S+: (?:exec format error|no such file or directory)",
     ": exec format error", ": no such file or directory"),
    (r"^\[FATAL tini \(\d+\)\] exec \S+ failed: ", "FATAL tini "),
    (r"^zsh: command not found: (?:python|sglang|vllm)", "command not found: "),
    (r"^(?:\S*/)?env: .{1,80}: No such file or directory", "env: "),
    (
        r"^(?:nohup|timeout|nice|ionice|taskset|stdbuf|setsid|chroot|su|numactl): "
        r"(?:failed to (?:run command|execute)|execution of) .{1,200}: ",
        ": failed to run command ",
        ": failed to execute ",
        ": execution of ",
    ),
)  # fmt: skip
# A shell goes on behind most of its complaints: reasons if nothing else is there.
SCRIPT = (
    (r"^\S+: line \d+: \S", ": line "),
    (r"^(?:\S+/)?-?(?:ba|da|z|k)?sh: (?:\d+: )?\S", "sh: "),
    (r"^\S+\.sh: (?:\d+: )?\S", ".sh: "),
)
_SCRIPT = Wordings(*SCRIPT)
_CONTAINER = Wordings(
    (r"nvidia-container-cli: .*error|nvidia-container-cli: ", "nvidia-container-cli: "),
    "OCI runtime create failed",
    "unable to start container process",
    (
        r"^(?:docker|podman|Error): (?:Error response from daemon|.*Error response from daemon)",
        "Error response from daemon",
    ),
    (r"^Error response from daemon: ", "Error response from daemon: "),
    # Slurm's container plugin: `slurmstepd: error: pyxis:     enroot-switchroot: ...`.
    (
        r"error: pyxis: +(?:enroot-\w+: |couldn't |failed to |container start failed|\[ERROR\] )",
        "error: pyxis: ",
    ),
    (
        r"^Error: (?:(?:crun|runc|OCI runtime error|setting up CDI devices): |statfs )",
        "Error: OCI runtime error",
        "Error: crun: ",
        "Error: runc: ",
        "Error: setting up CDI devices",
        "Error: statfs ",
    ),
    (r"Failed at step \w+ spawning ", "Failed at step "),
)
ROWS = (*_REFUSED.rows, *_NO_PROGRAM.rows, *_NO_COMMAND.rows, *_CONTAINER.rows)


def is_refused(text: str) -> bool:
    """Whether the line is argparse's refusal of a command line."""
    return _REFUSED.search(text)


def is_no_program(text: str) -> bool:
    """Whether the line is the interpreter's: there is no engine to run."""
    return _NO_PROGRAM.search(text)


def is_no_start(text: str) -> bool:
    """Whether the line says why an engine did not begin: refused, not found, no container."""
    return is_refused(text) or is_no_program(text) or _NO_COMMAND.search(text) or is_container(text)


def is_script(text: str) -> bool:
    """Whether a shell complains, about the script that it runs or a command in it."""
    return _SCRIPT.search(text)


@lru_cache(maxsize=64)
def is_container(text: str) -> bool:
    """Whether the line is a container runtime's: no engine ever ran."""
    return _CONTAINER.search(text)
