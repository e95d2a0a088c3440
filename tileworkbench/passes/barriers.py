"""Names for meetings: the block barrier when one role has all threads, a numbered barrier for each role otherwise."""

from __future__ import annotations

from ..ir.instr import Sync
from ..ir.kernel import Kernel
from ..ir.node import Node, replace, rewrite, walk
from ..ir.planned import Role
from ..ir.stmt import Stmt
from ..target import Target

FIRST_ID = 1  # 0 is the block barrier


def barriers(kernel: Kernel, target: Target) -> Kernel:
    """Role meetings get an id and a thread count."""
    roles = [r for r in kernel.body if isinstance(r, Role)]
    lanes = target.arch.warp_size

    def name(role: Role, number: int) -> Stmt:
        whole = role.warps * lanes == kernel.launch_threads

        def change(n: Node) -> Node:
            if isinstance(n, Sync) and n.who == "role":
                if role.warps == 1:
                    return replace(n, who="warp")
                return replace(n, who="block") if whole else replace(n, id=number, threads=role.warps * lanes)
            return n

        return rewrite(role, change)

    taken = {n.id for n in walk(kernel.body) if isinstance(n, Sync) and n.who == "named"}
    free = iter(i for i in range(FIRST_ID, FIRST_ID + len(roles) + len(taken)) if i not in taken)
    return kernel.with_(body=tuple(name(s, next(free)) if isinstance(s, Role) else s for s in kernel.body))
