"""How a simulated server answers once it has started.

In:  a landscape's entry. Out: Manner, and what is spoken to a prompt.
Not: HTTP (serve.py) or a model: words are drawn from the prompt's hash, so temperature 0
repeats them.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

MAX_NEW_TOKENS = 4096
SYLLABLES = ("ba", "do", "fe", "gi", "ku", "la", "me", "no", "pi", "ru", "sa", "te", "vo", "wi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """What the server does with a request, and what it tells of itself."""

    answers: str = "words"
    accept_length: float | None = None
    fails_after: int | None = None
    pool_tokens: int = 0
    context: int = 0

    def info(self) -> dict[str, Any]:
        """What /server_info says beside the arguments."""
        state = {"max_total_num_tokens": self.pool_tokens}
        accepts = self.accept_length
        told = state if accepts is None else {**state, "avg_spec_accept_length": accepts}
        return {
            "version": "simulated",
            "max_total_num_tokens": self.pool_tokens,
            "internal_states": [told],
        }

    def spoken(self, prompt: object, tokens: object, temperature: object) -> dict[str, Any]:
        """The answer to a prompt, as /generate gives it.

        Raises:
            ValueError: the number of tokens or the temperature is none.
        """
        count = int(str(tokens))
        if not 0 <= count <= MAX_NEW_TOKENS:
            raise ValueError(f"max_new_tokens {count} is not within 0 to {MAX_NEW_TOKENS}")
        same = float(str(temperature)) == 0 and self.answers != "changing"
        ids = self._ids(prompt, count, b"" if same else os.urandom(8))
        return {
            "text": "".join(map(self._word, ids)),
            "output_ids": ids,
            "meta_info": {
                "finish_reason": {"type": "length", "length": count},
                "completion_tokens": len(ids),
            },
        }

    def _ids(self, prompt: object, count: int, salt: bytes) -> list[int]:
        if self.answers == "empty":
            return []
        if self.answers == "garbage":
            return [0] * count
        seed = json.dumps(prompt).encode() + salt
        return [
            int.from_bytes(sha256(seed + index.to_bytes(4, "big")).digest()[:4], "big")
            % len(SYLLABLES) ** 2
            for index in range(count)
        ]

    def _word(self, token: int) -> str:
        if self.answers == "garbage":
            return "!"
        if self.answers == "noise":
            return "\ufffd" if token % 3 else "a"
        first, second = divmod(token, len(SYLLABLES))
        return f" {SYLLABLES[first]}{SYLLABLES[second]}"
