"""Literals as programs print them: read without evaluating, in one pass."""

from __future__ import annotations

import json
import time
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.core.literal import MAX_DEPTH, literal

SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_what_repr_writes_is_read_back(value: Any) -> None:
    assert literal(repr(value)) == value


@given(
    st.recursive(
        SCALARS.filter(lambda x: x not in (inf, -inf)),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=9,
    )
)
def test_what_json_writes_is_read_back(value: Any) -> None:
    assert literal(json.dumps(value, ensure_ascii=False)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("LoRARef(lora_id='a1', lora_path='/m/l', pinned=None)",
         {"lora_id": "a1", "lora_path": "/m/l", "pinned": None}),
        ("[LoRARef(path='x'), LoRARef(path='y')]", [{"path": "x"}, {"path": "y"}]),
        ("<DisaggregationMode.NULL: 'null'>", "DisaggregationMode.NULL"),
        ("{'mode': <Mode.A: 1>, 'kind': Mode.B}", {"mode": "Mode.A", "kind": "Mode.B"}),
        ("<class 'torch.dtype'>", "torch.dtype"),
        ("torch.bfloat16", "torch.bfloat16"),
        ("PosixPath('/models/x')", "/models/x"),
        ("{'b', 'a', 'c'}", ["a", "b", "c"]),
        ("frozenset({2, 1})", [1, 2]),
        ("OrderedDict([('a', 1), ('b', Name(c=[Mode.A]))])",
         [("a", 1), ("b", {"c": ["Mode.A"]})]),
        ("Pair(1, 2)", [1, 2]), ("Pair(1, second=2)", {"0": 1, "second": 2}), ("Other()", {}),
        ("b'ab\\x63'", "abc"), ("(1,)", (1,)), ("(1)", 1), ("()", ()), ("{}", {}),
        ("[1, 2,]", [1, 2]), ("1e-05", 1e-05), ("-3", -3), ("inf", float("inf")),
        ("'\\ud800'", "\ufffd"), ("'it\\'s \\u00e9'", "it's \u00e9"),
    ],
)  # fmt: skip
def test_what_programs_print_for_objects_is_read_as_far_as_it_is_plain(
    text: str, value: object
) -> None:
    assert literal(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "1 2", "[1", "1]", "[1}", "{'a': }", "{'a': 1, 2}", "{,}", "[,1]", "a=1",
        "{a=1}", "{[1]: 2}", "X('a': 1)", "__import__('os')", "open('x')", "a.b('x')", "f'{x}'",
        "1 if x else 2", "[x for x in y]", "{**a}", "lambda: 1", "1 + 2", "-a", "<object at 0x1>",
        "<function f at 0x7f>", "'a", "'a\nb'", "'a' 'b'", "9" * 500, "1.2.3", "...", "`x`",
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        literal(text)


@given(st.text(alphabet="[](){}'\"\\,:= aX1.<>-\n\x00", max_size=60))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    try:
        literal(text)
    except ValueError as error:
        assert str(error)  # noqa: PT017  either way is right, a crash is not


@pytest.mark.parametrize(
    "piece", ["[", "(", "{'a':", "X(", "X(a=", "'", '"', "\\", "1,", "-", "<", "a.", " ", "9_"]
)
def test_time_grows_with_the_length_only(piece: str) -> None:
    def seconds(count: int) -> float:
        text, started = piece * count, time.process_time()
        with pytest.raises(ValueError, match=r"."):
            literal(f"{text}!")
        return time.process_time() - started

    seconds(100)
    assert seconds(200_000) < 1.5
