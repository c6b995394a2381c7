"""A running server's HTTP side: is it healthy, and what does it answer to a prompt?

In:  address and port of a listener. Out: text that the server generated.
Not: whether that listener is ours (ready.py). http.client is imported late: the guard
imports this package.

Source: SGLang 0.5.23 serves /health and /generate; an OpenAI-like server /v1/completions.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NOT_FOUND, _BAD_REQUEST, _OK, _ERROR = 404, 400, 200, 400


class Refused(OSError):  # noqa: N818  it names what the server did
    """The server answered a request with an HTTP error, or with what is no answer."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"HTTP {status}: {body[:300]}")
        self.status = status


class Server:
    """A server that listens; requests may be made from several threads at once.

    Args:
        host: Address that the listener is bound to, never a wildcard.
        port: Its port.
        pids: Gives the launch's live processes.
        api_key: Sent as bearer token unless empty.
        timeout_s: Longest wait for the next bytes of an answer.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        pids: Callable[[], tuple[int, ...]],
        api_key: str = "",
        timeout_s: float = 600.0,
    ) -> None:
        self.host = host
        self.port = port
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self.timeout_s = timeout_s
        self.asked = 0.0  # when a request of ours last began or ended, on the monotonic clock
        self._pids = pids
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def pids(self) -> tuple[int, ...]:
        """The launch's processes that are alive now."""
        return self._pids()

    def healthy(self, timeout_s: float = 25.0) -> bool:
        """Whether /health answers 200; SGLang itself may take 20 s to say no."""
        status, _ = self._request("GET", "/health", None, timeout_s)
        return status == _OK

    def generate(self, prompt: str, max_new_tokens: int) -> str:
        """The continuation of `prompt` at temperature 0, of at most `max_new_tokens` tokens.

        A server that was started without its tokenizer gets, and answers,
        token ids; they are returned as words.

        Raises:
            Refused: The server answered with an error.
            TimeoutError: No answer in time.
            OSError: The connection was refused or broke.
        """
        text, ids, _ = self.ask(prompt, max_new_tokens)
        return text or " ".join(map(str, ids))

    def ask(
        self, prompt: str, max_new_tokens: int
    ) -> tuple[str, tuple[int, ...], dict[str, object]]:
        """The same, taken apart: text, token ids if they are told, and the answer's own notes.

        Raises: see `generate`.
        """
        sampling = {"max_new_tokens": max_new_tokens, "temperature": 0}
        status, answer = self._request(
            "POST", "/generate", {"text": prompt, "sampling_params": sampling}
        )
        if status == _NOT_FOUND:
            return self._complete(prompt, max_new_tokens), (), {}
        if status == _BAD_REQUEST and "tokenizer" in str(answer):
            ids = [ord(letter) % 100 + 1 for letter in prompt]
            status, answer = self._request(
                "POST", "/generate", {"input_ids": ids, "sampling_params": sampling}
            )
        answer = answer[0] if isinstance(answer, list) and answer else answer
        if status != _OK or not isinstance(answer, dict):
            raise Refused(status, str(answer))
        text, numbers, notes = (answer.get(k) for k in ("text", "output_ids", "meta_info"))
        if not isinstance(text, str) and not (isinstance(numbers, list) and numbers):
            raise Refused(status, str(answer))
        told = tuple(n for n in numbers if isinstance(n, int)) if isinstance(numbers, list) else ()
        return (
            text if isinstance(text, str) else "",
            told,
            notes if isinstance(notes, dict) else {},
        )

    def get(self, path: str, timeout_s: float = 25.0) -> object:
        """What the server answers there, decoded; text if it is no JSON, None if it is an error.

        Raises:
            OSError: The connection was refused or broke, or no answer came in time.
        """
        status, answer = self._request("GET", path, None, timeout_s)
        return answer if status == _OK else None

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return dict(self._headers)

    def _complete(self, prompt: str, max_new_tokens: int) -> str:
        _, models = self._request("GET", "/v1/models", None)
        match models:
            case {"data": [{"id": str(model)}, *_]}:
                pass
            case _:
                model = "default"
        status, answer = self._request(
            "POST",
            "/v1/completions",
            {"model": model, "prompt": prompt, "max_tokens": max_new_tokens, "temperature": 0},
        )
        match answer:
            case {"choices": [{"text": str(text)}, *_]} if status == _OK:
                return text
        raise Refused(status, str(answer))

    def _request(
        self, method: str, path: str, body: object, timeout_s: float | None = None
    ) -> tuple[int, object]:
        """Status and decoded answer; an answer that is no JSON is given as text."""
        import http.client
        import json

        connection = http.client.HTTPConnection(
            self.host, self.port, timeout=timeout_s or self.timeout_s
        )
        self.asked = time.monotonic()
        try:
            text = None if body is None else json.dumps(body)
            headers = self._headers | {"Content-Type": "application/json"}
            connection.request(method, path, text, headers)
            response = connection.getresponse()
            raw = response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"{self.url}{path}: {error!r}") from error
        finally:
            self.asked = time.monotonic()
            connection.close()
        try:
            return response.status, json.loads(raw)
        except ValueError:
            return response.status, raw.decode(errors="replace")
