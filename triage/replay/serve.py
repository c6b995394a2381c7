"""The HTTP side of the simulated server.

In:  requests as SGLang's clients send them. Out: JSON answers, each with `"simulated": true`.
Not: what the answers are (manner.py).
"""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from triage.replay.manner import Manner

MAX_BODY_BYTES = 8 << 20
GET_PATHS = {
    "/model_info": "info",
    "/get_model_info": "info",
    "/server_info": "server",
    "/get_server_info": "server",
    "/v1/models": "models",
    "/ping": "empty",
}


class Front(ThreadingHTTPServer):
    """The listener of one launch; binding happens when it is made.

    Raises:
        OSError: the address is in use or not ours.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256  # as many may knock at once

    def __init__(
        self,
        host: str,
        port: int,
        args: dict[str, object],
        log: Callable[[str], None],
        manner: Manner,
    ) -> None:
        self.args = args
        self.log = log
        self.manner = manner
        self.answered = 0  # generations
        self.count = threading.Lock()
        self.warm = False
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without the look-up of our own name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)

    def call(self, method: str, path: str, body: object = None) -> None:
        """One request to ourselves, as SGLang's warm-up sends it."""
        host, port = str(self.server_address[0]), int(self.server_address[1])
        connection = HTTPConnection("127.0.0.1" if host in ("0.0.0.0", "") else host, port, 10)  # noqa: S104
        connection.request(method, path, None if body is None else json.dumps(body))
        connection.getresponse().read()
        connection.close()


class _Handler(BaseHTTPRequestHandler):
    server: Front
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in ("/health", "/health_generate"):
            self._answer(200 if self.server.warm else 503, {})
            return
        model = self.server.args.get("model_path")
        match GET_PATHS.get(path):
            case "info":
                self._answer(200, {"model_path": model, "is_generation": True})
            case "server":
                self._answer(200, {**self.server.args, **self.server.manner.info()})
            case "models":
                context = self.server.manner.context
                told = {"id": model, "object": "model", "max_model_len": context}
                self._answer(200, {"object": "list", "data": [told]})
            case "empty":
                self._answer(200, {})
            case _:
                self._answer(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            self._answer(400, {"error": {"message": "The body is no JSON object."}})
            return
        try:
            match self.path.partition("?")[0]:
                case "/generate":
                    self._in_turn(self._generate, body)
                case "/v1/completions":
                    self._in_turn(self._complete, body)
                case "/health_generate" | "/freeze_gc":
                    self._answer(200, {})
                case _:
                    self._answer(404, {"detail": "Not Found"})
        except (TypeError, ValueError) as error:
            self._answer(400, {"error": {"message": f"Bad value: {error}"}})

    def _in_turn(self, answer: Callable[[dict[str, Any]], None], body: dict[str, Any]) -> None:
        """Answer a generation, unless this server fails at it, or has answered enough."""
        front = self.server
        with front.count:
            front.answered += 1
            most = front.manner.fails_after
            over = most is not None and front.answered > most
        if front.manner.answers == "error":
            self._answer(500, {"error": {"message": "the model worker does not answer"}})
        elif over:
            self._answer(503, {"error": {"message": f"the worker is gone after {most} answers"}})
        else:
            answer(body)

    def _generate(self, body: dict[str, Any]) -> None:
        given = body.get("text", body.get("input_ids"))
        sampling = body.get("sampling_params") or {}
        if given is None or body.get("stream") or not isinstance(sampling, dict):
            raise ValueError("text or input_ids without stream is what this server answers")
        tokens = sampling.get("max_new_tokens", 128)
        warmth = sampling.get("temperature", 1.0)
        if isinstance(given, list) and given and isinstance(given[0], (str, list)):
            self._answer_raw(200, [self._spoken(part, tokens, warmth) for part in given])
        else:
            self._answer(200, self._spoken(given, tokens, warmth))

    def _spoken(self, prompt: object, tokens: object, warmth: object) -> dict[str, Any]:
        return self.server.manner.spoken(prompt, tokens, warmth)

    def _complete(self, body: dict[str, Any]) -> None:
        prompts = body.get("prompt")
        if prompts is None:
            raise ValueError("a prompt is what this server answers")
        many = prompts if isinstance(prompts, list) else [prompts]
        spoken = [
            self._spoken(part, body.get("max_tokens", 16), body.get("temperature", 1.0))
            for part in many
        ]
        if body.get("stream"):
            self._stream(spoken[0], body)
            return
        choices = [
            {"index": index, "text": answer["text"], "finish_reason": "length"}
            for index, answer in enumerate(spoken)
        ]
        model = body.get("model", self.server.args.get("model_path"))
        self._answer(200, {"object": "text_completion", "model": model, "choices": choices})

    def _stream(self, spoken: dict[str, Any], body: dict[str, Any]) -> None:
        """One answer as server-sent events, a word each, and its usage at the end."""
        words = str(spoken["text"]).split(" ")
        parts = [f" {word}" for word in words[1:]] if len(words) > 1 else words
        events: list[dict[str, Any]] = [{"choices": [{"index": 0, "text": part}]} for part in parts]
        usage = {"completion_tokens": len(spoken["output_ids"])}
        events.append({"choices": [], "usage": usage})
        common = {"object": "text_completion", "model": body.get("model"), "simulated": True}
        lines = [f"data: {json.dumps(common | event)}\n\n" for event in events]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in (*lines, "data: [DONE]\n\n"):
            raw = line.encode()
            self.wfile.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _body(self) -> dict[str, Any] | None:
        try:
            length = int(self.headers.get("Content-Length", "0"))
            if not 0 <= length <= MAX_BODY_BYTES:
                return None
            body = json.loads(self.rfile.read(length) or b"{}")
        except ValueError:  # no number, no JSON, no UTF-8
            return None
        return body if isinstance(body, dict) else None

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        self._answer_raw(status, document)

    def _answer_raw(self, status: int, document: dict[str, Any] | list[dict[str, Any]]) -> None:
        parts = document if isinstance(document, list) else [document]
        for part in parts:
            part["simulated"] = True
        raw = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        del size
        words = self.responses.get(int(code), ("", ""))[0]
        address, port = self.client_address[:2]
        self.server.log(f'INFO:     {address}:{port} - "{self.requestline}" {int(code)} {words}')

    def log_message(self, format: str, *args: object) -> None:
        del format, args
