"""Rotary position embedding in plain torch.

In:  the arguments that vLLM's kernel takes.
Out: query and key, changed in place.
Not: fast.
"""

from __future__ import annotations

import torch


def rotary_embedding(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor | None,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
) -> None:
    """Rotate the first dimensions of each head by its position's angle, in place.

    Args:
        positions: shape (tokens,), row of the cache for each token.
        query: shape (tokens, heads * head_size); `key` alike, or None.
        head_size: Elements of one head; at least the rotated ones.
        cos_sin_cache: shape (positions, rotated): half cosines, then half sines.
        is_neox: Pairs are (i, i + rotated / 2); otherwise (2i, 2i + 1).

    Source:
        Signature of rotary_embedding in vllm/_custom_ops.py, as SGLang 0.5.23
        calls it in srt/layers/rotary_embedding/base.py.
    """
    cos, sin = cos_sin_cache[positions.flatten().long()].unsqueeze(1).float().chunk(2, dim=-1)
    half = cos.shape[-1]
    if is_neox:
        first, second = slice(0, half), slice(half, 2 * half)
    else:
        first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
    for states in (query, key):
        if states is None:
            continue
        heads = states.view(cos.shape[0], -1, head_size)
        x, y = heads[..., first].float(), heads[..., second].float()
        # Both halves are computed before either is stored: x and y may be views.
        turned = x * cos - y * sin, y * cos + x * sin
        heads[..., first], heads[..., second] = (part.to(states.dtype) for part in turned)
