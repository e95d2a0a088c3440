"""All entries of the gallery, family by family."""

from __future__ import annotations

from tests.gallery import attention, attention_backward, attention_masks, gemm, mixing, normalisation, quantise

FAMILIES = (attention, attention_backward, attention_masks, gemm, mixing, normalisation, quantise)
ENTRIES = [entry for family in FAMILIES for entry in family.ENTRIES]
