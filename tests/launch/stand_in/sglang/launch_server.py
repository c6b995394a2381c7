"""The way of a launch."""

from __future__ import annotations

import multiprocessing

from sglang.srt.server_args import ServerArgs, resolve


def work() -> None:
    """Never reached in a resolution."""
    raise SystemExit("a process was started")


def run_server(record: ServerArgs) -> None:
    """Resolve, then start a process."""
    resolve(record)
    if record.values.get("process", True):
        multiprocessing.get_context("spawn").Process(target=work).start()
