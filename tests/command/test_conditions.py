"""What a condition decides in a script is not known, and is never taken for known."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from triage.command import read_command
from triage.core.config import ServerCommand
from triage.core.flags import table_of

FLAGS = Path(__file__).parents[2] / "triage/knowledge/flags/sglang-0.5.23.yaml"
TABLE = table_of(yaml.load(FLAGS.read_text(), yaml.CSafeLoader))
SERVER = "python -m sglang.launch_server --model-path $M"


def read(text: str) -> ServerCommand:
    return read_command(text, TABLE)


@pytest.mark.parametrize(
    "before",
    [
        'M=/m; if [ -n "$X" ]; then M=/n; fi',
        "M=/m\nif x; then\n  echo\nelse\n  M=/n\nfi",
        "M=/m\nif x; then M=/n; else M=/o; fi",
        "M=/m\nif x; then if y; then M=/n; fi; fi",
        '[ -n "$X" ] && M=/n',
        'M=/m\n[ -n "$X" ] &&\n  M=/n\ntrue',
        'M=/m\n[ -n "$X" ] || M=/n',
        "M=/m\nx && { M=/n; y; }",
        "M=/m\nx || M=/n && true",
        "M=/m\nfor M in /a /b; do echo; done",
        "M=/m\nfor i in 1 2; do M=/n$i; done < list",
        "M=/m\nwhile read line; do M=/n; done",
        "M=/m\nuntil x; do M=/n; done",
        "M=/m\ncase $X in\n  a|b) M=/n ;;\n  (c) M=/o ;;\n  *) ;;\nesac",
        "M=/m\nset_model() { M=/n; }",
        "M=/m\nfunction set_model {\n M=/n\n}",
        "M=/m\nfunction set_model() {\n M=/n\n}",
        "M=/m\nif x; then unset M; fi",
        "M=/m\nif x; then M+=/n; fi",
        "M=/m\nread -r M < file",
        "export M=/m\nif x; then export M=/n; fi",
    ],
)
def test_a_variable_that_a_condition_may_set_stays_as_written(before: str) -> None:
    command = read(f"{before}\n{SERVER}")
    assert command.config.get("model-path") == "$M"
    assert command.unresolved == (("--model-path", "$M"),)
    assert "$M is set under a condition: it stands as it is written" in command.notes
    assert "M" not in command.config.env_values()


@pytest.mark.parametrize(
    ("text", "model"),
    [
        (f"M=/m; if x; then M=/n; fi; M=/o\n{SERVER}", "/o"),
        (f"M=/m; if x; then M=/n; {SERVER}; fi", "/n"),
        (f"M=/m; if x; then M=/n; else {SERVER}; fi", "/m"),
        (f"M=/m\ncase $X in a) M=/n;; *) {SERVER};; esac", "/m"),
        (f"M=/m; if x; then N=/n; fi; {SERVER}", "/m"),
        (f"cd /srv && M=/m && {SERVER}", "/m"),
        (f"M=/m &&\n  {SERVER}", "/m"),
        (f"M=/m; (M=/n; echo); {SERVER}", "/m"),
        (f"M=/m; {{ M=/n; }}; {SERVER}", "/n"),
        (f"case $X in a) N=1;; esac\nM=/m\n{SERVER}", "/m"),
        (f"f() {{ N=1; }}\nM=/m\nf\n{SERVER}", "/m"),
        (f"M=/m\nM+=/n\n{SERVER}", "/m/n"),
        (f"for i in 1 2; do\n  M=/m\n  {SERVER}\ndone", "/m"),
    ],
)
def test_what_surely_holds_where_the_server_stands_is_known(text: str, model: str) -> None:
    command = read(text)
    assert command.config.get("model-path") == model
    assert command.unresolved == ()


def test_words_added_to_an_array_under_a_condition_are_not_dropped() -> None:
    command = read(
        "ARGS=(--tp 8)\nif x; then ARGS+=(--ep-size 8); fi\n" + f'M=/m; {SERVER} "${{ARGS[@]}}"'
    )
    assert command.unresolved == (("the command", "${ARGS[@]}"),)
    assert "${ARGS[@]} is set under a condition: it stands as it is written" in command.notes


def test_an_export_under_a_condition_is_left_out_with_a_note() -> None:
    command = read(f"export A=1 B=1\nif x; then export A=2; fi\nM=/m; {SERVER}")
    assert command.config.env_values() == {"B": "1"}
    assert "A is left out of the environment: its value is not known" in command.notes


def test_an_export_that_was_unset_or_made_in_a_subshell_is_no_more() -> None:
    command = read(f"export A=1 B=1; unset A; (export C=1); M=/m; {SERVER}")
    assert command.config.env_values() == {"B": "1"}


def test_a_directory_under_a_condition_is_not_gone_to() -> None:
    command = read(f"if x; then cd /x; fi; M=/m; {SERVER}")
    assert command.cwd == ""
    assert command.unresolved == (("the working directory", "a cd under a condition"),)
    assert read(f"(cd /x; make); M=/m; {SERVER}").cwd == ""
    assert read(f"cd $DIR; M=/m; {SERVER}").unresolved == (("the working directory", "$DIR"),)


@pytest.mark.parametrize(
    ("text", "unresolved"),
    [
        ("$PYTHON -m sglang.launch_server --model-path m", ("the program", "$PYTHON")),
        ("python -m sglang.launch_server --model-path=/m/$X", ("--model-path", "$X")),
        ("sglang serve ~/models/m", ("--model-path", "~")),
        ("python -m sglang.launch_server --model-path m --tp $(n)", ("--tp-size", "$(n)")),
        ("bash -c 'sglang serve $M'", ("--model-path", "$M")),
        (
            "[Service]\nExecStart=/bin/sglang serve ${M} --host %H\n",
            ("--model-path", "${M}"),
        ),
    ],
)
def test_every_part_that_only_a_shell_knows_is_named(
    text: str, unresolved: tuple[str, str]
) -> None:
    assert unresolved in read(text).unresolved


def test_the_environment_of_triage_is_never_taken_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("M", "/from-outside")
    command = read(SERVER)
    assert command.config.get("model-path") == "$M"
    assert command.notes == ("$M is not set here: it stands as it is written",)
    command = read(SERVER.replace("$M", "${M:-/d}"))
    assert command.config.get("model-path") == "/d"
    assert command.notes == ("${M:-/d}: its default is read, although M is set where triage runs",)


def test_a_long_list_is_read_in_a_moment() -> None:
    """Each name is looked at once, however many stand before it."""
    names = " || ".join(f"A{n}=1" for n in range(40_000))
    started = time.monotonic()
    command = read(f"{names}\nM=/m; {SERVER}")
    assert command.config.get("model-path") == "/m"
    assert time.monotonic() - started < 10
