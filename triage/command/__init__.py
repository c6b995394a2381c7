"""Read server commands as people have them, and write them back with another config.

In:  an argv, a shell script or line, a `docker run` line, a systemd unit, an sbatch script,
     a Kubernetes manifest, an SGLang config file, or the `server_args=` line of a log.
Out: ServerCommand; the same text with another config.
Not: running anything.
"""

from triage.command.read import read_argv, read_command, read_command_file
from triage.command.write import command_language, write_command

__all__ = ["command_language", "read_argv", "read_command", "read_command_file", "write_command"]
