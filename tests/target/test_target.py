"""Names of targets, in our spelling and in TileLang's."""

import pytest

from tileworkbench.errors import InternalError, TargetError
from tileworkbench.target import ARCHS, DEVICES, FoundDevice, Target, target_names, target_of_found
from tileworkbench.target import target as target_module

KIB = 1024


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(target_module, "detect", list)


H200 = FoundDevice(0, "NVIDIA H200", "sm_90a", 132, memory_bytes=150_000_000_000, clock_mhz=1980)


@pytest.mark.parametrize(
    ("spec", "arch", "device"),
    [
        ("auto", "cpu", "cpu"),
        ("cuda", "sm_90a", "H200"),
        ("hip", "gfx942", "MI300X"),
        ("rocm", "gfx942", "MI300X"),
        ("cpu", "cpu", "cpu"),
        ("c", "cpu", "cpu"),
        ("llvm", "cpu", "cpu"),
        ("sm_90a", "sm_90a", "H200"),
        ("sm_90", "sm_90", "H200"),
        ("compute_90a", "sm_90a", "H200"),
        ("SM80", "sm_80", "A100"),
        ("h200", "sm_90a", "H200"),
        ("NVIDIA-H100-80GB-HBM3", "sm_90a", "H100"),
        ("RTX-4090", "sm_89", "RTX4090"),
        ("4090", "sm_89", "RTX4090"),
        ("sm_80/H200", "sm_80", "H200"),
        ("cuda -arch=sm_90", "sm_90a", "H200"),
        ("cuda -arch=sm_80 -max_num_threads=1024", "sm_80", "A100"),
        ("hip -mcpu=gfx90a", "gfx90a", "MI250X"),
        ("nvidia/nvidia-h100", "sm_90a", "H100"),
        ({"kind": "cuda", "arch": "sm_100"}, "sm_100a", "B200"),
        ({"kind": "cuda"}, "sm_90a", "H200"),
        ({"kind": "llvm"}, "cpu", "cpu"),
    ],
)
def test_names(no_gpu, spec, arch, device):
    target = Target.of(spec)
    assert (target.arch.name, target.device.name) == (arch, device)


def test_every_name_round_trips(no_gpu):
    for name in target_names():
        target = Target.of(name)
        assert Target.of(str(target)) == target
        assert len({target, Target.of(name)}) == 1


def test_rows_point_at_each_other():
    for arch in ARCHS.values():
        assert DEVICES[arch.default_device].arch.rstrip("a") == arch.name.rstrip("a")
    for device in DEVICES.values():
        assert device.arch in ARCHS
        assert device.l2_bytes > 0
        assert device.bandwidth_gbs > 0


@pytest.mark.parametrize(
    ("arch", "kib"),
    [("sm_75", 64), ("sm_80", 163), ("sm_86", 99), ("sm_89", 99), ("sm_90", 227), ("sm_90a", 227), ("sm_100a", 227),
     ("sm_120a", 99), ("gfx90a", 64), ("gfx942", 64), ("gfx950", 160)],
)  # fmt: skip
def test_shared_memory_of_a_block(arch, kib):
    assert ARCHS[arch].max_shared_per_block == kib * KIB


def test_features():
    def with_feature(feature):
        return {name for name, row in ARCHS.items() if row.has(feature)}

    hopper_up = {"sm_90", "sm_90a", "sm_100a", "sm_120a"}
    assert with_feature("wgmma") == {"sm_90a"}
    assert with_feature("tma") == with_feature("mbarrier") == with_feature("stmatrix") == hopper_up
    assert with_feature("setmaxnreg") == {"sm_90a", "sm_100a", "sm_120a"}
    assert with_feature("cp_async") == hopper_up | {"sm_80", "sm_86", "sm_89"}
    assert with_feature("mfma") == {"gfx90a", "gfx942", "gfx950"}
    assert with_feature("fp8_mma") == hopper_up | {"sm_89", "gfx950"}
    assert with_feature("multicast") == {"sm_90a", "sm_100a"}
    with pytest.raises(InternalError, match="wgma"):
        ARCHS["sm_90a"].has("wgma")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("sm_91", 'did you mean "sm_90a"'),
        ("sm_87", 'did you mean "sm_86"'),
        ("h2000", 'did you mean "H200"'),
        ("metal", 'use "auto"'),
        ("", 'use "auto"'),
        ("cuda -arch=gfx942", "not a cuda architecture"),
        ("cuda -aarch=sm_80", "unknown target option"),
        ("sm_90a/MI300X", "cannot run on MI300X"),
        ({"kid": "cuda"}, "unknown key 'kid'"),
        (5, "from int"),
    ],
)
def test_bad_names(no_gpu, spec, words):
    with pytest.raises(TargetError) as caught:
        Target.of(spec)
    assert words in str(caught.value)
    assert caught.value.rule
    assert caught.value.fix


def test_unknown_name_lists_every_target(no_gpu):
    with pytest.raises(TargetError) as caught:
        Target.of("metal")
    assert all(name in caught.value.rule for name in target_names())


def test_auto_takes_the_gpu_present(monkeypatch):
    monkeypatch.setattr(target_module, "detect", lambda: [H200])
    assert str(Target.of("auto")) == str(Target.of("cuda")) == "sm_90a"
    assert Target.of("hip").name == "gfx942"
    assert Target.of("cpu").name == "cpu"


def test_auto_skips_a_card_without_a_row(monkeypatch):
    monkeypatch.setattr(target_module, "detect", lambda: [FoundDevice(0, "NVIDIA V100", "", 80)])
    assert Target.of("auto").name == "cpu"


def test_partition_and_unknown_cards_are_scaled():
    half = target_of_found(FoundDevice(0, "NVIDIA H200 MIG 3g.71gb", "sm_90a", 66, clock_mhz=1980))
    assert half.device.sm_count == 66
    assert half.device.peak("fp16") == pytest.approx(989.4 / 2)
    ada = target_of_found(FoundDevice(0, "NVIDIA RTX 6000 Ada Generation", "sm_89", 142, memory_bytes=48 * 1024**3))
    assert ada.device.name == "NVIDIA-RTX-6000-Ada-Generation"
    assert ada.device.memory_bytes == 48 * 1024**3
    assert "derived from L4" in ada.device.source("tflops")
