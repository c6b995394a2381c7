"""The sbatch script of a launch over several nodes: one task a node, one log a node.

In:  a LaunchSpec, a Job, a folder that all nodes share. Out: text.
Not: submitting it (slurm.py).

Source: sbatch(1), srun(1), of Slurm 22.05 to 25.05. SLURM_NODEID is known only inside a step, so
the words of the command are put together there, by a shell on each node.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from triage.core.launch import Job, LaunchSpec

# What a word of the command may hold: the task's own number, how many there are, the first node.
_PLACES = {
    "{node_rank}": '"$SLURM_NODEID"',
    "{nnodes}": '"$SLURM_NNODES"',
    "{head}": '"$TRIAGE_HEAD"',
}
_DEATHS, _REAPER, _TREE, _STACKS = (
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in ("deaths.py", "reaper.py", "tree.py", "stacks.py")
)
_GIVEN = (
    "from __future__ import annotations\n",
    "from triage.launch.deaths import Death, Deaths, exit_code\n",
    "from triage.launch import tree\n",
)
# The reaper of the node is known by the file that it writes; what it started stands below it.
_READ_STACKS = """

class tree:
    look = staticmethod(look)


def _below_the_reaper(mark):
    for pid, proc in table().items():
        words = _read(pid, "cmdline").split("\\0")
        if len(words) > 3 and words[1] == "-c" and words[3] == mark:
            return [one.pid for one in descendants([pid], table()) if one.alive]
    return []


print("== node " + sys.argv[2])
print(dump(_below_the_reaper(sys.argv[1] + sys.argv[2]), within_s=float(sys.argv[3])))
"""
_PLACE = re.compile("|".join(map(re.escape, _PLACES)))


def job_script(spec: LaunchSpec, job: Job, *, name: str, folder: str) -> str:
    """The script; `folder` is where the nodes write, and where their variables lie."""
    directives = [
        f"--job-name={name}",
        f"--nodes={job.nodes}",
        "--ntasks-per-node=1",
        f"--output={folder}/batch.log",
        "--open-mode=append",
        "--no-requeue",
        *job.options,
    ]
    inner = (
        f"set -a; . {shlex.quote(folder + '/environment')}; set +a\n"
        + "".join(f"unset {variable}\n" for variable in spec.unset_env)
        + f"cd {shlex.quote(spec.cwd)} || exit 1\n"
        + f"set -- {' '.join(map(word, spec.argv))}\n"
        + f"export TRIAGE_PORT={spec.port}\n"
        + f"command -v python3 >/dev/null && exec python3 -c {shlex.quote(node_program())} "
        + f'{shlex.quote(folder)}/exits-"$SLURM_NODEID" "$@"\n'
        + f'touch {shlex.quote(folder)}/bare-"$SLURM_NODEID"; exec "$@"'
    )
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH {shlex.quote(one) if ' ' in one else one}" for one in directives),
            'first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
            'TRIAGE_HEAD=$(scontrol show node "$first" | sed -n "s/.*NodeAddr=\\([^ ]*\\).*/\\1/p" '
            "| head -n 1)",
            "export TRIAGE_HEAD",
            f'echo "$TRIAGE_HEAD" > {shlex.quote(folder + "/head")}',
            "srun --kill-on-bad-exit=1 --unbuffered --output="
            f"{shlex.quote(folder + '/node-%n.log')} bash -c {shlex.quote(inner)}",
            "code=$?",
            f'echo "$code" > {shlex.quote(folder + "/code")}',
            "exit $code",
            "",
        ]
    )


def node_program() -> str:
    """What runs on a node: the reaper behind what it imports of ours, as one text."""
    return _DEATHS + _bare(_REAPER)


def stacks_program() -> str:
    """What reads the stacks on a node.

    Its words: how the reaper's file begins, the node's number, the seconds that it may take.
    """
    return _TREE + _bare(_STACKS) + _READ_STACKS


def _bare(text: str) -> str:
    """A module without its imports of ours."""
    for line in _GIVEN:
        text = text.replace(line, "", 1)
    return text


def word(text: str) -> str:
    """A word for the shell of each node, its placeholders as that shell's variables."""
    parts, at = [], 0
    for match in _PLACE.finditer(text):
        if text[at : match.start()]:
            parts.append(shlex.quote(text[at : match.start()]))
        parts.append(_PLACES[match[0]])
        at = match.end()
    if text[at:] or not parts:
        parts.append(shlex.quote(text[at:]))
    return "".join(parts)


def environment_text(spec: LaunchSpec) -> str:
    """The variables as assignments that a shell reads."""
    env = {"PYTHONUNBUFFERED": "1"} | dict(spec.env)
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in sorted(env.items()))
