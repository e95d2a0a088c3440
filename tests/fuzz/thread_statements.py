"""Statements that ask for the thread index: what each thread does for itself, and what some warps do together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .statements import INDENT, Statement, block_text, run_body, stored_at
from .terms import Env, Term

THREADS = 64  # that statements of single threads name: every variant of a program has as many


@dataclass(frozen=True)
class EachThread(Statement):
    """`if cond:` with element statements, where `tx` is the thread's index: below THREADS, so that the meaning is the
    same for any number of threads."""

    cond: Term
    body: tuple[Statement, ...]
    bodies = ("body",)

    def lines(self, indent: int) -> list[str]:
        return [f"{INDENT * indent}if {self.cond.text()}:", *block_text(self.body, indent + 1)]

    def run(self, env: Env) -> None:
        names = {**env.names, "tx": np.arange(THREADS, dtype=np.int64)}
        inner = Env(names, env.tiles, np.ones(THREADS, bool) & np.asarray(env.live), stored_at(self.body))
        run_body(self.body, inner.only(np.asarray(self.cond.value(inner)) != 0))


@dataclass(frozen=True)
class Warps(Statement):
    """`if tx < piece:` with tile statements, the other warps the `else`. The two sides touch no common tile."""

    piece: int
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()
    bodies = ("then", "orelse")

    def lines(self, indent: int) -> list[str]:
        out = [f"{INDENT * indent}if tx < {self.piece}:", *block_text(self.then, indent + 1)]
        return out + ([f"{INDENT * indent}else:", *block_text(self.orelse, indent + 1)] if self.orelse else [])

    def run(self, env: Env) -> None:
        run_body(self.then, env)
        run_body(self.orelse, env)
