"""The unit that a launch runs as: the user's own text, and a drop-in on top of it.

In:  a LaunchSpec, a Unit, where its output goes. Out: texts of three files.
Not: installing or starting it (systemd.py).

Source: systemd.unit(5) on drop-ins, systemd.service(5), systemd.exec(5) on EnvironmentFile=.
"""

from __future__ import annotations

import os
import re
import shutil

from triage.core.launch import LaunchSpec, Unit

_SECTION = re.compile(r"^[ \t]*\[(?P<name>[^\]\n]*)\][^\n]*$", re.MULTILINE)

# What a launch that is watched from outside must not have: it would be started again, be
# called ready or ended by somebody else, or not be one service.
_OVER = """\
[Unit]
OnFailure=
OnSuccess=
StartLimitIntervalSec=0

[Service]
Type=exec
Restart=no
ExecStartPost=
ExecStop=
ExecStopPost=
PIDFile=
WatchdogSec=0
TimeoutStartSec=infinity
RuntimeMaxSec=infinity
TimeoutStopSec=10
KillMode=control-group
LogRateLimitIntervalSec=0
"""


def unit_text(unit: Unit) -> str:
    """The unit as it stands, without what installs it; a bare one if there is none."""
    if not unit.text:
        return "[Unit]\nDescription=a launch of triage\n\n[Service]\n"
    parts = list(_SECTION.finditer(unit.text))
    kept, at = [], 0
    for number, part in enumerate(parts):
        end = parts[number + 1].start() if number + 1 < len(parts) else len(unit.text)
        kept.append(unit.text[at : part.start()])
        if part["name"].strip() != "Install":
            kept.append(unit.text[part.start() : end])
        at = end
    return "".join(kept)


def drop_in(spec: LaunchSpec, unit: Unit, *, output: str, variables: str) -> str:
    """The settings that stand above the unit's: our command, our output, our ends."""
    lines = [
        f"StandardOutput=append:{output}",
        "StandardError=inherit",
        f"EnvironmentFile={_plain(variables)}",
    ]
    if spec.unset_env:
        lines.append(f"UnsetEnvironment={' '.join(spec.unset_env)}")
    if not unit.whole:
        program, *rest = spec.argv
        found = program if "/" in program else shutil.which(program, path=_path(spec)) or program
        words = [found, *rest]
        lines += ["ExecStart=", "ExecStart=" + " ".join(quoted(word) for word in words)]
    if not unit.text:
        lines.append(f"WorkingDirectory={_plain(os.path.abspath(spec.cwd))}")  # noqa: PTH100
        lines.append("LimitMEMLOCK=infinity")
    return _OVER + "\n".join(lines) + "\n"


def quoted(word: str) -> str:
    """A word of ExecStart=: always in quotes, nothing in it expanded."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    text = text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return '"' + re.sub(r"[\x01-\x1f\x7f]", lambda match: f"\\x{ord(match[0]):02x}", text) + '"'


def environment_text(spec: LaunchSpec, unit: Unit) -> str:
    """The variables, in the form of EnvironmentFile=, which only the manager reads."""
    env = dict(spec.env)
    if not unit.text:  # what a process would inherit, as far as it finds programs and files by it
        inherited = ("PATH", "HOME", "LD_LIBRARY_PATH", "CUDA_HOME", "HF_HOME", "HF_HUB_OFFLINE")
        gone = set(spec.unset_env)
        env = {n: os.environ[n] for n in inherited if n in os.environ and n not in gone} | env
    env.setdefault("PYTHONUNBUFFERED", "1")
    return "".join(f"{name}={_value(value)}\n" for name, value in sorted(env.items()))


def _value(text: str) -> str:
    """Between double quotes a backslash takes the meaning from `"`, itself, `$` and a backtick."""
    return '"' + re.sub(r'(["\\`$])', r"\\\1", text) + '"'


def _plain(path: str) -> str:
    return path.replace("%", "%%")


def _path(spec: LaunchSpec) -> str:
    return dict(spec.env).get("PATH", os.environ.get("PATH", os.defpath))
