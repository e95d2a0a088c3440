"""The entries of the kernels that decode."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.gallery.attention import split_heads
from tests.gallery.decoding import HALF, paged, split, with_tile_weights
from tests.gallery.entry import ROUNDING, Data, Entry, Expected, normal
from tests.gallery.references import attend


def in_parts(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, parts: list[slice]) -> tuple[Any, Any]:
    """Attention by parts of the keys and its bound: results and logarithms of denominators are rounded in between."""
    unit, whole = ROUNDING[HALF], attend(q, k, v, scale)
    found = [attend(q, k[..., part, :], v[..., part, :], scale) for part in parts]
    # A rounded logarithm changes a part's weight relatively, and the sum of all by the worst of them.
    shifts = [np.log(2) * unit * (np.abs(part.lse) + 1) for part in found]
    worst, bound = np.max(shifts, axis=0), unit * np.abs(whole.out)
    for part, shift in zip(found, shifts, strict=True):
        share = 2.0 ** (part.lse - whole.lse)[..., None]
        bound = bound + share * (part.bound + (2 * unit + (shift + worst)[..., None]) * np.abs(part.out))
    return whole.out, bound


def split_data(B: int, H: int, S: int, keys: int, D: int, parts: int, **_: Any) -> Data:
    q, k, v = normal(1, (B, S, H, D)), normal(2, (B, keys, H, D)), normal(3, (B, keys, H, D))
    share = keys // parts
    slices = [slice(n * share, (n + 1) * share) for n in range(parts)]
    out, bound = in_parts(split_heads(q), split_heads(k), split_heads(v), D**-0.5, slices)
    return Data({"Q": q, "K": k, "V": v}, {"Out": Expected(split_heads(out), split_heads(bound))})


def tile_weights_data(lengths: tuple[int, ...], H: int, KH: int, D: int, sink: bool, BN: int = 128, **_: Any) -> Data:
    B, rows, group, tiles = len(lengths), sum(lengths), H // KH, -(-max(lengths) // BN)
    q, k, v = normal(1, (B, H, D)), normal(2, (rows, KH, D)), normal(3, (rows, KH, D))
    sinks = np.abs(normal(4, (H,), "float32"))
    ends = np.cumsum([0, *lengths]).astype(np.int32)
    out, bound, weights = np.zeros((B, H, D)), np.zeros((B, H, D)), np.zeros((B, H, tiles))
    for b, length in enumerate(lengths):
        mine = [np.repeat(x[ends[b] : ends[b + 1]].transpose(1, 0, 2), group, 0) for x in (k, v)]
        found = attend(q[b][:, None], *mine, D**-0.5)
        scores = (q[b][:, None].astype(float) @ mine[0].astype(float).transpose(0, 2, 1) * D**-0.5)[:, 0]
        parts = np.exp(scores - scores.max(1, keepdims=True))
        # A sink of weight s beside a sum t of the others scales everything by t / (t + s).
        shrink = parts.sum(1) / (parts.sum(1) + (sinks if sink else 0))
        out[b], bound[b] = found.out[:, 0] * shrink[:, None], found.bound[:, 0]
        for n in range(-(-length // BN)):
            part = parts[:, n * BN : (n + 1) * BN].max(1)
            weights[b, :, n] = part / (parts.sum(1) + (sinks if sink else 0))
    inputs = {"Q": q, "K": k, "V": v, "Ends": ends, "Sinks": sinks}
    # A weight is at most 1; its score is wrong by D 2⁻²³ of its absolute terms.
    error = weights * (2.0**-11 + 2.0**-13) + 2.0**-25
    return Data(inputs, {"Out": Expected(out, bound), "Tiles": Expected(weights, error)})


def paged_data(
    lengths: tuple[int, ...], capacity: int, H: int, D: int, tail: int, page: int, parts: int, BN: int = 64, **_: Any
) -> Data:
    B, pages = len(lengths), len(lengths) * capacity // page
    q, q_tail = normal(1, (B, H, D)), normal(2, (B, H, tail))
    kv, k_tail = normal(3, (B * capacity, D)), normal(4, (B * capacity, tail))
    table = np.random.default_rng(5).permutation(pages).reshape(B, -1).astype(np.int32)
    out, bound = np.zeros((B, H, D)), np.zeros((B, H, D))
    for b, length in enumerate(lengths):
        rows = (table[b][:, None] * page + np.arange(page)).reshape(-1)[:length]
        query, key = np.concatenate([q[b], q_tail[b]], 1), np.concatenate([kv[rows], k_tail[rows]], 1)
        blocks = np.array_split(np.arange(-(-length // BN)), parts)  # the first parts get one more
        slices = [slice(part[0] * BN, (part[-1] + 1) * BN) for part in blocks]
        out[b], bound[b] = in_parts(query, key, kv[rows], (D + tail) ** -0.5, slices)
    inputs = {"Q": q, "QTail": q_tail, "KV": kv, "KTail": k_tail, "Table": table, "Lengths": np.int32(lengths)}
    return Data(inputs, {"Out": Expected(out, bound)})


ENTRIES = [
    Entry("decoding, split and combined", ("flash_decoding/example_mha_inference.py",), split, split_data,
          {"B": 1, "H": 2, "S": 40, "keys": 256, "D": 64, "parts": 2},
          {"B": 1, "H": 32, "S": 128, "keys": 8192, "D": 128, "parts": 4, "BM": 128}),
    Entry("decoding with weights of tiles", ("flash_decoding/example_gqa_decode_varlen_logits.py",),
          with_tile_weights, tile_weights_data,
          {"lengths": (50, 130), "H": 8, "KH": 2, "D": 64, "sink": True, "BN": 64},
          {"lengths": (8192, 4096), "H": 64, "KH": 8, "D": 128, "sink": True}),
    Entry("decoding from pages", ("deepseek_mla/example_mla_decode_paged.py",), paged, paged_data,
          {"lengths": (130, 128), "capacity": 256, "H": 64, "D": 64, "tail": 32, "page": 64, "parts": 2,
           "threads": 128},
          {"lengths": (8000,) * 8, "capacity": 8192, "H": 128, "D": 512, "tail": 64, "page": 64, "parts": 4}),
]  # fmt: skip
