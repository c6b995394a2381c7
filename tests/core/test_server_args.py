"""The dump of the resolved arguments, in both styles, whole and cut."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from triage.core.flags import table_of
from triage.core.log.diagnose import diagnose
from triage.core.server_args import ServerArgsDump, changed_flags, find_dump, unknown_fields

FLAGS = Path(__file__).parents[2] / "triage/knowledge/flags/sglang-0.5.23.yaml"
TABLE = table_of(yaml.load(FLAGS.read_text(), yaml.CSafeLoader))

NEW = (
    "[2026-01-01 10:00:00] server_args={'model_path': '/models/x', 'tokenizer_path': '/models/x',"
    " 'tp_size': 8, 'ep_size': 1, 'enable_nccl_nvls': True, 'disable_radix_cache': False,"
    " 'random_seed': 77, 'cuda_graph_config': {'decode': {'bs': [1, 2]}},"
    " 'chat_template': \"it's, {odd\", 'mem_fraction_static': 0.88, 'lora_paths': ['a', 'b'],"
    " 'json_model_override_args': '{\"a\": 1}', 'page_size': 1, 'enable_tf32_matmul': False,"
    " 'uvicorn_access_log_exclude_prefixes': [], 'ddtree_width': 4, 'dllm_fdfo': False}\n"
    "[2026-01-01 10:00:01] next line, tp_size=3\n"
)
OLD = (
    "[2025-01-01 10:00:00] server_args=ServerArgs(model_path='/models/x', tp_size=2,"
    " mode=Mode.FAST, nested=Other(a=1, b=[2]), gone=<object at 0x1>, log_level='debug')\n"
)


def test_the_dict_style_is_read_to_its_own_bracket() -> None:
    dump = find_dump(NEW)
    assert dump is not None
    assert dump.complete
    assert dump.unreadable == ()
    assert dump.values["chat_template"] == "it's, {odd"
    assert dump.values["cuda_graph_config"] == {"decode": {"bs": [1, 2]}}
    assert len(dump.values) == 17


def test_the_call_style_is_read_and_an_object_without_a_literal_is_named() -> None:
    assert find_dump(OLD) == ServerArgsDump(
        {
            "model_path": "/models/x",
            "tp_size": 2,
            "mode": "Mode.FAST",
            "nested": {"a": 1, "b": [2]},
            "log_level": "debug",
        },
        unreadable=("gone",),
    )


def test_only_flags_that_differ_and_mean_something_are_left() -> None:
    dump = find_dump(NEW)
    assert dump is not None
    assert changed_flags(dump, TABLE) == {
        "model-path": "/models/x",
        "tp-size": "8",
        "enable-nccl-nvls": True,
        "chat-template": "it's, {odd",
        "mem-fraction-static": "0.88",
        "lora-paths": ("a", "b"),
        "json-model-override-args": '{"a": 1}',
        "dllm-fdfo": False,
    }
    assert unknown_fields(dump, TABLE) == ("ddtree_width",)


# The head and the kinds of values of each release; the values themselves are made up.
STYLES = {
    "2024, printed without a head": (
        "server_args=ServerArgs(model_path='m/Qwen2-57B', tokenizer_path='m/Qwen2-57B', dtype='auto',"
        " context_length=None, additional_ports=[8001, 8002], mem_fraction_static=0.87, tp_size=2,"
        " schedule_conservativeness=1.0, json_model_override_args='{}', lora_paths=None)\n"
    ),
    "2024, with a device": (
        "[gpu=0] server_args=ServerArgs(model_path='m/Qwen2-57B', tokenizer_path='m/Qwen2-57B',"
        " dtype='auto', context_length=None, mem_fraction_static=0.87, tp_size=2,"
        " schedule_conservativeness=1.0, json_model_override_args='{}', stream_interval=1)\n"
    ),
    "2025": (
        "[2025-06-03 10:11:12] server_args=ServerArgs(model_path='m/Qwen2-57B', dtype='auto',"
        " context_length=None, mem_fraction_static=0.87, tp_size=2, schedule_conservativeness=1.0,"
        " json_model_override_args='{}', preferred_sampling_params=None, cuda_graph_bs=[1, 2, 4],"
        " lora_paths={'a': LoRARef(lora_id='1', lora_path='/l', pinned=None)}, hooks=None,"
        " disaggregation_mode=<DisaggregationMode.NULL: 'null'>, custom_weight_loader=[])\n"
    ),
    "2026, with the place in the code": (
        "[2026-03-21 03:31:56] INFO engine.py:177: server_args=ServerArgs(model_path='m/Qwen2-57B',"
        " dtype='auto', context_length=None, mem_fraction_static=0.87, tp_size=2,"
        " schedule_conservativeness=1.0, json_model_override_args='{}', max_lora_rank=None,"
        ' kv_events_config=\'{"a": "it\\\'s"}\', ssl_keyfile=None, forward_hooks=None)\n'
    ),
    "2026, a mapping": (
        "[2026-09-11 23:34:03] server_args={'model_path': 'm/Qwen2-57B', 'dtype': 'auto',"
        " 'context_length': None, 'mem_fraction_static': 0.87, 'tp_size': 2,"
        " 'schedule_conservativeness': 1.0, 'json_model_override_args': '{}',"
        " 'cuda_graph_config': {'decode': {'backend': 'full', 'bs': [1, 2]}}}\n"
    ),
    "2026, behind a pod's head": (
        "2026-09-26T19:55:58.468Z web-67pt5 INFO server_args={'model_path': 'm/Qwen2-57B',"
        " 'dtype': 'auto', 'context_length': None, 'mem_fraction_static': 0.87, 'tp_size': 2,"
        " 'schedule_conservativeness': 1.0, 'json_model_override_args': '{}'}\n"
    ),
    "a fork's class": (
        "[2026-01-02 10:11:12] server_args=fork.args.ForkServerArgs(model_path='m/Qwen2-57B',"
        " dtype='auto', context_length=None, mem_fraction_static=0.87, tp_size=2,"
        " schedule_conservativeness=1.0, json_model_override_args='{}')\n"
    ),
}


@pytest.mark.parametrize("style", STYLES)
def test_every_release_s_style_is_read_whole_and_found_in_its_log(style: str) -> None:
    dump = find_dump(STYLES[style])
    assert dump is not None
    assert dump.complete
    assert dump.unreadable == ()
    assert {k: dump.values[k] for k in ("model_path", "dtype", "context_length", "tp_size")} == {
        "model_path": "m/Qwen2-57B", "dtype": "auto", "context_length": None, "tp_size": 2,
    }  # fmt: skip
    assert dump.values["json_model_override_args"] == "{}"
    # The same line within a log, read as a diagnosis does.
    log = f"INFO starting sglang\n{STYLES[style]}[2026-09-26 19:56:01] Init torch distributed begin.\n"
    found = diagnose([log.encode()], (), table=TABLE)
    assert dict(found.effective)["model-path"] == "m/Qwen2-57B"
    assert found.config.get("tp-size") == "2"


def test_a_line_that_only_speaks_of_the_arguments_is_no_dump() -> None:
    log = b"[2026-09-26 19:56:01] assert server_args={} is empty\n" * 3
    found = diagnose([log], (), table=TABLE)
    assert (found.effective, found.starts, found.timeline) == ((), 1, ())


@pytest.mark.parametrize("cut", range(60, NEW.index("}\n") + 1, 7))
def test_a_cut_line_loses_only_the_value_that_was_cut(cut: int) -> None:
    whole = find_dump(NEW)
    dump = find_dump(NEW[:cut])
    assert whole is not None
    assert dump is not None
    assert not dump.complete
    assert dump.unreadable == ()
    assert dump.values == {k: whole.values[k] for k in dump.values}
    assert list(whole.values)[: len(dump.values)] == list(dump.values)


def test_a_log_without_the_line_has_no_dump() -> None:
    assert find_dump("[2026-01-01 10:00:00] server_args are wrong\n{'a': 1}\n") is None


def test_a_bare_dump_is_read_without_the_words_before_it() -> None:
    dump = find_dump("{'model_path': 'm', 'tp_size': 2}")
    assert dump == ServerArgsDump({"model_path": "m", "tp_size": 2})


@pytest.mark.parametrize(
    "value",
    [
        "(" * 5000,
        "[" * 300 + "]" * 300,
        "-" * 50_000 + "1",
        "__import__('os')",
        "open('x')",
        "{**a}",
        "1 if x else 2",
        "f'{x}'",
    ],
)
def test_nothing_is_evaluated_and_deep_values_are_named(value: str) -> None:
    dump = find_dump(f"server_args={{'tp_size': 2, 'x': {value}, 'ep_size': 4}}")
    assert dump is not None
    assert dump.values["tp_size"] == 2
    assert "x" not in dump.values or dump.values["x"] == {}


def test_ten_megabytes_in_one_line_are_read_in_seconds() -> None:
    line = "server_args={" + ", ".join(f"'k{i}': 'v'" for i in range(500_000)) + "}"
    started = time.process_time()
    dump = find_dump(line)
    assert time.process_time() - started < 8
    assert dump is not None
    assert not dump.complete
