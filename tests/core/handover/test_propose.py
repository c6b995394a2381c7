"""Proposals from a diagnosis: their order, what is ruled out, and the configurations."""

from __future__ import annotations

from triage.core.causes import Cause, Remedy
from triage.core.config import Config, SetEnv, SetFlag, UnsetFlag
from triage.core.diagnosis import Advice, Diagnosis, Root, Suspect
from triage.core.handover.proposals import Basis, Kind, Proposals, Span
from triage.core.handover.propose import propose
from triage.knowledge import load_flag_table

TABLE = load_flag_table()
CONFIG = Config.of({"model-path": "/m", "ep-size": "8", "mem-fraction-static": "0.9"})


def advice(say: str, *changes: object, evidence: str = "inferred", disposition: str = "safe",
           needs: tuple[str, ...] = (), probe: bool = False, span: tuple[str, ...] = ()) -> Advice:  # fmt: skip
    return Advice(say=say, changes=changes, disposition=disposition, cost="",  # type: ignore[arg-type]
                  evidence=evidence, needs=needs, probe=probe, span=span)  # fmt: skip


def of(*remedies: Advice, config: Config = CONFIG, text: str = "", engine: str = "sglang",
       suspects: tuple[Suspect, ...] = ()) -> Diagnosis:  # fmt: skip
    root = Root(line=1, offset=0, rank="main", time=None, text=text)
    return Diagnosis(source="x", outcome="failed", cause="c", engine=engine, config=config,
                     remedies=remedies, root=root, suspects=suspects)  # fmt: skip


def said(found: Proposals) -> list[str]:
    return [option.say for option in found.options]


def test_evidence_comes_before_disposition_and_disposition_before_size() -> None:
    found = propose(
        of(
            advice("inferred and safe", SetFlag("page-size", "1")),
            advice("reported and manual", evidence="user-confirmed", disposition="manual"),
            advice("reported and lossy", UnsetFlag("ep-size"), evidence="maintainer-confirmed",
                   disposition="lossy"),
            advice("stated", SetFlag("page-size", "64"), evidence="program-output"),
            advice("two edits", SetFlag("page-size", "2"), SetFlag("dtype", "auto")),
        ),
        table=TABLE,
    )  # fmt: skip
    assert said(found) == [
        "reported and lossy", "reported and manual", "stated", "inferred and safe", "two edits"
    ]  # fmt: skip
    assert found.options[0].basis is Basis.REPORTED
    assert [o.say for o in found.launchable] == [
        "reported and lossy", "stated", "inferred and safe", "two edits"
    ]  # fmt: skip


def test_what_is_wanted_more_is_given_up_later() -> None:
    remedies = (
        advice("without ep", UnsetFlag("ep-size"), disposition="lossy"),
        advice("less memory", SetFlag("mem-fraction-static", "0.8"), disposition="lossy"),
    )
    assert said(propose(of(*remedies), table=TABLE))[0] == "less memory"
    weights = {"mem-fraction-static": 9.0}
    assert said(propose(of(*remedies), table=TABLE, weights=weights))[0] == "without ep"


def test_a_proposal_has_the_configuration_that_it_leads_to() -> None:
    (option,) = propose(
        of(advice("x", UnsetFlag("ep-size"), SetEnv("A", "1"))), table=TABLE
    ).options
    assert option.config == Config.of(
        {"model-path": "/m", "mem-fraction-static": "0.9"}, {"A": "1"}
    )
    assert option.given_up == ("ep-size",)
    assert (option.kind, option.size) == (Kind.DROP, 2)


def test_kinds_of_changes() -> None:
    kinds = {
        "drop": (UnsetFlag("ep-size"),),
        "change": (SetFlag("ep-size", "4"),),
        "add": (SetFlag("trust-remote-code", True),),
        "replace": (UnsetFlag("ep-size"), SetFlag("moe-a2a-backend", "deepep")),
        "env": (SetEnv("A", "1"),),
        "manual": (),
    }
    found = propose(of(*(advice(kind, *edits) for kind, edits in kinds.items())), table=TABLE)
    assert {option.say: option.kind.value for option in found.options} == {k: k for k in kinds}


