"""Short pieces of text that a search looks for in place of the literals that hold them.

In:  literals. Out: clues, of which one is in every line that has a literal.
Not: looking for either (finder.py).

A search of one pass is the faster the fewer texts it looks for, and the sooner ready. What
many literals share is one of them: `CUDA error: ` stands for thirty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heapreplace

# What a healthy server prints all day, as SGLang 0.5.23, uvicorn, NCCL and tqdm do.
ORDINARY_LINES = (
    "[2026-07-01 12:00:00 TP0] Decode batch, #running-req: 3, #token: 2451, token usage: 0.01, "
    "cuda graph: True, gen throughput (token/s): 120.30, #queue-req: 0",
    "[2026-07-01 12:00:00 TP0] Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, "
    "token usage: 0.00, #running-req: 0, #queue-req: 0, input throughput (token/s): 22.00",
    '[2026-07-01 12:00:00] INFO:     10.0.3.7:51532 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    '[2026-07-01 12:00:00] INFO:     10.0.3.7:51532 - "GET /health HTTP/1.1" 200 OK',
    "[2026-07-01 12:00:00] Receive: obj=GenerateReqInput(rid='1', text='x', sampling_params={})",
    "[2026-07-01 12:00:00] Finish: obj=GenerateReqInput(rid='1'), out={'text': 'y'}",
    "node7:4100:4200 [0] NCCL INFO AllReduce: opCount 5 sendbuff 0x7f count 5 datatype 9 op 0",
    "node7:4100:4200 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
    " 42%|####      | 22/52 [00:01<00:03,  9.81it/s]",
)
# Characters of a clue. Shorter ones are in more innocent lines, longer ones are more.
_SHORTEST, _LONGEST = 8, 12

Clue = tuple[str, tuple[int, ...]]


def clues_of(texts: Mapping[int, str]) -> tuple[Clue, ...]:
    """Clues to numbered texts, each with the numbers of those that it is a piece of.

    Every text has one clue. A text that shares no piece with another, or only what a healthy
    server prints all the time, is its own.
    """
    ordinary = "\n".join(ORDINARY_LINES)
    owners: dict[str, set[int]] = {}
    for number, text in texts.items():
        for piece in _pieces(text):
            owners.setdefault(piece, set()).add(number)
    # The piece of most texts first, of which the longest; how many are left is known late.
    heap = [
        (-len(some), -len(piece), piece)
        for piece, some in owners.items()
        if len(some) > 1 and piece not in ordinary
    ]
    heapify(heap)
    left = set(texts)
    found: list[Clue] = []
    while heap:
        count, length, piece = heap[0]
        some = owners[piece] & left
        if len(some) < 2:  # noqa: PLR2004
            heappop(heap)
        elif len(some) < -count:
            heapreplace(heap, (-len(some), length, piece))
        else:
            heappop(heap)
            found.append((piece, tuple(sorted(some))))
            left -= some
    return (*found, *((texts[number], (number,)) for number in sorted(left)))


def _pieces(text: str) -> Sequence[str]:
    return [
        text[at : at + length]
        for length in range(_SHORTEST, _LONGEST + 1)
        for at in range(len(text) - length + 1)
    ]
