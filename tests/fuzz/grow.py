"""Random descriptions, grown statement by statement. What may be undefined, inexact or racing is mostly avoided here
and surely refused by the reference, so that every description that is kept has one meaning."""

from __future__ import annotations

from dataclasses import fields, replace

from .grow_base import DTYPES, GEMM_SIZES, MOSTLY_GEMM, SIZES, STEPS, Scope
from .grow_threads import Threads
from .program import Program, valid
from .statements import Box, Statement


class Grower(Threads):
    """Grows one description from a seed."""

    def program(self) -> Program:
        rng = self.rng
        gemms = rng.random() < 0.25
        self.dims = [rng.choice(GEMM_SIZES if gemms else SIZES) for _ in range(3)]
        self.dtypes = [rng.choice(DTYPES) for _ in range(rng.choice((1, 2, 2, 3)))]
        if gemms:
            self.dtypes = ["float32", rng.choice(("float16", "bfloat16"))]
        axes = rng.choices((1, 2, 3), (5, 4, 1))[0]
        self.grid = [rng.randint(1, 3) for _ in range(axes)]
        while axes > 1 and self.grid[0] * self.grid[1] * (self.grid[2] if axes > 2 else 1) > 6:
            self.grid = [rng.randint(1, 2) for _ in range(axes)]
        threads = rng.choices((32, 64, 96, 128, 192, 256), (1, 3, 1, 6, 1, 2) if not gemms else (1, 2, 0, 8, 0, 3))[0]
        self.threads = threads
        blocks = ("bx", "by", "bz")[:axes]
        scope = Scope(steps=MOSTLY_GEMM if gemms else STEPS)
        scope.inner = {b: (0, n - 1) for b, n in zip(blocks, self.grid, strict=True)}
        if rng.random() < 0.3:
            self.scalars.append(("n", rng.randint(0, 4)))
            scope.inner["n"] = (0, self.scalars[0][1])
        body = self.body(scope, rng.randint(2, 6))
        body += self.write_out(scope)
        grid = tuple((n, str(n)) for n in self.grid)
        made = Program(
            tuple(self.tensors),
            grid,
            threads,
            (*self.tiles, *self.hidden),
            tuple(body),
            tuple(self.scalars),
            self.seed,
            piece=self.piece,
        )
        return self.with_symbols(made)

    def with_symbols(self, program: Program) -> Program:
        """Some extents known only at launch; the grid's text follows where it can."""
        rng = self.rng
        whole = {b.buffer for b in _boxes(program.body) if b.form == "whole"}
        free = [at for at, t in enumerate(program.tensors) if t.name not in whole]
        if rng.random() > 0.25 or not free:
            return program
        at = rng.choice(free)
        tensor = program.tensors[at]
        dim = rng.randrange(len(tensor.shape))
        if tensor.shape[dim] < 1:
            return program
        named = replace(tensor, symbols=((dim, "m"),))
        grid = list(program.grid)
        if rng.random() < 0.5:
            n = grid[0][0]
            tile = -(-tensor.shape[dim] // n)
            if -(-tensor.shape[dim] // tile) == n:
                grid[0] = (n, f"T.ceildiv(m, {tile})")
        return replace(program, tensors=(*program.tensors[:at], named, *program.tensors[at + 1 :]), grid=tuple(grid))


def _boxes(body: tuple[Statement, ...]) -> list[Box]:
    """Every region of the body."""
    found = []
    for s in body:
        found += [v for f in fields(s) if isinstance(v := getattr(s, f.name), Box)]
        found += _boxes(tuple(s.children()))
    return found


def generate(seed: int) -> Program:
    """The seed's description: the first attempt that has a defined, exact meaning."""
    for attempt in range(200):
        program = replace(Grower(seed * 1000 + attempt).program(), seed=seed)
        if program.body and valid(program):
            return program
    raise AssertionError(f"seed {seed} gives no valid description")


__all__ = ["Grower", "generate"]