def test_what_the_launch_contradicts_is_ruled_out_with_the_fact() -> None:
    found = propose(
        of(
            advice("no effect", UnsetFlag("dp-size")),
            advice("had", SetFlag("ep-size", "8")),
            advice("other GPU", SetFlag("ep-size", "4"), needs=("gpu = H100",)),
            advice("pinned", SetFlag("mem-fraction-static", "0.8")),
            advice("open", SetFlag("page-size", "1"), needs=("driver >= 580",)),
        ),
        table=TABLE,
        facts={"gpu": "B300"},
        pinned=("mem-fraction-static",),
    )
    assert [(r.say, r.fact) for r in found.ruled_out] == [
        ("no effect", "the launch does not set --dp-size"),
        ("had", "the launch already has ep-size 8"),
        ("other GPU", "gpu is B300"),
        ("pinned", "--mem-fraction-static is pinned"),
    ]
    (option,) = found.options
    assert option.unsure == ("driver >= 580",)


def test_what_was_launched_in_vain_is_not_proposed_again() -> None:
    failed = Config.of({"model-path": "/m", "mem-fraction-static": "0.9"})
    found = propose(of(advice("x", UnsetFlag("ep-size"))), table=TABLE, tried=(failed,))
    assert not found.options
    assert found.ruled_out[0].fact == "it was launched here and did not come up"


def test_flags_of_sglang_are_not_proposed_for_vllm() -> None:
    found = propose(of(advice("x", SetFlag("page-size", "1")), engine="vllm"), table=TABLE)
    assert found.ruled_out[0].fact == "the engine is vLLM, which has no --page-size"


def test_an_older_engine_gets_its_own_flag() -> None:
    remedy = advice("x", SetFlag("cuda-graph-backend-decode", "disabled"))
    (option,) = propose(of(remedy), table=TABLE, fields={"disable_cuda_graph", "tp_size"}).options
    assert option.changes == (SetFlag("disable-cuda-graph", True),)
    whole = {f"field_{number}" for number in range(200)}
    found = propose(of(remedy), table=TABLE, fields=whole)
    assert "printed no such argument" in found.ruled_out[0].fact


def test_without_advice_the_suspects_are_left_out_one_by_one() -> None:
    suspects = (
        Suspect(flag="model-path", value="/m", why="a"),
        Suspect(flag="ep-size", value="8", why="the message names it"),
    )
    found = propose(of(suspects=suspects), table=TABLE)
    assert [o.changes for o in found.options] == [(UnsetFlag("ep-size"),)]
    assert found.options[0].basis is Basis.INFERRED


def test_without_a_suspect_what_the_message_speaks_of_is_left_out() -> None:
    config = Config.of(
        {
            "model-path": "/models/x",
            "chat-template": "/no/t.jinja",
            "page-size": "16",
            "dtype": "auto",
        }
    )
    text = "RuntimeError: Chat template /no/t.jinja of /models/x (16 auto) is no template"
    found = propose(of(config=config, text=text), table=TABLE)
    assert [o.changes for o in found.options] == [(UnsetFlag("chat-template"),)]
    assert said(found) == ["Leave out --chat-template: the message names its value"]


def test_a_refused_option_is_replaced_by_what_the_release_has() -> None:
    text = "sglang serve: error: unrecognized arguments: --enable_metrics --enable-deepep-moe --xyzzy 3"
    config = Config.of(
        {"model-path": "/m", "enable-metrics": True, "enable-deepep-moe": True, "xyzzy": "3"}
    )
    first, second = propose(of(text=text, config=config), table=TABLE).options
    assert first.config == Config.of(
        {"model-path": "/m", "enable-metrics": True, "moe-a2a-backend": "deepep"}
    )
    assert first.basis is Basis.REPORTED
    assert second.config == Config.of({"model-path": "/m"})


