"""Architectures, the driver's figures, hints, templates and the analyser."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
from tileworkbench.compat import arch, device, templates, traffictemplates
from tileworkbench.compat.analyzer import Analyzer
from tileworkbench.errors import OptionError, TargetError
from tileworkbench.target import Target
from tileworkbench.tune.costmodel import Product, Tiling, product_us, ranked


def test_architectures_have_the_rows_figures():
    h200, a100 = arch.get_arch("H200"), arch.CUDA("cuda -arch=sm_80")
    assert (h200.compute_max_core, h200.sm_version, h200.warp_size) == (132, 90, 32)
    assert (a100.smem_cap, a100.sm_version) == (Target.of("sm_80").arch.max_shared_per_block, 80)
    assert arch.is_hopper_arch(h200) and arch.is_ampere_arch(a100) and not arch.is_ada_arch(a100)
    assert isinstance(arch.get_arch("gfx942"), arch.CDNA) and isinstance(arch.get_arch("llvm"), arch.CPU)
    with pytest.raises(TargetError, match="runs hip code"):
        arch.CUDA("gfx942")
    for missing in (arch.RDNA, arch.METAL):
        with pytest.raises(TargetError, match="needs"):
            missing("auto")


def test_matrix_types_of_architectures():
    on = arch.get_arch("sm_80")
    assert arch.is_tensorcore_supported_precision("float16", "float32", on)
    assert not arch.is_tensorcore_supported_precision("float8_e4m3", "float32", on)
    assert arch.is_tensorcore_supported_precision("float8_e4m3", "float32", arch.get_arch("sm_90a"))
    assert [arch.check_sm_version(x) for x in ("sm_90a", "90", "gfx942", "sm_sm_90")] == [90, 90, -1, -1]


def test_the_driver_speaks_of_this_machine():
    found = Target.of("auto")
    assert device.get_num_sms() == found.device.sm_count
    assert device.get_shared_memory_per_block(format="kb") * 1024 <= found.arch.static_shared_limit
    with pytest.raises(OptionError, match="bytes, kb, mb"):
        device.get_shared_memory_per_block(format="gb")


def test_hints_fit_the_card_and_come_best_first():
    on = arch.get_arch("sm_90a")
    hints = templates.MatmulTemplate(4096, 4096, 4096, accum_dtype="float32").with_arch(on).recommend_hints(20)
    assert len(hints) == 20 and all(h.use_tc for h in hints)
    times = [h.estimate_us for h in hints]
    assert times == sorted(times)
    for hint in hints:
        shared = hint.pipeline_stage * hint.rstep[0] * sum(hint.block) * 2
        assert shared <= on.smem_cap
        assert all(b % w == 0 for b, w in zip(hint.block, hint.warp, strict=True))
    # A square product of this size is bound by arithmetic, which wants large tiles.
    assert min(hints[0].block) >= 128 and hints[0].pipeline_stage > 1


def test_the_model_knows_what_does_not_fit():
    product, target = Product(1024, 1024, 1024, "float16", 2), Target.of("sm_80")
    assert product_us(product, Tiling(256, 256, 64, 4, 2, 4), target) == float("inf")
    assert product_us(product, Tiling(128, 128, 32, 2, 2, 3), target) < float("inf")
    assert all(us >= 2 * 1024**3 / (target.device.peak("float16") * 1e6) for us, _ in ranked(product, target, 500))


def test_every_template_recommends():
    on = arch.get_arch("H100")
    made = [
        traffictemplates.GeneralReductionTemplate(structure="SRS", shape=[64, 1024, 64]),
        traffictemplates.ElementwiseTemplate(shape=[1024, 1024]),
        traffictemplates.GEMVTemplate(N=1024, K=1024),
        templates.FlashAttentionTemplate(1, 8, 128, 4096, 4096),
        templates.ConvTemplate(8, 64, 56, 56, 64, 3, P=1),
    ]
    for template in made:
        hints = template.with_arch(on).recommend_hints(5)
        assert 0 < len(hints) <= 5 and all(h.block and min(h.block) > 0 for h in hints)
    with pytest.raises(OptionError, match="one S or R"):
        traffictemplates.GeneralReductionTemplate(structure="SX", shape=[2, 2]).recommend_hints()
    with pytest.raises(TargetError, match="tensor expressions"):
        made[3].equivalent_function()


@pytest.mark.parametrize(("trans_a", "trans_b"), [(False, True), (True, False)])
def test_equivalent_products(trans_a, trans_b):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-2, 3, (70, 40)).astype(np.float32), rng.integers(-2, 3, (40, 50)).astype(np.float32)
    template = templates.MatmulTemplate(70, 50, 40, trans_a, trans_b, "float32", "float32", "float32")
    kernel = tw.compile(template.equivalent_function(), out_idx=[-1], target="cpu")
    given = np.ascontiguousarray(a.T if trans_a else a), np.ascontiguousarray(b.T if trans_b else b)
    np.testing.assert_array_equal(kernel(*given), a @ b)


def test_equivalent_sums():
    x = np.random.default_rng(1).integers(-2, 3, (6, 32)).astype(np.float32)
    function = traffictemplates.GeneralReductionTemplate(
        structure="SR", shape=[6, 32], dtype="float32"
    ).equivalent_function()
    np.testing.assert_array_equal(tw.compile(function, out_idx=[-1], target="cpu")(x), x.sum(1))
    plus = traffictemplates.ElementwiseTemplate(shape=[6, 32], dtype="float32").equivalent_function()
    np.testing.assert_array_equal(tw.compile(plus, out_idx=[-1], target="cpu")(x.ravel()), x.ravel() + 1)


def test_the_analyser_counts_products_and_tensors():
    function = templates.MatmulTemplate(256, 128, 64).equivalent_function()
    found = Analyzer.analysis(function, arch.get_arch("H200"))
    assert found.total_flops == 2 * 256 * 128 * 64
    assert found.total_global_bytes == 2 * (256 * 64 + 128 * 64 + 256 * 128)
    assert found.estimated_time * found.expected_tflops * 1e12 == pytest.approx(found.total_flops)
