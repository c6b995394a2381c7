"""Parallel requests to a running server, each answer read as it comes.

In:  a Server, how many at once, how many in all, how long at most. Out: a Level.
Not: judging (triage.core.handover.checks). aiohttp is imported late: it takes a tenth of a second.

The requests go to the OpenAI-compatible endpoint, as a client of the server's would send
them. The prompts differ from their first word on, so that no prefix cache answers for the
model, and `ignore_eos` keeps all answers of one length where the server knows it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from triage.core.handover.load import Level, Request, level_of
from triage.errors import HostError, hint
from triage.launch.server import Server

if TYPE_CHECKING:
    import aiohttp

_TICK_S = 2.0  # between two words about how far it is
_SUBJECTS = ("rivers", "bread", "clocks", "winter", "maps", "bridges", "salt", "the moon")
_SHOWN = 160  # characters of an error
_OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What to send: `requests` in all at each level, answers of `tokens` tokens.

    A level ends after `seconds` at the latest: what runs then is given up and counted. It
    goes on beyond `requests` until `least_s` are over, for readings of a steady state.
    """

    requests: int = 8
    tokens: int = 64
    seconds: float = 120.0
    least_s: float = 0.0


def put_load(
    server: Server,
    concurrency: int,
    load: Load,
    *,
    measured: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> Level:
    """Send requests, always `concurrency` of them at once, and return what came of them.

    At least `concurrency` requests are sent. With `measured` false (a simulated server)
    nothing but counts is returned.

    Raises:
        HostError: aiohttp is not installed.
    """
    require_client()
    used = time.thread_time()
    requests, seconds = asyncio.run(_Level(server, concurrency, load, say).run())
    share = (time.thread_time() - used) / seconds if seconds > 0 else None
    return level_of(
        concurrency,
        requests,
        seconds,
        client_share=round(share, 3) if share is not None and measured else None,
        measured=measured,
    )


def require_client() -> None:
    """Refuse early what could not be sent later.

    Raises:
        HostError: aiohttp is not installed.
    """
    try:
        import aiohttp  # noqa: F401
    except ImportError as error:
        raise HostError(
            "a load needs aiohttp, which is not installed",
            hint=hint("python", "-m", "pip", "install", "aiohttp"),
        ) from error


class _Level:
    def __init__(
        self, server: Server, concurrency: int, load: Load, say: Callable[[str], None]
    ) -> None:
        self.server, self.concurrency, self.load, self.say = server, concurrency, load, say
        self.total = max(load.requests, concurrency)
        self.next = 0
        self.done: list[Request] = []
        self.tokens = 0
        self.began = 0.0

    async def run(self) -> tuple[list[Request], float]:
        """All requests, and the seconds from the first to the last."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_read=self.load.seconds)
        connector = aiohttp.TCPConnector(limit=self.concurrency)
        async with aiohttp.ClientSession(
            timeout=timeout, connector=connector, headers=self.server.headers
        ) as session:
            model = await self._model(session)
            self.began = time.monotonic()
            workers = [
                asyncio.create_task(self._worker(session, model)) for _ in range(self.concurrency)
            ]
            teller = asyncio.create_task(self._tell())
            _, late = await asyncio.wait(workers, timeout=self.load.seconds)
            for worker in late:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            seconds = self._now()
            teller.cancel()
            with suppress(asyncio.CancelledError):
                await teller
        for worker in workers:
            if not worker.cancelled() and (error := worker.exception()) is not None:
                raise error
        return self.done, seconds

    def _now(self) -> float:
        return time.monotonic() - self.began

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self.say(
                f"load {self.concurrency}: {len(self.done)} of {max(self.total, self.next)} "
                f"answered after {self._now():.0f} s"
            )

    async def _worker(self, session: aiohttp.ClientSession, model: str) -> None:
        while self.next < self.total or self._now() < self.load.least_s:
            number = self.next
            self.next += 1
            self.server.asked = time.monotonic()
            await self._request(session, model, number)
            self.server.asked = time.monotonic()

    async def _request(self, session: aiohttp.ClientSession, model: str, number: int) -> None:
        """One answer, read to its end; whatever happens is noted, also being given up."""
        body = {
            "model": model,
            "prompt": f"{number + 1} thoughts on {_SUBJECTS[number % len(_SUBJECTS)]}: first,",
            "max_tokens": self.load.tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "ignore_eos": True,
        }
        sent, arrivals, tokens, error, cut = self._now(), [], 0, "", False
        try:
            async with session.post(f"{self.server.url}/v1/completions", json=body) as response:
                if response.status != _OK:
                    text = await response.text()
                    error = f"HTTP {response.status}: {text[:_SHOWN]}"
                else:
                    async for event in _events(response):
                        if "error" in event:
                            error = str(event["error"])[:_SHOWN]
                        if _has_text(event):
                            arrivals.append(self._now())
                        tokens = _count(event) or tokens
            if not error and not arrivals and not tokens:
                error = "an empty answer"
        except asyncio.CancelledError:
            cut = True
        except Exception as failure:  # noqa: BLE001  of the connection, whatever the library calls it
            said = f"{type(failure).__name__}: {failure}" if str(failure) else repr(failure)
            error = said[:_SHOWN]
        self.done.append(
            Request(
                sent=sent,
                arrivals=tuple(arrivals),
                ended=self._now(),
                tokens=tokens or len(arrivals),
                error=error,
                cut=cut,
            )
        )
        if cut:
            raise asyncio.CancelledError

    async def _model(self, session: aiohttp.ClientSession) -> str:
        """The name that the server goes by; any will do where it does not say."""
        with suppress(Exception):
            async with session.get(f"{self.server.url}/v1/models") as response:
                told = await response.json(content_type=None)
                return str(told["data"][0]["id"])
        return "default"


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """The JSON objects of a stream of server-sent events."""
    async for line in response.content:
        text = line.strip()
        if not text.startswith(b"data:") or text == b"data: [DONE]":
            continue
        with suppress(ValueError):
            event = json.loads(text.removeprefix(b"data:"))
            if isinstance(event, dict):
                yield event


def _has_text(event: dict[str, Any]) -> bool:
    match event.get("choices"):
        case [{"text": str(text)}, *_]:
            return bool(text)
        case _:
            return False


def _count(event: dict[str, Any]) -> int:
    match event.get("usage"):
        case {"completion_tokens": int(count)}:
            return count
        case _:
            return 0
