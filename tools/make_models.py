"""Make tiny random models on disk, and broken copies of one, for real SGLang on the CPU.

In:  a folder, e.g. `.sglang/bin/python tools/make_models.py .models`.
Out: one model directory each; seeded, offline, the same bytes on every run.
Not: models that say anything sensible.

A model has 2 layers of width 64 and a byte-level vocabulary of 512 tokens, so that
loading takes no time and a launch spends its seconds in the engine. Every file is
written by this module: a broken copy differs from `tiny` in exactly one way.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

SHAPE = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "dtype": "bfloat16",
}
EXPERTS = {"num_experts_per_tok": 2}
THREE_HEADS = {"hidden_size": 48, "num_attention_heads": 3, "num_key_value_heads": 3}
CHAT_TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
# What `git clone` leaves of a large file where git-lfs is not installed.
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 246000\n"


def whole_models() -> dict[str, Callable[[], PreTrainedModel]]:
    """Name -> constructor of the models that start."""
    return {
        "tiny": lambda: LlamaForCausalLM(LlamaConfig(**SHAPE)),
        "three-heads": lambda: LlamaForCausalLM(LlamaConfig(**SHAPE | THREE_HEADS)),
        "mixtral": lambda: MixtralForCausalLM(
            MixtralConfig(**SHAPE, **EXPERTS, num_local_experts=4, sliding_window=None)
        ),
        "qwen3moe": lambda: Qwen3MoeForCausalLM(
            Qwen3MoeConfig(**SHAPE, **EXPERTS, num_experts=4, moe_intermediate_size=64)
        ),
    }


def broken_copies() -> dict[str, Callable[[Path], None]]:
    """Name -> what is done to a copy of `tiny`."""
    return {
        "truncated": halve_weights,
        "lfs-pointer": lambda at: (at / "model.safetensors").write_bytes(LFS_POINTER),
        "no-weights": lambda at: (at / "model.safetensors").unlink(),
        "bad-config": lambda at: (at / "config.json").write_text('{"architectures": ['),
        "bad-tokenizer": lambda at: (at / "tokenizer.json").write_text('{"not": "a tokenizer"'),
        "unknown-type": edit_config(model_type="foo", architectures=["FooForCausalLM"]),
        "custom-code": edit_config(
            model_type="custom",
            architectures=["CustomForCausalLM"],
            auto_map={"AutoConfig": "configuration_custom.CustomConfig"},
        ),
        "wrong-width": edit_config(hidden_size=128, head_dim=32),
    }


def make_tokenizer() -> PreTrainedTokenizerFast:
    """All 256 bytes and three special tokens, so that any text has a tokenization."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        special_tokens=["<s>", "</s>", "<unk>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["no server starts without a reason"], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def halve_weights(at: Path) -> None:
    """A download that broke off."""
    weights = at / "model.safetensors"
    raw = weights.read_bytes()
    weights.write_bytes(raw[: len(raw) // 2])


def edit_config(**changes: object) -> Callable[[Path], None]:
    """An editor that sets keys of config.json."""

    def edit(at: Path) -> None:
        path = at / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes, indent=2))

    return edit


def make_all(folder: Path) -> list[str]:
    """Make every model under `folder`; names in the order made.

    Each one is built aside and then renamed, so that nobody reads half a model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made: list[str] = []
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as aside:
        part = Path(aside)
        tokenizer = make_tokenizer()
        for name, construct in whole_models().items():
            torch.manual_seed(0)
            construct().to(torch.bfloat16).save_pretrained(part / name)
            tokenizer.save_pretrained(part / name)
            made.append(name)
        for name, damage in broken_copies().items():
            shutil.copytree(part / "tiny", part / name)
            damage(part / name)
            made.append(name)
        for name in made:
            shutil.rmtree(folder / name, ignore_errors=True)
            (part / name).rename(folder / name)
    return made


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_models.py DIR")
    print("made", *make_all(Path(sys.argv[1])))
