"""Rates, latencies, occupancy, roofline and atoms, against figures known from elsewhere."""

import pytest

from tileworkbench.errors import InternalError
from tileworkbench.target import ARCHS, DEVICES, Target
from tileworkbench.target.atoms import ATOMS, matrix_atoms
from tileworkbench.target.issue import lanes_clocks, latencies, wgmma_clocks
from tileworkbench.target.latency import FIGURES, LATENCIES, SOURCES
from tileworkbench.target.occupancy import occupancy
from tileworkbench.target.roofline import roofline

KIB = 1024


# Blocks a processor by NVIDIA's occupancy calculator (CUDA 12 rules); the limiter where it is single.
@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "limiter"),
    [
        ("sm_80", 256, 32, 0, 8, "warps"),
        ("sm_80", 256, 40, 0, 6, "registers"),
        ("sm_80", 256, 64, 0, 4, "registers"),
        ("sm_80", 128, 255, 0, 2, "registers"),
        ("sm_80", 1024, 64, 0, 1, "registers"),
        ("sm_80", 1024, 65, 0, 0, "registers"),
        ("sm_80", 32, 16, 0, 32, "blocks"),
        ("sm_80", 128, 32, 48 * KIB, 3, "shared memory"),
        ("sm_80", 128, 32, 163 * KIB, 1, "shared memory"),
        ("sm_80", 128, 32, 81 * KIB, 2, "shared memory"),
        ("sm_80", 128, 32, 81 * KIB + 1, 1, "shared memory"),
        ("sm_80", 128, 32, 163 * KIB + 1, 0, "shared memory"),
        ("sm_86", 256, 32, 0, 6, "warps"),
        ("sm_86", 64, 32, 0, 16, "blocks"),
        ("sm_75", 1024, 32, 0, 1, "warps"),
        ("sm_75", 128, 32, 32 * KIB, 2, "shared memory"),
        ("sm_90a", 384, 168, 200 * KIB, 1, "registers"),
        ("sm_90a", 128, 128, 0, 4, "registers"),
        ("sm_90a", 64, 40, 0, 24, "registers"),
        ("sm_90a", 96, 72, 0, 9, "registers"),
        # Waves a SIMD on CDNA: 512 registers shared by as many waves as fit, eight at most.
        ("gfx942", 256, 128, 0, 4, "registers"),
        ("gfx942", 256, 64, 0, 8, "warps"),
        ("gfx942", 256, 256, 64 * KIB, 1, "shared memory"),
        ("gfx942", 256, 512, 0, 1, "registers"),
        ("gfx950", 256, 128, 40 * KIB, 4, "registers"),
    ],
)
def test_occupancy(arch, threads, registers, shared, blocks, limiter):
    row = ARCHS[arch]
    found = occupancy(row, threads=threads, registers=registers, shared_bytes=shared)
    assert (found.blocks, found.limiter) == (blocks, limiter)
    assert found.warps == blocks * -(-threads // row.warp_size)
    assert found.fraction == found.warps / row.max_warps_per_sm <= 1


def test_occupancy_in_words():
    assert str(occupancy(ARCHS["sm_80"], threads=256, registers=40)) == (
        "75% (48 of 64 warps, 6 block(s), limited by registers)"
    )
    with pytest.raises(InternalError):
        occupancy(ARCHS["sm_80"], threads=0)


@pytest.mark.parametrize(
    ("device", "dtype", "flops"),
    [("H200", "fp16", 4096), ("H200", "float8_e4m3fn", 8192), ("H200", "tfloat32", 2048), ("A100", "bfloat16", 2048),
     ("A100", "int8", 4096), ("T4", "float16", 1024), ("A10", "fp16", 1024), ("RTX3090", "fp16", 512),
     ("L4", "fp16", 1024), ("RTX4090", "fp16", 512), ("RTX5090", "fp16", 512), ("B200", "fp16", 8192),
     ("MI300X", "fp16", 2048), ("MI250X", "fp16", 1024), ("MI355X", "fp16", 4096)],
)  # fmt: skip
def test_peaks_are_whole_machines(device, dtype, flops):
    """Peak = processors x clock x a power of two of FLOP a clock: a misprint in any of them shows."""
    assert DEVICES[device].flops_per_clock(dtype) == pytest.approx(flops, rel=0.01)


@pytest.mark.parametrize("device", [d for d in DEVICES if d not in ("cpu", "H20")])
def test_simt_peaks(device):
    lanes = DEVICES[device].flops_per_clock("fp32_simt") / 2
    nearest = min((64, 128, 256), key=lambda n: abs(n - lanes))
    assert lanes == pytest.approx(nearest, rel=0.15)


def test_missing_units():
    assert DEVICES["T4"].peak("bf16") is None
    assert DEVICES["A100"].peak("fp8") is None
    assert DEVICES["MI355X"].peak("tf32") is None
    assert DEVICES["H20"].source("tflops") == "recalled"
    assert DEVICES["H200"].source("bandwidth_gbs") == "datasheet"
    assert DEVICES["H200"].planning_mhz == 1380
    assert DEVICES["A100"].planning_mhz == 1410


@pytest.mark.parametrize(
    ("n", "shared", "clocks"),
    [(256, True, 128), (128, True, 64), (64, True, 32), (32, True, 24), (8, True, 18), (64, False, 32), (8, False, 4)],
)
def test_wgmma_is_bound_by_math_or_by_the_port(n, shared, clocks):
    for dtype in ("fp16", "bf16", "tf32", "float8_e4m3fn", "int8"):
        assert wgmma_clocks(Target.of("H200"), n, a_in_shared=shared, dtype=dtype) == pytest.approx(clocks, rel=0.01)


def test_issue_clocks():
    h200 = Target.of("H200")
    # exp2 of a 128 x 128 tile
    assert lanes_clocks(h200, 128 * 128, "mufu_lanes") == 1024
    with pytest.raises(InternalError, match="no matrix rate for fp4"):
        wgmma_clocks(h200, 128, a_in_shared=True, dtype="fp4")


def test_latency_tables():
    for arch in ARCHS.values():
        table = LATENCIES[arch.family]
        for name in table.figures:
            assert table.source(name) in SOURCES
            assert name in FIGURES
        assert ("tma" in table) == (arch.has("tma") or arch.name == "cpu")
        assert ("copy_async" in table) == (arch.name not in ("sm_75",))
        assert table["shared_load"] < table["l2_load"] < table["global_load"]
    table = latencies(Target.of("sm_90a"))
    assert table.source("launch_us") == "measured"
    better = table.calibrated(tma=600)
    assert (better["tma"], better.source("tma"), table.source("tma")) == (600, "measured", "recalled")
    with pytest.raises(InternalError):
        LATENCIES["sm_75"]["tma"]
    with pytest.raises(InternalError):
        table.calibrated(tmaa=600)


def test_roofline_of_a_gemm_and_of_an_add():
    h200 = DEVICES["H200"]
    n = 8192
    gemm = roofline(h200, flops={"float16": 2 * n**3}, nbytes=3 * n * n * 2)
    assert gemm.us == pytest.approx(2 * n**3 / 989.4e12 * 1e6)
    assert gemm.bound == "compute"
    assert gemm.ridge == pytest.approx(989.4e12 / 4.8e12)
    add = roofline(h200, flops={"fp32_simt": n * n}, nbytes=3 * n * n * 4)
    assert add.us == pytest.approx(3 * n * n * 4 / 4.8e12 * 1e6)
    assert add.bound == "memory"
    assert roofline(h200, flops={}, nbytes=0).bound == "nothing"
    mixed = roofline(h200, flops={"fp16": 989.4e6, "fp32_simt": 66.9e6}, nbytes=0)
    assert mixed.compute_us == pytest.approx(2)
    assert "no matrix unit for fp8" in roofline(DEVICES["A100"], flops={"fp8": 1e9}, nbytes=1).note


def test_atoms():
    assert len({atom.name for atom in ATOMS}) == len(ATOMS)
    assert {name for atom in ATOMS for name in atom.archs} <= ARCHS.keys()
    assert [a.name for a in matrix_atoms(ARCHS["sm_75"])] == [
        "mma.m16n8k8.f16.f32", "mma.m16n8k8.f16.f16", "mma.m8n8k16.s8.s32", "mma.m8n8k16.u8.s32",
    ]  # fmt: skip
    for arch in ARCHS.values():
        engines = {atom.engine for atom in matrix_atoms(arch)}
        assert engines == {e for e, f in {"mma": "mma_sync", "wgmma": "wgmma", "mfma": "mfma"}.items() if arch.has(f)}
        dtypes = {atom.a for atom in matrix_atoms(arch)}
        assert ("bf16" in dtypes) == arch.has("bf16_mma")
        assert (bool({"tf32", "xf32"} & dtypes)) == arch.has("tf32_mma")
        assert ("e4m3" in dtypes) == (arch.has("fp8_mma") or arch.has("fp8_fnuz"))
    for atom in matrix_atoms(ARCHS["sm_90a"], "wgmma"):
        assert atom.k * {"f16": 2, "bf16": 2, "tf32": 4}.get(atom.a, 1) == 32
    assert matrix_atoms(ARCHS["cpu"]) == ()
