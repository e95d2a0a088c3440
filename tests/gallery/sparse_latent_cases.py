"""The entries of the kernels that attend to selected rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.gallery.entry import ROUNDING, Data, Entry, Expected, normal
from tests.gallery.references import attend, backward
from tests.gallery.sparse_by_hand import one_maker, two_makers
from tests.gallery.sparse_latent import BRAIN, FLOAT, selected, selected_backward, selected_with_sinks


def choices(seed: int, places: np.ndarray, topk: int) -> np.ndarray:
    """For every position distinct rows up to it in any order, filled up with −1 and rows that it does not see."""
    rng = np.random.default_rng(seed)
    index = np.full((len(places), topk), -1, np.int32)
    for row, place in enumerate(places):
        chosen = rng.permutation(place + 1)[: max(1, topk * 3 // 4)]
        index[row, : len(chosen)] = chosen
        index[row] = rng.permutation(index[row])
    return index


def sequences(lengths: tuple[int, ...], topk: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """The tables of sequences laid end to end, the selection as a mask (rows, rows), and each row's first row."""
    starts = np.cumsum([0, *lengths[:-1]]).astype(np.int32)
    which = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(sum(lengths)) - starts[which]
    index = choices(7, places, topk)
    mask = np.zeros((len(places), len(places)), bool)
    for row, chosen in enumerate(index):
        mask[row, starts[which[row]] + chosen[chosen >= 0]] = True
    tables = {"Index": index, "Starts": starts, "Tokens": np.stack([which, places], 1).astype(np.int32)}
    return tables, mask, starts[which]


def selected_data(lengths: tuple[int, ...], H: int, D: int, tail: int, topk: int, **_: Any) -> Data:
    rows = sum(lengths)
    q, kv = normal(1, (rows, H, D + tail), BRAIN), normal(2, (rows, D + tail), BRAIN)
    tables, mask, _first = sequences(lengths, topk)
    found = attend(q.transpose(1, 0, 2), kv, kv[:, :D], (D + tail) ** -0.5, mask, dtype=BRAIN)
    outputs = {
        "Out": Expected(found.out.transpose(1, 0, 2), found.bound.transpose(1, 0, 2)),
        "Lse": Expected(found.lse.T, found.lse_bound.T),
    }
    return Data({"Q": q, "KV": kv, **tables}, outputs)


def selected_backward_data(lengths: tuple[int, ...], H: int, D: int, tail: int, topk: int, **_: Any) -> Data:
    rows = sum(lengths)
    q, kv = normal(1, (rows, H, D + tail), BRAIN), normal(2, (rows, D + tail), BRAIN)
    g = normal(3, (rows, H, D), BRAIN)
    tables, mask, _first = sequences(lengths, topk)
    heads = q.transpose(1, 0, 2), np.broadcast_to(kv, (H, *kv.shape)), np.broadcast_to(kv[:, :D], (H, rows, D))
    found = backward(*heads, g.transpose(1, 0, 2), (D + tail) ** -0.5, mask, dtype=BRAIN)
    inputs = {"Q": q, "KV": kv, "G": g, **tables}
    inputs |= {"Lse": found.lse.T.astype(FLOAT), "Delta": found.delta.T.astype(FLOAT)}
    (dq, dq_bound), (dk, dk_bound), (dv, dv_bound) = found.dq, found.dk, found.dv
    dkv, bound = dk.sum(0), dk_bound.sum(0)
    dkv[:, :D] += dv.sum(0)
    bound[:, :D] += dv_bound.sum(0)
    # Atomics add H products a row in any order.
    bound = bound + rows * 2.0**-23 * np.abs(dkv)
    dq, dq_bound = dq.transpose(1, 0, 2), dq_bound.transpose(1, 0, 2)
    outputs = {
        "dQ": Expected(dq, dq_bound + ROUNDING[BRAIN] * np.abs(dq)),
        "dKV": Expected(dkv, bound, initial=np.zeros(dkv.shape)),
    }
    return Data(inputs, outputs)


