"""A convolution as a product: tiles of the unrolled image, the filters as a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, numbers

HALF = "float16"


@tw.jit(target="cpu")
def convolution(Image, Filter, stride: int, dilation: int, padding: int, BM: int, BN: int, BK: int, threads: int = 256):
    """NHWC; the filters and the result are seen as matrices. BK divides the number of channels."""
    N, C, H, W, F, K = T.const("N, C, H, W, F, K")
    OH = (H + 2 * padding - dilation * (K - 1) - 1) // stride + 1
    OW = (W + 2 * padding - dilation * (K - 1) - 1) // stride + 1
    Image: T.Tensor((N, H, W, C), HALF)
    Filter: T.Tensor((K, K, C, F), HALF)
    Out = T.empty((N, OH, OW, F), HALF)
    with T.Kernel(T.ceildiv(F, BN), T.ceildiv(N * OH * OW, BM), threads=threads) as (bx, by):
        patches = T.alloc_shared((BM, BK), HALF)
        weights = T.alloc_shared((BK, BN), HALF)
        acc = T.alloc_fragment((BM, BN), "float32")
        result = T.alloc_shared((BM, BN), HALF)
        flat_filter = T.Tensor((K * K * C, F), HALF, Filter.data)
        flat_out = T.Tensor((N * OH * OW, F), HALF, Out.data)
        T.clear(acc)
        for step in T.Pipelined(T.ceildiv(K * K * C, BK), num_stages=3):
            T.im2col(Image, patches, by, step, K, stride, dilation, padding)
            T.copy(flat_filter[step * BK, bx * BN], weights)
            T.gemm(patches, weights, acc)
        T.copy(acc, result)
        T.copy(result, flat_out[by * BM, bx * BN])
    return Out


def data(N: int, C: int, H: int, W: int, F: int, K: int, stride: int, dilation: int, padding: int, **_: Any) -> Data:
    image, filters = numbers(1, (N, H, W, C), HALF, 2), numbers(2, (K, K, C, F), HALF, 2)
    padded = np.pad(image.astype(float), ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    rows = (H + 2 * padding - dilation * (K - 1) - 1) // stride + 1
    columns = (W + 2 * padding - dilation * (K - 1) - 1) // stride + 1
    out = np.zeros((N, rows, columns, F))
    for y in range(K):
        for x in range(K):
            top, left = y * dilation, x * dilation
            seen = padded[:, top : top + stride * rows : stride, left : left + stride * columns : stride]
            out += seen[:, :rows, :columns] @ filters[y, x].astype(float)
    return Data({"Image": image, "Filter": filters}, {"Out": Expected(out)})


BLOCKS = {"BM": 64, "BN": 64, "BK": 32}
ENTRIES = [
    Entry("convolution", ("convolution/example_convolution.py",), convolution.compile, data,
          {"N": 2, "C": 32, "H": 7, "W": 6, "F": 64, "K": 3, "stride": 2, "dilation": 1, "padding": 1, **BLOCKS,
           "threads": 128},
          {"N": 128, "C": 128, "H": 64, "W": 64, "F": 128, "K": 3, "stride": 1, "dilation": 1, "padding": 1, "BM": 64,
           "BN": 128, "BK": 32}),
]  # fmt: skip
