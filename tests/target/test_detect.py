"""Detection without a GPU library: a recorded answer, a broken driver, a faked topology."""

import subprocess
import sys

import pytest

from tileworkbench.target import detect, driver

module = sys.modules["tileworkbench.target.detect"]


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    module._nvidia.cache_clear()
    monkeypatch.setattr(module, "KFD_NODES", tmp_path / "absent")
    yield
    module._nvidia.cache_clear()


ANSWER = {
    "driver": 13000,
    "error": 0,
    "devices": [
        {"index": 0, "name": "NVIDIA H200", "memory": 150754820096, "major": 9, "minor": 0, "sm_count": 132,
         "l2_bytes": 62914560, "clock_khz": 1980000, "memory_clock_khz": 3201000, "bus_bits": 6144},
        {"index": 1, "name": "Tesla V100", "memory": 0, "major": 7, "minor": 0, "sm_count": 80},
    ],
}  # fmt: skip


class FakeCuda:
    """Answers like libcuda before or after `cuInit`."""

    def __init__(self, initialised):
        self.initialised, self.inits = initialised, 0

    def cuDeviceGetCount(self, pointer):
        return 0 if self.initialised else driver.NOT_INITIALIZED

    def cuInit(self, flags):
        self.inits += 1
        return 100


def test_reads_an_answer(monkeypatch):
    monkeypatch.setattr(driver, "load", lambda: FakeCuda(initialised=False))
    monkeypatch.setattr(module, "_ask_script", lambda: ANSWER)
    h200, v100 = detect()
    assert (h200.arch, h200.sm_count, h200.driver, h200.clock_mhz) == ("sm_90a", 132, 13000, 1980)
    # 6144 bits at 3201 MHz, two transfers a clock
    assert h200.bandwidth_gbs == pytest.approx(4916.7, abs=0.1)
    assert v100.arch == ""
    assert "7.0" in v100.note


def test_a_fresh_process_is_not_initialised(monkeypatch):
    cuda = FakeCuda(initialised=False)
    monkeypatch.setattr(driver, "load", lambda: cuda)
    monkeypatch.setattr(module, "_ask_script", lambda: ANSWER)
    assert len(detect()) == 2
    assert cuda.inits == 0


def test_a_cuda_process_is_asked_directly(monkeypatch):
    cuda = FakeCuda(initialised=True)
    monkeypatch.setattr(driver, "load", lambda: cuda)
    monkeypatch.setattr(module, "_ask_script", lambda: pytest.fail("no process needed"))
    found = module.survey()
    assert found.devices == ()
    assert "error 100" in found.nvidia
    assert cuda.inits == 1


@pytest.mark.parametrize(
    "problem",
    [
        OSError("gone"),
        subprocess.TimeoutExpired("python", 20),
        subprocess.CalledProcessError(-11, "python"),
        ValueError("json"),
    ],
)
def test_never_raises(monkeypatch, problem):
    def fail():
        raise problem

    monkeypatch.setattr(driver, "load", lambda: FakeCuda(initialised=False))
    monkeypatch.setattr(module, "_ask_script", fail)
    assert detect() == []
    assert type(problem).__name__ in module.survey().nvidia


@pytest.mark.parametrize("answer", [{}, {"devices": None, "error": 0}, {"devices": [{}], "driver": "x"}])
def test_odd_answers(monkeypatch, answer):
    monkeypatch.setattr(driver, "load", lambda: FakeCuda(initialised=False))
    monkeypatch.setattr(module, "_ask_script", lambda: answer)
    assert all(device.arch == "" for device in detect())


def test_the_script_runs_alone():
    answer = module._ask_script()
    assert set(answer) == {"driver", "devices", "error"}


def test_amd_topology(monkeypatch, tmp_path):
    def node(number, text):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "properties").write_text(text)

    node(0, "cpu_cores_count 96\nsimd_count 0\ngfx_target_version 0\n")
    node(1, "simd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\nmax_engine_clk_fcompute 2100\n")
    node(2, "simd_count 440\nsimd_per_cu 4\ngfx_target_version 90010\n")
    node(10, "simd_count 120\nsimd_per_cu 2\ngfx_target_version 110000\n")
    monkeypatch.setattr(driver, "load", lambda: None)
    monkeypatch.setattr(module, "KFD_NODES", tmp_path)
    found = detect()
    assert [(d.name, d.arch, d.sm_count) for d in found] == [
        ("gfx942", "gfx942", 304), ("gfx90a", "gfx90a", 110), ("gfx1100", "", 60),
    ]  # fmt: skip
