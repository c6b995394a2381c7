"""The way of a launch: resolve, start a process, serve."""

from __future__ import annotations

import http.server
import json
import multiprocessing
import os
import sys
from typing import Any

from sglang.srt.server_args import ServerArgs, prepare_server_args, resolve


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as an engine does."""

    def log_message(self, *_: object) -> None:
        """Silent."""

    def reply(self, answer: object) -> None:
        """One JSON document."""
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """Health."""
        self.reply({"data": [{"id": "stand-in"}]})

    def do_POST(self) -> None:
        """Generation."""
        asked: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.reply({"text": f"{asked.get('text')}, said the stand-in"})


def work() -> None:
    """What a worker would do."""


def run_server(record: ServerArgs) -> None:
    """Resolve, start a process, then serve."""
    resolve(record)
    if not record.values.get("process", True):
        return
    print(f"[2026-01-01 10:00:00] server_args={record.resolved_dict()!r}", flush=True)
    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join()
    address = record.values["host"] or "127.0.0.1", record.values["port"]
    server = http.server.ThreadingHTTPServer(address, Handler)
    print("[2026-01-01 10:00:01] The server is fired up and ready to roll!", flush=True)
    server.serve_forever()


if "STAND_IN_OLD" in os.environ:
    launch_server = run_server
    del run_server

if __name__ == "__main__":
    run_server(prepare_server_args(sys.argv[1:]))
