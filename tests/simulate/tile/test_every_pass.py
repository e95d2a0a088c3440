"""The same kernel before and after every pass down to the thread level gives the same answer, bit for bit."""

import numpy as np
import pytest

from tileworkbench.pipeline import run_passes
from tileworkbench.simulate.tile import run
from tileworkbench.target import Target

from .calls import integers
from .test_attention import attention
from .test_elementwise import add_2d
from .test_gemm import matmul


def gemm(m, n, k):
    f = matmul(m, n, k, "float16", "float32", "float16", bm=64, bn=64, bk=32, stages=3)
    return f, [integers(1, (m, k), "float16"), integers(2, (k, n), "float16"), np.zeros((m, n), np.float16)]


def heads(causal):
    q, k, v = (integers(n, (1, 2, 128, 64), "float16", 3) / np.float16(2) for n in range(3))
    return attention(1, 2, 128, 64, 64, 64, causal), [q, k, v, np.zeros((1, 2, 128, 64), np.float32)]


def added():
    a, b = integers(1, (64, 96), "float16"), integers(2, (64, 96), "float16")
    return add_2d(64, 96, 32, 32, "float16"), [a, b, np.zeros((64, 96), np.float16)]


CASES = {
    "gemm": lambda: gemm(128, 128, 96),
    "gemm, tails": lambda: gemm(100, 72, 40),
    "add": added,
    "attention": lambda: heads(False),
    "causal attention": lambda: heads(True),
}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("case", CASES)
def test_every_pass_keeps_the_meaning(case, target):
    function, args = CASES[case]()
    run(function.kernel, args)
    want, steps = args[-1].copy(), []

    def observe(step):
        if step.after.level == "thread":
            return
        args[-1][...] = 77
        run(step.after, args)
        steps.append((step.name, np.array_equal(args[-1], want)))

    run_passes(function.kernel, Target.of(target), observe)
    assert all(same for _, same in steps), steps
    assert "specialise" in dict(steps)  # a planned kernel was among them
