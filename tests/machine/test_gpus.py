"""GPUs read by the real pynvml from a stand-in for the driver's library."""

from __future__ import annotations

import subprocess
import time

import pytest
from fake_gpus import FakeGpus

from triage.core.machine.facts import Unavailable, known
from triage.core.machine.gpus import Gpus
from triage.machine.gpus import NoNvmlError, gpus, open_nvml


def found() -> Gpus:
    return known(gpus())


def test_eight_idle_gpus_are_read(fake_gpus: FakeGpus) -> None:
    all_of_them = found()
    assert all_of_them.driver == "580.95.05"
    assert all_of_them.cuda == (13, 0)
    assert len(all_of_them.devices) == len(all_of_them.readings) == 8
    gpu, reading = all_of_them.devices[7], all_of_them.readings[7]
    assert gpu.name == "NVIDIA B300 SXM6 AC"
    assert gpu.capability == (10, 3)
    assert (gpu.links, gpu.links_down, gpu.numa_node) == (18, (), 1)
    assert known(gpu.fabric).state == "completed"
    assert known(gpu.fabric).health == "healthy"
    assert gpu.peers == dict.fromkeys(range(7), "")
    assert (reading.memory_used_mib, reading.memory_free_mib) == (0, 274400)
    assert reading.power_w == 180.0
    assert reading.reasons == ("idle",)
    assert not [
        v for v in (getattr(gpu, n) for n in type(gpu).__slots__) if isinstance(v, Unavailable)
    ]


def test_readings_follow_what_happens_while_nvml_is_open(fake_gpus: FakeGpus) -> None:
    with open_nvml() as nvml:
        before = nvml.readings()[3]
        fake_gpus.set("3.used=1000", "3.busy=100", "3.power=360000", "3.reasons=0x24")
        after = nvml.readings()[3]
    assert before.memory_used_mib == 0
    assert (after.memory_used_mib, after.busy_percent, after.power_w) == (1000, 100, 360.0)
    assert after.reasons == ("power-cap", "thermal-slowdown")


def test_who_holds_memory_is_told_until_he_dies(fake_gpus: FakeGpus) -> None:
    tenant = subprocess.Popen(["sleep", "60"])
    try:
        fake_gpus.hold(3, tenant.pid, mib=165000)
        fake_gpus.hold(5, "leak", mib=700)
        held = found()
        assert [(h.index, h.pid, h.memory_mib, h.command) for h in held.holders] == [
            (3, tenant.pid, 165000, "sleep 60")
        ]
        assert held.readings[5].memory_used_mib == 700
    finally:
        tenant.kill()
        tenant.wait()
    assert found().holders == ()
    assert found().readings[3].memory_used_mib == 0


def test_a_lost_gpu_does_not_hide_the_others(fake_gpus: FakeGpus) -> None:
    fake_gpus.set("3.fail.*=15")
    left = found()
    assert [(lost.index, lost.reason) for lost in left.lost] == [(3, "NVML: gpu is lost")]
    assert [gpu.index for gpu in left.devices] == [0, 1, 2, 4, 5, 6, 7]


def test_a_gpu_that_is_lost_between_two_readings_has_no_facts(fake_gpus: FakeGpus) -> None:
    with open_nvml() as nvml:
        fake_gpus.set("3.fail.*=15")
        reading = nvml.readings()[3]
    assert isinstance(reading.power_w, Unavailable)
    assert isinstance(reading.memory_free_mib, Unavailable)


def test_links_peers_and_an_older_fabric_answer_are_read(fake_gpus: FakeGpus) -> None:
    fake_gpus.set("2.link.7=0", "2.p2p.5=5", "all.fabric_version=2", "4.fabric_state=2")
    devices = found().devices
    assert (devices[2].links, devices[2].links_down) == (17, (7,))
    assert known(devices[2].peers)[5] == "not supported"
    assert known(devices[4].fabric).state == "in-progress"
    assert known(devices[4].fabric).health == "not-supported"


def test_what_one_call_refuses_is_unavailable_and_nothing_else(fake_gpus: FakeGpus) -> None:
    fake_gpus.set("all.fail.nvmlDeviceGetPowerUsage=3", "all.fail.nvmlDeviceGetMemoryInfo_v2=13")
    reading = found().readings[0]
    assert reading.power_w == Unavailable("NVML: not supported")
    assert reading.memory_free_mib == 274400  # from the older call


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (18, "NVML and the loaded kernel driver are of different versions"),
        (9, "the NVIDIA kernel driver is not loaded"),
        (4, "NVML does not start: insufficient permissions"),
    ],
)
def test_why_nvml_does_not_start_is_said(fake_gpus: FakeGpus, code: int, reason: str) -> None:
    fake_gpus.set(f"system.fail.nvmlInit_v2={code}")
    fact = gpus()
    assert isinstance(fact, Unavailable)
    assert fact.reason == reason
    assert fact.fix


def test_without_a_driver_there_is_a_reason_and_no_exception() -> None:
    fact = gpus()
    assert isinstance(fact, Unavailable) or fact.devices
    if isinstance(fact, Unavailable):
        assert fact.reason == "no NVIDIA driver: libnvidia-ml.so.1 is not found"
        with pytest.raises(NoNvmlError, match=r"libnvidia-ml\.so\.1"), open_nvml():
            raise AssertionError("there is nothing to open")


def test_ten_readings_a_second_cost_next_to_nothing(fake_gpus: FakeGpus) -> None:
    with open_nvml() as nvml:
        begin = time.process_time()
        for _ in range(10):
            nvml.readings()
        assert time.process_time() - begin < 0.5
