"""All entries of the gallery, family by family."""

from __future__ import annotations

from tests.gallery import (
    attention,
    attention_backward,
    attention_masks,
    attention_sink_backward,
    convolution,
    decoding_cases,
    dequantise,
    elementwise,
    gemm,
    gemm_eight_bit,
    gemm_instructions,
    gemm_specialised,
    grouped,
    indexer,
    mixing,
    normalisation,
    quantise,
    selection,
    sparse_blocks,
    sparse_latent_cases,
    vectors,
)

FAMILIES = (
    attention,
    attention_backward,
    attention_masks,
    attention_sink_backward,
    convolution,
    decoding_cases,
    dequantise,
    elementwise,
    gemm,
    gemm_eight_bit,
    gemm_instructions,
    gemm_specialised,
    grouped,
    indexer,
    mixing,
    normalisation,
    quantise,
    selection,
    sparse_blocks,
    sparse_latent_cases,
    vectors,
)
ENTRIES = [entry for family in FAMILIES for entry in family.ENTRIES]
