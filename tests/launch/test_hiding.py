"""A known secret is in no byte of a launch's files, and every other byte is as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_bench import Bench

from triage.core.launch import Container, Job, LaunchSpec, Unit
from triage.launch.hiding import Mask, in_files
from triage.launch.secret_values import secret_values

SECRET = "s3cret-of-the-test"


@given(
    st.lists(st.sampled_from(["ab", "a", "b", "aab", "xyz", "x", SECRET, SECRET[:7]]), max_size=12),
    st.lists(st.integers(0, 60), max_size=6),
)
def test_a_stream_cut_anywhere_is_hidden_as_the_whole_is(parts: list[str], cuts: list[int]) -> None:
    whole = "".join(parts).encode()
    mask, got, at = Mask(["aab", SECRET]), b"", 0
    for cut in [*sorted(cuts), len(whole)]:
        got += mask.take(whole[at:cut])
        at = max(at, cut)
    got += mask.rest()
    expected = whole.replace(SECRET.encode(), b"*" * len(SECRET)).replace(b"aab", b"***")
    assert got == expected


def test_files_are_hidden_in_place_also_across_a_megabyte(tmp_path: Path) -> None:
    raw = b"x" * ((1 << 20) - 5) + SECRET.encode() + b"\nend\n"
    (tmp_path / "node-0.log").write_bytes(raw)
    (tmp_path / "empty").touch()
    outside = tmp_path.with_name("outside")
    outside.write_text(SECRET)
    (tmp_path / "link").symlink_to(outside)
    in_files(str(tmp_path), [SECRET])
    stars = b"*" * len(SECRET)
    assert (tmp_path / "node-0.log").read_bytes() == raw.replace(SECRET.encode(), stars)
    assert outside.read_text() == SECRET


@pytest.mark.parametrize(
    "spec",
    [
        LaunchSpec(argv=("python", "--api-key", SECRET)),
        LaunchSpec(argv=("python", f"--admin-api-key={SECRET}")),
        LaunchSpec(argv=("env", f"HF_TOKEN={SECRET}", "python")),
        LaunchSpec(argv=("python",), env=(("DB_PASSWORD", SECRET),)),
        LaunchSpec(
            argv=(), place=Container(run=("docker", "run", "-e", f"HF_TOKEN={SECRET}", "i"))
        ),
        LaunchSpec(
            argv=(), place=Container(run=("docker", "run", f"--env=HF_TOKEN={SECRET}", "i"))
        ),
        LaunchSpec(argv=(), place=Job(options=(f"--export=ALL,HF_TOKEN={SECRET}",))),
        LaunchSpec(argv=(), place=Unit(text=f'[Service]\nEnvironment=A=b "HF_TOKEN={SECRET}"\n')),
        LaunchSpec(argv=(), place=Unit(text=f"[Service]\nExecStart=/s --api-key {SECRET}\n")),
    ],
)
def test_a_secret_is_known_wherever_the_launch_has_it_from(spec: LaunchSpec) -> None:
    assert secret_values(spec, {"OTHER": "value-of-no-secret", "PASSWORD": "none"}) == (SECRET,)


def test_a_file_of_variables_is_read(tmp_path: Path) -> None:
    file = tmp_path / "variables"
    file.write_text(f"A=b\nexport HF_TOKEN={SECRET}\n")
    unit = Unit(text=f"[Service]\nEnvironmentFile=-{file}\n")
    assert secret_values(LaunchSpec(argv=(), place=unit), {}) == (SECRET,)
    run = Container(run=("docker", "run", "--env-file", str(file), "image"))
    assert secret_values(LaunchSpec(argv=(), place=run), {}) == (SECRET,)


def test_what_a_server_prints_of_its_secrets_is_stars_in_the_log(bench: Bench) -> None:
    half = SECRET.encode().hex()[:10]
    capture = bench.launch(
        "env:HF_TOKEN", f"raw:{half}", "sleep:0.02", f"raw:{SECRET.encode().hex()[10:]}0a",
        "exit:1", env=(("HF_TOKEN", SECRET),),
    )  # fmt: skip
    stars = "*" * len(SECRET)
    assert bench.log() == f"HF_TOKEN={stars}\n{stars}\n"
    assert bench.watcher.seen == bench.log().encode()
    arrivals = (Path(capture.log).parent / "arrivals.jsonl").read_text().splitlines()
    assert json.loads(arrivals[0])[0] == 0


def test_only_what_is_named_as_a_file_of_variables_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "variables"
    file.write_text(f"HF_TOKEN={SECRET}\n")
    run = ("docker", "run", "--device", str(file), "--env-file=/dev/zero", "image")
    assert secret_values(LaunchSpec(argv=(), place=Container(run=run)), {}) == ()