def test_without_the_command_a_refused_option_keeps_its_printed_value() -> None:
    text = "error: unrecognized arguments: --max-model-len 512 --gpu-memory-utilization=0.9"
    found = propose(of(text=text, config=Config()), table=TABLE)
    assert found.options[0].changes == (
        UnsetFlag("max-model-len"),
        SetFlag("context-length", "512"),
        UnsetFlag("gpu-memory-utilization"),
        SetFlag("mem-fraction-static", "0.9"),
    )
    assert found.options[0].config is None


def test_a_span_gives_values_to_search() -> None:
    remedy = advice(
        "x",
        SetFlag("mem-fraction-static", "0.86"),
        span=("mem-fraction-static", "0.86", "0.8", "-0.02"),
    )
    (option,) = propose(of(remedy), table=TABLE).options
    assert option.span == Span(flag="mem-fraction-static", start=0.86, end=0.8, step=-0.02)
    assert option.span.values() == ("0.86", "0.84", "0.82", "0.8")
    assert Span(flag="x", start=16, end=4, step=-4).values() == ("16", "12", "8", "4")


def test_a_probe_comes_last_and_is_never_launched_as_a_remedy() -> None:
    found = propose(
        of(
            advice("probe", SetEnv("CUDA_LAUNCH_BLOCKING", "1"), evidence="maintainer-confirmed",
                   probe=True),
            advice("remedy", UnsetFlag("ep-size")),
        ),
        table=TABLE,
    )  # fmt: skip
    assert said(found) == ["remedy", "probe"]
    assert [o.say for o in found.launchable] == ["remedy"]


def test_values_are_computed_from_the_command_where_the_log_tells_none() -> None:
    cause = Cause(
        id="c",
        title="",
        patterns=(r"(?P<heads>\d+) heads",),
        remedies=(
            Remedy(say="{gcd heads tp-size}", set_flags=(("tp-size", "{gcd heads tp-size}"),)),
        ),
    )
    typed = Config.of({"model-path": "/m", "tp-size": "6"})
    found = propose(of(config=Config(), text="16 heads"), typed, cause=cause, table=TABLE)
    assert found.options[0].config == Config.of({"model-path": "/m", "tp-size": "2"})
    assert found.options[0].say == "2"


def test_advice_that_the_engine_prints_for_any_failure_is_ruled_out() -> None:
    cause = Cause(id="c", title="", decoys=("Possible solutions:", "enable --allow-auto-truncate"))
    lower = SetFlag("mem-fraction-static", "0.8")
    found = propose(
        of(
            advice("inferred", lower),
            advice("truncate", SetFlag("allow-auto-truncate", True), evidence="program-output"),
            advice("confirmed", SetFlag("mem-fraction-static", "0.7"), evidence="user-confirmed"),
        ),
        cause=cause,
        table=TABLE,
    )
    assert said(found) == ["confirmed"]
    assert {r.say for r in found.ruled_out} == {"inferred", "truncate"}


def test_what_rests_on_an_unknown_precondition_comes_behind_what_does_not() -> None:
    found = propose(
        of(
            advice("on Blackwell", SetFlag("page-size", "1"), evidence="user-confirmed",
                   needs=("capability >= 100",)),
            advice("anywhere", SetFlag("page-size", "64"), evidence="suggested"),
        ),
        table=TABLE,
    )  # fmt: skip
    assert said(found) == ["anywhere", "on Blackwell"]


def test_an_abbreviation_is_written_out_in_each_way_that_the_engine_names() -> None:
    text = "error: ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill"
    config = Config.of({"model-path": "/m", "cuda-graph-max-bs": "8"})
    found = propose(of(text=text, config=config), table=TABLE)
    assert [o.config.get("cuda-graph-max-bs-decode") for o in found.options if o.config] == [
        "8",
        None,
    ]
