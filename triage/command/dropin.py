"""Write a changed systemd unit as a drop-in: what an administrator adds, not the unit itself.

In:  the command of a unit as it was read, and the config that it should have.
Out: the text of a drop-in; the unit followed by it is read as the new config.
Not: the edit of the unit itself (write.py).

Source: systemd.unit(5): settings of `UNIT.d/*.conf` come behind the unit's; an empty
`ExecStart=` or `Environment=` takes back what stood before.
"""

from __future__ import annotations

from triage.command.source import unit_environment
from triage.command.unit import locate_unit, unit_entries
from triage.command.write import write_command
from triage.core.config import Config, ServerCommand
from triage.core.flags import FlagTable

HEAD = "# A drop-in of the unit: systemctl edit UNIT, then systemctl restart UNIT\n[Service]\n"


def write_drop_in(command: ServerCommand, config: Config, table: FlagTable | None = None) -> str:
    """What to add to the unit so that it starts with this config; "" if nothing changes.

    Raises:
        UsageError: the unit is not what was read.
    """
    edited = write_command(command, config, table)
    if edited == command.text:
        return ""
    before, after = _environment(command.text), _environment(edited)
    lines: list[str] = []
    if before.keys() - after.keys():
        lines.append("Environment=")
        changed = after
    else:
        changed = {name: value for name, value in after.items() if before.get(name) != value}
    lines += [f"Environment={unit_environment(name, value)}" for name, value in changed.items()]
    old, new = _start(command.text), _start(edited)
    if old != new:
        lines += ["ExecStart=", f"ExecStart={new}"]
    return HEAD + "".join(f"{line}\n" for line in lines)


def _environment(text: str) -> dict[str, str]:
    located = locate_unit(text)
    sites = located.layers[0].sites if located else []
    return {site.name: site.value for site in sites if site.holder is not None}


def _start(text: str) -> str:
    """The value of the last ExecStart, with its continuation lines."""
    values = [text[e.start : e.end] for e in unit_entries(text) if e.key == "ExecStart"]
    return values[-1] if values else ""
