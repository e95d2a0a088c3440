"""All entries of the gallery, family by family."""

from __future__ import annotations

from tests.gallery import attention, attention_backward, attention_masks, gemm

FAMILIES = (attention, attention_backward, attention_masks, gemm)
ENTRIES = [entry for family in FAMILIES for entry in family.ENTRIES]
