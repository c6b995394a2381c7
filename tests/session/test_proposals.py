"""What is printed of a proposal: the command in its own form, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_forms import ENV, FORMS, TABLE, flag_values, in_a_config_file
from hypothesis import HealthCheck, given, settings

from triage.command import read_command
from triage.core.config import Config, SetEnv, SetFlag, Value, apply
from triage.core.hide import hide_config
from triage.core.redact import MARKER
from triage.session.logs import classify
from triage.session.proposals import facts_in, fields_in, machine_facts, proposals_of, written

CASES = Path(__file__).parents[2] / "fixtures/cases"

SECRETS = (SetFlag("api-key", "open sesame-4711"), SetEnv("HF_TOKEN", "hf_abcdefghijklmnopqrstuv"))


@pytest.mark.parametrize("form", [f for f in FORMS if f != "bare"])
@given(flags=flag_values(), env=ENV)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_what_is_printed_is_the_new_config_with_its_secrets_hidden(
    form: str, flags: dict[str, Value], env: dict[str, str]
) -> None:
    command = read_command(FORMS[form], TABLE)
    if "yaml" in form:
        flags, env = in_a_config_file(flags), {}
    plain = {name: value for name, value in flags.items() if not name.endswith("token")}
    new = Config.of({**plain, "model-path": "m"}, env)
    new = apply(new, SECRETS[: 1 if "yaml" in form else 2])
    shown = written(command, new, TABLE)
    assert "4711" not in shown.text + shown.diff
    assert "hf_abc" not in shown.text + shown.diff
    assert any(note.startswith(MARKER) for note in shown.notes)
    whole = f"{FORMS[form]}\n{shown.text}" if command.form == "systemd" else shown.text
    assert read_command(whole, TABLE).config == hide_config(new)


def test_a_config_file_says_where_a_variable_goes() -> None:
    command = read_command(FORMS["yaml"], TABLE)
    shown = written(command, apply(command.config, [SetEnv("NCCL_DEBUG", "INFO")]), TABLE)
    assert shown.text == ""
    assert "before the command" in shown.notes[1]


def test_the_diff_names_the_failed_and_the_proposed_command() -> None:
    command = read_command(FORMS["docker"], TABLE)
    diff = written(command, apply(command.config, [SetFlag("tp-size", "4")]), TABLE).diff
    assert diff.splitlines()[:2] == ["--- failed", "+++ proposed"]
    assert "-  --tp 8" in diff.splitlines()
    assert "+  --tp 4" in diff.splitlines()


def test_facts_are_read_from_the_log() -> None:
    text = "loaded on NVIDIA B300 SXM6 AC\nserver_args=ServerArgs(model_path='m')\n"
    assert facts_in(text) == {"gpu": "B300", "capability": "103"}
    assert facts_in("device_name=NVIDIA_H100_80GB") == {"gpu": "H100", "capability": "90"}
    assert facts_in("as MoE runner backend on sm100 for") == {"capability": "100"}
    assert facts_in("kernel needs sm_90, compute capability 8.0 or later") == {}
    assert fields_in(text) == frozenset()  # a short dump proves nothing of what is missing
    whole = ", ".join(f"'field_{n}': None" for n in range(80))
    assert "field_7" in fields_in(f"server_args={{'model_path': 'm', {whole}}}\n")


def test_gpus_of_the_machine_count_as_facts() -> None:
    assert machine_facts([("NVIDIA B300 SXM6 AC", "10.3")] * 4, "580.95") == {
        "gpus": "4", "gpu": "B300", "capability": "103", "driver": "580.95"
    }  # fmt: skip
    assert machine_facts([]) == {}


def test_a_width_is_cut_to_the_gpus_that_there_are() -> None:
    log = next(CASES.glob("cuda-invalid-device-ordinal--tp8-on-four-gpus/server.log"))
    diagnosis = classify(str(log))
    found = proposals_of(diagnosis, machine={"gpus": "4"})
    assert found.launchable[0].changes == (SetFlag("tp-size", "4"),)
