"""Names for meetings: the block barrier when one role has all threads, a numbered barrier for each role otherwise."""

from __future__ import annotations

from itertools import count

from ..errors import TargetError
from ..ir.instr import Sync
from ..ir.kernel import Kernel
from ..ir.node import Node, map_children, replace, rewrite, walk
from ..ir.planned import Role
from ..ir.stmt import Stmt
from ..target import Target

FIRST_ID = 1  # 0 is the block barrier


def barriers(kernel: Kernel, target: Target) -> Kernel:
    """Role meetings get an id and a thread count; roles of the same warps share an id."""
    lanes = target.arch.warp_size
    taken = {n.id for n in walk(kernel.body) if isinstance(n, Sync) and n.who == "named"}
    free = (i for i in count(FIRST_ID) if i not in taken)
    numbers: dict[tuple[int, int], int] = {}

    def name(role: Role) -> Stmt:
        key = (role.first_warp, role.warps)
        whole = role.warps * lanes >= kernel.launch_threads

        def change(n: Node) -> Node:
            if not isinstance(n, Sync) or n.who != "role" or n.id is not None:  # an inner role's has its id
                return n
            if role.warps == 1 or whole:
                return replace(n, who="warp" if role.warps == 1 else "block")
            if target.arch.named_barriers <= FIRST_ID:
                raise TargetError(
                    f"{role.warps} warps of a block of {kernel.launch_threads} threads meet: {n.reason}",
                    rule=f"on {target.name} a meeting is of one warp or of the whole block",
                    fix="branch on one warp, or keep operations that meet outside the branch on the thread index",
                    loc=n.loc or role.loc,
                )
            return replace(
                n,
                id=numbers[key] if key in numbers else numbers.setdefault(key, next(free)),
                threads=role.warps * lanes,
            )

        return rewrite(role, change)  # type: ignore[no-any-return]

    def go(s: Node) -> Node:
        s = map_children(s, lambda c: go(c) if isinstance(c, Stmt) else c)
        return name(s) if isinstance(s, Role) else s

    return kernel.with_(body=tuple(go(s) for s in kernel.body))
