"""Functions without launches, run on the host by TVM's names."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.compat import alias_tilelang
from tileworkbench.errors import LanguageError

FACTOR = 3


@T.prim_func
def scaled(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
    for i in T.serial(4):
        if A[i] > 1:
            B[i] = A[i] * FACTOR
    B[0] = B[3] + 1


@pytest.mark.parametrize("target", ("c", "llvm"))
def test_statements_outside_launches_run_once_and_in_order(target):
    with alias_tilelang():
        import tilelang
        from tilelang import tvm
        from tvm.ir import IRModule

        module = tilelang.transform.MergeIfStmt()(IRModule.from_expr(scaled))
        run = tvm.compile(module["main"], target=target).jit(options=["-std=c++17"])
        given = tvm.runtime.tensor(np.arange(4, dtype=np.int32))
        made = tvm.runtime.empty((4,), "int32", tvm.cpu())
        run(given, made)
    assert made.numpy().tolist() == [10, 0, 6, 9]


def test_a_function_without_a_launch_is_refused_as_a_kernel():
    with pytest.raises(LanguageError, match="outside `with T") as caught:
        tw.compile(scaled, target="cpu")
    assert caught.value.loc is not None and caught.value.loc.source_line().strip() == "B[i] = A[i] * FACTOR"
