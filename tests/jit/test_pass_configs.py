"""Keys of pass_configs that change the plan, and those that are listed as ignored."""

from __future__ import annotations

import pytest

import tileworkbench as tw
import tileworkbench.language as T

from .kernels import gemm


@pytest.mark.parametrize(
    ("target", "key", "value", "name"),
    [
        ("sm_90a", "tl.disable_wgmma", True, "wgmma"),
        ("sm_80", "tl.enable_async_copy", False, "cp.async"),
        ("sm_80", "tirx.use_async_copy", False, "cp.async"),
    ],
)
def test_a_key_turns_an_implementation_off_and_the_plan_says_so(target, key, value, name):
    def plan(configs):
        return tw.compile(gemm(128, 128, 64), target=target, pass_configs=configs).plan.decisions

    assert any(d.chosen.startswith(name) for d in plan({}))
    assert any(d.chosen.startswith(name) for d in plan({key: not value}))
    without = plan({key: value})
    assert not any(d.chosen.startswith(name) for d in without)
    assert any(key in reason for d in without for _, reason in d.refused)


def two_tiles(n):
    """Two shared tiles that are never needed at once."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((n,), "float32")
            b = T.alloc_shared((n,), "float32")
            T.copy(A, a)
            T.copy(a, B)
            T.copy(B, b)
            T.copy(b, A)

    return main


def test_tiles_keep_bytes_of_their_own():
    shared = tw.compile(two_tiles(256), target="sm_80").kernel.shared_bytes
    apart = tw.compile(
        two_tiles(256), target="sm_80", pass_configs={tw.PassConfigKey.TL_DISABLE_SHARED_MEMORY_REUSE: True}
    ).kernel.shared_bytes
    assert (shared, apart) == (1024, 2048)


def test_keys_without_a_meaning_are_noted():
    configs = {tw.PassConfigKey.TL_FORCE_LET_INLINE: True, tw.PassConfigKey.TL_ENABLE_FAST_MATH: True}
    kernel = tw.compile(gemm(64, 64, 32), target="sm_80", pass_configs=configs)
    noted = [note for note in kernel.plan.notes if "ignored" in note]
    assert noted == ["pass_configs: tl.force_let_inline has no meaning here and is ignored"]
    assert kernel.pass_configs == {"tl.force_let_inline": True, "tl.enable_fast_math": True}
