"""The flags of the stand-in, and their resolution."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any


class DeprecatedAlias(argparse.Action):
    """An old flag; its class is its mark."""

    def __init__(self, *words: Any, new_flag: str = "", **options: Any) -> None:
        super().__init__(*words, **options)
        self.new_flag = new_flag

    def __call__(self, *_: Any) -> None:
        """Ignored."""


class ServerArgs:
    """The record."""

    def __init__(self, values: argparse.Namespace) -> None:
        self.values = vars(values)

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> None:
        """Its flags."""
        parser.add_argument("--model-path", "--model", required=True)
        parser.add_argument("--host")
        parser.add_argument("--port", type=int, default=30000)
        parser.add_argument("--page-size", type=int, default=1)
        parser.add_argument("--chunked-prefill-size", type=int)
        parser.add_argument("--policy", choices=["b", "a"], default="a")
        parser.add_argument("--spec", action=argparse.BooleanOptionalAction)
        parser.add_argument("--old", help="(Deprecated, use --policy) Gone soon.")
        parser.add_argument("--older", action=DeprecatedAlias, new_flag="--chunked-prefill-size")
        parser.add_argument("--names", nargs="+")
        parser.add_argument("--note", nargs="?")
        parser.add_argument("--deed", default="", help="What it does instead of a resolution.")

    def resolved_dict(self) -> dict[str, Any]:
        """What is in effect."""
        return self.values


def prepare_server_args(words: list[str]) -> ServerArgs:
    """Parse."""
    parser = argparse.ArgumentParser(prog="sglang serve")
    ServerArgs.add_cli_args(parser)
    return ServerArgs(parser.parse_args(words))


def resolve(record: ServerArgs) -> None:
    """Check and fill in, or misbehave as `--deed` says."""
    values = record.values
    deed, _, what = values["deed"].partition(":")
    if deed == "hang":
        time.sleep(1000)
    elif deed == "die":
        os._exit(3)
    elif deed == "kill-parent":
        os.kill(os.getppid(), 9)
        time.sleep(1000)
    elif deed == "chatter":
        for _ in range(20_000):
            print("chatter " * 10)
        print("the last word")
        raise ValueError("too much said")
    elif deed == "huge":
        values["huge"] = "x" * (20 << 20)
    elif deed == "orphan":
        if os.fork() == 0:
            os.setsid()
            time.sleep(1000)
    elif deed == "recursive":
        inner: list[Any] = []
        inner.append(inner)
        raise ValueError(inner)
    elif deed == "return":
        values["process"] = False
    elif deed == "exit":
        sys.exit(what)
    elif deed == "env":
        os.environ["NCCL_NVLS_ENABLE"] = "1"
        os.environ.pop("STAND_IN_GONE", None)
        values["seen"] = os.environ.get(what)
    elif deed == "where":
        values["cwd"], values["path"], values["argv"] = os.getcwd(), list(sys.path), list(sys.argv)
    if values["page_size"] == 16:
        values["page_size"] = 64
    if values["chunked_prefill_size"] is not None:
        assert values["chunked_prefill_size"] % values["page_size"] == 0, "chunk must be divisible by page_size"
