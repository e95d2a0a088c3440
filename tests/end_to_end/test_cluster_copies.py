"""T.copy_cluster: the tile of one block of a cluster, in several of them."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import LanguageError
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

from .harness import built, integers, lowered


@pytest.mark.parametrize(("mask", "leader"), [(0b0011, 0), (0b1010, 1), (0b1111, 0), (0b0100, 2), (None, 0)])
def test_members_get_the_tile_of_the_first(mask, leader):  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(A: T.Tensor((32, 256), "float16"), B: T.Tensor((32, 256), "float16")):
        with T.ClusterKernel(8, 2, threads=64, cluster_dims=(2, 2, 1)) as (bx, by):
            held = T.alloc_shared((16, 32), "float16")
            column = bx * 32
            T.copy_cluster(A[by * 16, column], held, cluster_mask=mask)
            T.copy(held, B[by * 16, column])

    a = integers(1, (32, 256), "float32").astype(np.float16)
    want = np.empty_like(a)
    for by in range(2):
        for bx in range(8):
            rank = bx % 2 + 2 * (by % 2)
            x, y = (bx - bx % 2 + leader % 2, by - by % 2 + leader // 2) if (mask or 0) >> rank & 1 else (bx, by)
            want[by * 16 :, bx * 32 :][:16, :32] = a[y * 16 :, x * 32 :][:16, :32]
    out = np.zeros_like(a)
    tile.run(kernel.kernel, [a, out])
    assert np.array_equal(out, want)
    made = lowered(kernel, "sm_90a")
    built(made, "sm_90a")
    # Blocks exchange nothing, so that each may be run alone.
    alone, out = made.with_(cluster=(1, 1, 1)), np.zeros_like(a)
    thread.run(alone, [a, out], schedule="latest", target=Target.of("sm_90a"), outputs=[1])
    assert np.array_equal(out, want)


def test_mistakes() -> None:
    with pytest.raises(LanguageError, match="one bit for each of the 2 blocks"):

        @T.prim_func
        def wide(A: T.Tensor((64,), "int32")):
            with T.ClusterKernel(2, threads=32, cluster_dims=(2, 1, 1)):
                T.copy_cluster(A[0:64], T.alloc_shared((64,), "int32"), cluster_mask=5)