def sinks_data(B: int, S: int, rows: int, H: int, D: int, topk: int, **_: Any) -> Data:
    q, kv, sinks = normal(1, (B, S, H, D), BRAIN), normal(2, (B, rows, D), BRAIN), normal(3, (H,), BRAIN)
    index = choices(7, np.full(B * S, rows - 1), topk).reshape(B, S, topk)
    mask = np.zeros((B, S, rows + 1), bool)
    np.put_along_axis(mask, index, True, axis=2)
    heads = q.transpose(0, 2, 1, 3), kv[:, None], kv[:, None], D**-0.5, mask[:, None, :, :rows]
    found = attend(*heads, sinks.astype(np.float64)[:, None, None], BRAIN)
    out, bound = (x.transpose(0, 2, 1, 3) for x in (found.out, found.bound))
    return Data({"Q": q, "KV": kv, "Index": index, "Sinks": sinks}, {"Out": Expected(out, bound)})


def by_hand_data(B: int, S: int, H: int, D: int, tail: int, topk: int) -> Data:
    q, kv = normal(1, (B, S, H, D + tail), BRAIN), normal(2, (B, S, D + tail), BRAIN)
    index = np.stack([choices(7 + b, np.arange(S), topk) for b in range(B)])
    mask = np.zeros((B, S, S + 1), bool)
    np.put_along_axis(mask, index, True, axis=2)
    heads = q.transpose(0, 2, 1, 3), kv[:, None], kv[:, None, :, :D], (D + tail) ** -0.5, mask[:, None, :, :S]
    found = attend(*heads, dtype=BRAIN)
    outputs = {
        "Out": Expected(found.out.transpose(0, 2, 1, 3), found.bound.transpose(0, 2, 1, 3)),
        "Lse": Expected(found.lse.transpose(0, 2, 1), found.lse_bound.transpose(0, 2, 1)),
    }
    return Data({"Q": q, "KV": kv, "Index": index}, outputs)


def without_batch(function: Any) -> Any:
    return lambda B, S, **sizes: function.compile(**sizes)


def without_lengths(function: Any) -> Any:
    return lambda lengths, **sizes: function.compile(**sizes)


SMALL = {"lengths": (2, 4), "H": 16, "D": 32, "tail": 16, "topk": 32, "BN": 16}
LARGE = {"lengths": (1024, 2048), "H": 64, "D": 512, "tail": 64, "topk": 2048}
ENTRIES = [
    Entry("attention to selected rows", ("dsa_sparse_finetune/sparse_mla_fwd.py",), without_lengths(selected),
          selected_data, SMALL, {**LARGE, "threads": 256}),
    Entry("attention to selected rows, backward", ("dsa_sparse_finetune/sparse_mla_bwd.py",),
          without_lengths(selected_backward), selected_backward_data, SMALL, {**LARGE, "H": 32, "threads": 256}),
    Entry("attention to selected rows with sinks", ("deepseek_v4/sparse_attn_fwd_sm90.py",), selected_with_sinks,
          sinks_data, {"B": 1, "S": 3, "rows": 100, "H": 64, "D": 64, "topk": 128, "threads": 128},
          {"B": 1, "S": 4096, "rows": 8192, "H": 64, "D": 512, "topk": 1024}),
    *[
        Entry(name, (f"deepseek_v32/sparse_mla_fwd_{script}.py",), without_batch(function), by_hand_data,
              {"B": 1, "S": 2, "H": 64, "D": 64, "tail": 64, "topk": 256},
              {"B": 1, "S": 4096, "H": 128, "D": 512, "tail": 64, "topk": 2048}, hopper=True)
        for name, script, function in (
            ("attention to selected rows, one group weighs", "pipelined", one_maker),
            ("attention to selected rows, two groups weigh", "seesaw", two_makers),
        )
    ],
]  # fmt: skip
