"""Requirements against what is installed, as PEP 440 has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from triage.core.doctor.pins import broken
from triage.core.machine.packages import Package, release

PYTHON = (3, 12, 3)


def unmet(requirement: str, installed: str) -> list[str]:
    owner = Package(name="owner", version="1", folder="/x", requires=(requirement,))
    packages = {"torch": (Package(name="torch", version=installed, folder="/x"),)}
    return [f"{u.requirement} not {u.installed}" for u in broken(owner, packages, PYTHON)]


numbers = st.lists(st.integers(0, 12), min_size=1, max_size=3).map(lambda n: ".".join(map(str, n)))
signs = st.sampled_from(["==", ">=", "<=", "!=", "<", ">"])


@given(installed=numbers, sign=signs, wanted=numbers, local=st.sampled_from(["", "+cu130"]))
def test_a_clause_means_what_pip_takes_it_for(
    installed: str, sign: str, wanted: str, local: str
) -> None:
    if local and sign in "<>":
        local = ""  # PEP 440 has rules of its own for these, and no package here uses them
    met = SpecifierSet(sign + wanted).contains(installed + local, prereleases=True)
    assert (unmet(f"torch{sign}{wanted}", installed + local) == []) == met


@given(installed=numbers, wanted=st.lists(st.integers(0, 12), min_size=2, max_size=3))
def test_a_compatible_release_means_what_pip_takes_it_for(
    installed: str, wanted: list[int]
) -> None:
    text = ".".join(map(str, wanted))
    met = SpecifierSet(f"~={text}").contains(installed)
    assert (unmet(f"torch~={text}", installed) == []) == met


@pytest.mark.parametrize(
    ("requirement", "installed", "told"),
    [
        ("torch==2.9.1", "2.10.0", ["torch==2.9.1 not 2.10.0"]),
        ("torch==2.9.1", "2.9.1+cu130", []),
        ("torch (==2.4.0)", "2.5.0", ["torch==2.4.0 not 2.5.0"]),
        ("torch[opt]>=2.4,<3", "2.5.0", []),
        ('torch==2.6.0; extra == "srt"', "2.5.1", ["torch==2.6.0 not 2.5.1"]),
        ("torch==2.6.0; extra == 'blackwell'", "2.5.1", []),
        ('torch==2.6.0; python_version < "3.11"', "2.5.1", []),
        ('torch==2.6.0; sys_platform == "win32"', "2.5.1", []),
        ('torch==2.6.0; platform_system == "Linux"', "2.5.1", ["torch==2.6.0 not 2.5.1"]),
        ("torch==2.9.*", "2.9.1", []),
        ("torch==2.9.1rc1", "2.9.1", ["torch==2.9.1rc1 not 2.9.1"]),
        ("torch", "2.9.1", []),
        ("torch @ https://example.com/torch.whl", "2.9.1", []),
        ("jax==1", "2.9.1", []),
        ("", "2.9.1", []),
    ],
)
def test_forms_that_packages_use(requirement: str, installed: str, told: list[str]) -> None:
    assert unmet(requirement, installed) == told


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("2.9.1+cu130", (2, 9, 1)), ("0.5.4rc1", (0, 5, 4)), ("v3", (3,)), ("", ()), ("main", ()),
     ("2.9.dev3", (2, 9)), ("4.0.0b18", (4, 0, 0))],
)  # fmt: skip
def test_the_numbers_of_a_version(text: str, numbers: tuple[int, ...]) -> None:
    assert release(text) == numbers
