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
    started = time.process_time()
    command = read(f"{names}\nM=/m; {SERVER}")
    assert command.config.get("model-path") == "/m"
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("text", "unresolved", "env"),
    [
        (f"M=/m {SERVER}", "$M", {"M": "/m"}),
        (f"M=/m >log {SERVER}", "$M", {"M": "/m"}),
        (f"M+=/m {SERVER}", "$M", {}),
        (f"M=/m true; {SERVER}", "$M", {}),
        (f"if x; then M=/m y; fi; {SERVER}", "$M", {}),
    ],
)
def test_assignments_before_a_command_are_not_seen_by_its_words(
    text: str, unresolved: str, env: dict[str, str]
) -> None:
    command = read(text)
    assert command.unresolved == (("--model-path", unresolved),)
    assert command.config.env_values() == env
    assert "$M is not set here: it stands as it is written" in command.notes


def test_two_assignments_before_the_server_leave_both_words_unresolved() -> None:
    command = read(f"M=/m2 TP=8 {SERVER} --tp-size $TP")
    assert command.unresolved == (("--model-path", "$M"), ("--tp-size", "$TP"))
    assert command.config.env_values() == {"M": "/m2", "TP": "8"}


def test_the_value_from_before_is_what_the_words_of_a_command_get() -> None:
    command = read(f"M=/m; export TP=4; TP=8 {SERVER} --tp-size $TP")
    assert command.config.flag_values() == {"model-path": "/m", "tp-size": "4"}
    assert command.config.env_values() == {"TP": "8"}
    command = read(f"M=/m; export TP=4\nif x; then TP=5; fi\nTP=8 {SERVER} --tp-size $TP")
    assert command.unresolved == (("--tp-size", "$TP"),)
    assert command.config.env_values() == {"TP": "8"}
    assert read(f"M=/m; TP=8 B=$TP {SERVER}").config.env_values() == {"TP": "8", "B": "8"}


@pytest.mark.parametrize(
    "between",
    [
        "M=/n | cat",
        "cat | M=/n",
        "x |\n M=/n",
        "M=/n &",
        "true && M=/n &",
        "{ M=/n; } &",
        "{ M=/n; } | cat",
        "if x; then M=/n; fi &",
        "for i in 1; do M=/n; done | cat",
        "while read i; do M=/n; done < f | cat",
        "x | while read i; do M=/n; done",
        "case $X in a|b) M=/n;; esac &",
        "(M=/n) && y | { M=/n; }",
        "read M | cat",
        "(( M = 9 )) | cat",
        "(source env.sh)",
        "((M == 9))",
        "((x); (M=/n))",
        "M=/n true",
        "M+=/n true",
    ],
)
def test_what_runs_in_a_subshell_changes_nothing(between: str) -> None:
    command = read(f"M=/m\n{between}\n{SERVER}")
    assert command.config.get("model-path") == "/m"
    assert command.unresolved == ()


@pytest.mark.parametrize(
    "text",
    [
        f"M=/m\n{SERVER} | tee log",
        f"M=/m\n{SERVER} &\nwait",
        f"true; {{ M=/m; {SERVER}; }} 2>&1 | tee log",
        f"M=/m && {SERVER} &",
        f"case $X in a|b) M=/m; {SERVER};; esac",
        f"if (x) then M=/m; {SERVER}; fi",
        f"M=/n\nx & M=/m\n{SERVER}",
        f"x | y; M=/m\n{SERVER}",
    ],
)
def test_what_was_set_in_the_same_subshell_is_known(text: str) -> None:
    command = read(text)
    assert command.config.get("model-path") == "/m"
    assert command.unresolved == ()


@pytest.mark.parametrize(
    ("between", "why"),
    [
        ("printf -v M 7", "is set by printf"),
        ("printf -vM %s 7", "is set by printf"),
        ("let M=3", "is set by arithmetic"),
        ("let 'N = 1' M++", "is set by arithmetic"),
        ("(( M = 9 ))", "is set by arithmetic"),
        ("((M <<= (1 + 2)))", "is set by arithmetic"),
        ("echo $((M++))", "is set by arithmetic"),
        ("for ((M=0; M<3; M++)); do x; done", "is set under a condition"),
        ("eval M=5", "may be set by `eval M=5`"),
        ("source ./env.sh", "may be set by `source ./env.sh`"),
        (". ./env.sh", "may be set by `. ./env.sh`"),
        ("declare M=/n", "is set by declare"),
        ("mapfile -t M < f", "is set under a condition"),
        ("M=/n $EMPTY", "is set under a condition"),
    ],
)
def test_what_is_set_by_other_means_is_not_known(between: str, why: str) -> None:
    command = read(f"EMPTY=\nM=/m\n{between}\n{SERVER}")
    assert command.unresolved == (("--model-path", "$M"),)
    assert f"$M {why}: it stands as it is written" in command.notes


def test_a_text_that_is_not_read_makes_every_name_unsure_with_a_note() -> None:
    command = read(f"M=/m TP=4\nARGS=(a)\nsource x.sh\nPORT=1\n{SERVER} --tp $TP --port $PORT")
    assert command.unresolved == (("--model-path", "$M"), ("--tp-size", "$TP"))
    assert command.config.get("port") == "1"
    assert "`source x.sh` is not read: ARGS, M, TP may have another value after it" in command.notes
    command = read(f"eval A=5\n{SERVER.replace('$M', '${A:-7}')}")
    assert command.unresolved == (("--model-path", "${A:-7}"),)
    command = read(f"source x.sh\n{SERVER.replace('$M', '${A:-/m}')}")
    assert command.config.flag_values() == {"model-path": "/m"}
    assert "${A:-/m}: its default is read, although `source x.sh` may set it" in command.notes


@pytest.mark.parametrize("end", ["", "\n", " &\nwait\n", " | tee log\n"])
def test_the_directory_is_the_one_in_which_the_server_stands(end: str) -> None:
    command = read(f"M=/m; cd /srv && {SERVER}{end}")
    assert command.cwd == "/srv"
    assert command.unresolved == ()
    assert read(f"M=/m; (cd /srv; {SERVER})").cwd == "/srv"
