"""The planned level: roles, layouts, channels."""

from __future__ import annotations

from ..expr import Buffer
from ..kernel import Kernel
from ..node import Node, walk
from ..planned import Acquire, Commit, Release, Role, Wait
from ..stmt import Alloc
from ..uniform import WARP, WARPGROUP
from .channels import RoleChannels, check_ends, check_issues
from .failure import broken

WARPS = WARPGROUP // WARP  # of a warpgroup


def check_planned(kernel: Kernel, nodes: tuple[Node, ...], warp_size: int) -> None:
    """Raises InternalError at the first broken invariant of the planned level."""
    roles = tuple(s for s in kernel.body if isinstance(s, Role))
    check_roles(kernel, roles, warp_size)
    check_ends(kernel.channels, roles)
    _known_channels(kernel, nodes)
    _layouts(kernel, nodes)
    for role in roles:
        RoleChannels(role.name).run(role.body, role)
        check_issues(role.body)
    if not roles:
        RoleChannels(None).run(kernel.body, None)
        check_issues(kernel.body)


def check_roles(kernel: Kernel, roles: tuple[Role, ...], warp_size: int) -> None:
    """Names differ, warp ranges are disjoint and inside the launch, and no role stands in another."""
    for role in roles:
        _inside(role.body, role)
    warps = -(-(kernel.launch_threads or kernel.threads) // warp_size)
    taken: dict[int, Role] = {}
    names: set[str] = set()
    for role in roles:
        if role.name in names:
            raise broken(f"two roles are named {role.name}", role, "a role's name is its own")
        names.add(role.name)
        if role.first_warp < 0 or role.warps < 1 or role.first_warp + role.warps > warps:
            raise broken(
                f"role {role.name} has warps {role.first_warp} to {role.first_warp + role.warps - 1}",
                role,
                f"the launch has {warps} warps",
            )
        for w in range(role.first_warp, role.first_warp + role.warps):
            if w in taken:
                raise broken(f"warp {w} belongs to roles {taken[w].name} and {role.name}", role, "roles are disjoint")
            taken[w] = role


def _inside(body: tuple[Node, ...], role: Role) -> None:
    """Roles in a role (some of its warpgroups) have warps of its own."""
    for n in walk(body):
        first, last = role.first_warp, role.first_warp + role.warps
        if type(n) is Role and not first <= n.first_warp <= n.first_warp + n.warps <= last:
            raise broken(f"role {n.name} is not inside role {role.name}", n, "a role's warps are the outer role's")


def check_registers(kernel: Kernel, roles: tuple[Role, ...], warp_size: int, available: int) -> None:
    """Register targets are multiples of 8 in 24 … 256 and fit the register file, whole warpgroups counted."""
    total = 0
    for role in roles:
        if role.registers is None:
            continue
        if role.registers % 8 or not 24 <= role.registers <= 256:
            raise broken(f"role {role.name} asks for {role.registers} registers", role, "a multiple of 8 in 24 … 256")
        total += role.registers * -(-role.warps // WARPS) * WARPS * warp_size
    if total > available:
        raise broken(f"the roles ask for {total} registers", kernel, f"an SM has {available}")


def _known_channels(kernel: Kernel, nodes: tuple[Node, ...]) -> None:
    known = set(kernel.channels)
    for s in nodes:
        if isinstance(s, (Acquire, Commit, Wait, Release)) and s.channel not in known:
            raise broken(f"channel {s.channel.name} is not the kernel's", s, "channels are listed in the kernel")
    for channel in kernel.channels:
        for b in channel.buffers:
            if kernel.versions and kernel.versions.get(b, 1) != channel.depth:
                raise broken(
                    f"{b.name} has {kernel.versions.get(b, 1)} versions, channel {channel.name} {channel.depth}",
                    channel,
                    "a ring's buffers have a version for each of its places",
                )


def _layouts(kernel: Kernel, nodes: tuple[Node, ...]) -> None:
    """Once there are layouts, every tile that a statement uses has one."""
    if not kernel.layouts:
        return
    # An allocation is followed by its buffer in the walk; what comes once more is used.
    allocated = {n.buffer for n in nodes if type(n) is Alloc}
    times: dict[Buffer, int] = {}
    for n in nodes:
        if type(n) is Buffer and n.space in ("shared", "fragment"):
            times[n] = times.get(n, 0) + 1
    for b, count in times.items():
        used = count > (b in allocated)
        if used and b not in kernel.layouts and not isinstance(b.attr("view_of"), Buffer):
            raise broken(f"{b.name} has no layout", b, "fragments and shared tiles in use have layouts")
