"""What the parts of a case's log share: lines with their process and time, paths, numbers.

In:  a Spec. Out: Printed lines, collected by a Log.
Not: what is printed (case_startup.py, case_failure.py) or how it is wrapped (case_wraps.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from case_spec import Spec

PLACES = (
    ("/sgl-workspace/sglang/python/sglang", "/usr/local/lib/python3.12/dist-packages", "3.12"),
    ("/opt/venv/lib/python3.11/site-packages/sglang", "/opt/venv/lib/python3.11/site-packages", "3.11"),
    ("/usr/local/lib/python3.10/dist-packages/sglang", "/usr/local/lib/python3.10/dist-packages", "3.10"),
)  # fmt: skip
START = {
    style: datetime.fromisoformat(day)
    for style, day in (
        ("new", "2026-06-01"), ("mid", "2025-08-01"), ("old", "2025-01-10"), ("vllm", "2025-09-01"),
    )
}  # fmt: skip
MAIN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """One line without its end.

    `process` is a scheduler's index or MAIN; `root` marks the line that a diagnosis must
    name, `failure` the lines of the failure itself; `kind` is "dump" for the arguments.
    """

    text: str
    time: datetime
    process: int = MAIN
    root: bool = False
    failure: bool = False
    kind: str = ""


@dataclass(slots=True)
class Log:
    """Collects what the processes print, in order; `now` goes on with `tick`."""

    spec: Spec
    number: int = 0  # of the start, where there are several
    lines: list[Printed] = field(default_factory=list)
    now: datetime = START["new"]
    sglang: str = field(init=False)
    site: str = field(init=False)
    python: str = field(init=False)
    pid: int = field(init=False)
    node: str = field(init=False)

    def __post_init__(self) -> None:
        chance = self.spec.random
        place = 2 if self.spec.style == "old" else chance.randrange(2)
        self.sglang, self.site, self.python = PLACES[place]
        minutes = chance.randrange(60 * 24 * 90)
        self.now = START[self.spec.style] + timedelta(minutes=minutes, seconds=chance.random() * 60)
        self.pid = chance.randrange(120, 9000) * 4
        self.node = chance.choice(("node0", "gpu-07", "h200-1", "worker-3"))
        self.wait(200 * self.number)

    def wait(self, seconds: float) -> None:
        """Time goes on."""
        self.now += timedelta(seconds=seconds)

    def pid_of(self, process: int) -> int:
        """A process id: of the main process, or of a scheduler."""
        return self.pid + 1000 * self.number + (0 if process == MAIN else 70 + process)

    def stamp(self, process: int = MAIN) -> str:
        """The head of a record, `[time tag] `."""
        tag = "" if process == MAIN else self.spec.tags[process]
        if self.spec.style == "vllm":
            return self._vllm(process)
        return f"[{self.now:%Y-%m-%d %H:%M:%S}{' ' + tag if tag else ''}] "

    def _vllm(self, process: int) -> str:
        if process == MAIN:
            return f"(APIServer pid={self.pid_of(MAIN)}) "
        return f"({self.spec.tags[process]} pid={self.pid_of(process)}) "

    def say(
        self,
        text: str,
        process: int = MAIN,
        *,
        level: str = "INFO",
        root: bool = False,
        failure: bool = False,
    ) -> None:
        """A record with its head."""
        head = self.stamp(process)
        if self.spec.style == "vllm":
            head += f"{level} {self.now:%m-%d %H:%M:%S} "
            head += "" if text.startswith("[") else "[utils.py:233] "
        self.raw(head + text, process, root=root, failure=failure)

    def raw(
        self,
        text: str,
        process: int = MAIN,
        *,
        root: bool = False,
        failure: bool = False,
        kind: str = "",
    ) -> None:
        """Lines without a head."""
        for part in text.split("\n"):
            self.lines.append(
                Printed(text=part, time=self.now, process=process, root=root, failure=failure,
                        kind=kind)
            )  # fmt: skip
            root = False

    def path(self, file: str) -> str:
        """Where a file of a frame lies: `srt/..`, `lib/..` of Python, or a package's."""
        if file.startswith(("/", "<")):
            return file
        if file.startswith("srt/") or file in ("launch_server.py", "cli/serve.py"):
            return f"{self.sglang}/{file}"
        if file.startswith("sglang/"):
            return self.sglang + file.removeprefix("sglang")
        if file.startswith("lib/"):
            return f"/usr/lib/python{self.python}/{file.removeprefix('lib/')}"
        return f"{self.site}/{file}"

    def fill(self, text: str, process: int) -> str:
        """A description's text with its names replaced."""
        names = {
            "{rank}": str(max(0, process)),
            "{tag}": self.spec.tags[process] if process >= 0 else "",
            "{pid}": str(self.pid_of(process)),
            "{site}": self.site,
            "{sglang}": self.sglang,
            "{time}": f"{self.now:%Y-%m-%d %H:%M:%S}",
            "{iso}": f"{self.now:%Y-%m-%dT%H:%M:%S}",
            "{model}": f"/models/{self.spec.model}",
            "{node}": self.node,
        }
        for name, value in names.items():
            text = text.replace(name, value)
        return text
