"""torch_assert_close: two tensors agree but for a small share of their elements."""

from __future__ import annotations

from typing import Any

from ..errors import MissingDependency, OptionError
from ..jitkernel.closeness import assert_close

FLOAT8 = ("float8_e5m2", "float8_e5m2fnuz", "float8_e4m3fn", "float8_e4m3fnuz")


def torch_assert_close(
    tensor_a: Any,
    tensor_b: Any,
    rtol: float = 1e-2,
    atol: float = 1e-3,
    max_mismatched_ratio: float = 0.001,
    verbose: bool = False,
    equal_nan: bool = True,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    base_name: str = "LHS",
    ref_name: str = "RHS",
) -> bool:
    """True when at most `max_mismatched_ratio` of the elements differ by more than atol + rtol·|b|; AssertionError with
    the numbers and the first such element otherwise, or when shape, type or device differ."""
    for name, wanted in (("device", check_device), ("dtype", check_dtype), ("layout", check_layout)):
        a, b = getattr(tensor_a, name, None), getattr(tensor_b, name, None)
        if wanted and a != b:
            raise AssertionError(f"{base_name} and {ref_name} differ in {name}: {a} and {b}")
    if check_stride and tensor_a.stride() != tensor_b.stride():
        raise AssertionError(f"strides differ: {tensor_a.stride()} and {tensor_b.stride()}")
    assert_close(
        tensor_a, tensor_b, rtol=rtol, atol=atol, most=max_mismatched_ratio, equal_nan=equal_nan,
        names=(base_name, ref_name),
    )  # fmt: skip
    return True


def is_float8_dtype(dtype: Any) -> bool:
    """Whether a torch dtype is one of the 8-bit floats."""
    try:
        import torch
    except ImportError:
        raise MissingDependency("torch is not installed", fix="pip install torch") from None
    return any(dtype is getattr(torch, name, None) for name in FLOAT8)


def without_negative_zeros(tensor: Any) -> None:
    """Zeros of a torch tensor of an 8-bit float become positive, in place."""
    if not is_float8_dtype(tensor.dtype):
        raise OptionError(f"a tensor of {tensor.dtype}", rule="it has an 8-bit float type", fix="convert it first")
    import torch

    bits = tensor.view(torch.uint8)
    bits[(bits & 0x7F) == 0] = 0
