"""From a finished trace to ir.Kernel: parameters, outputs, workspaces, and one kernel for each T.Kernel block."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..errors import Loc, TileError
from ..ir.expr import Buffer, Expr, Var
from ..ir.kernel import Assumed, Kernel
from .arguments import of_arguments
from .builder import Builder
from .extern import without_unread
from .faults import fault, misnested, settle
from .launch import Launch
from .leaving import with_returns
from .parameters import untyped
from .private import with_private_fragments
from .reducers import check_finalised
from .scopes import check_scopes
from .sourcekernel import body as source_body
from .transfers import filled_layouts
from .warpgroupinstr import described_layouts


def finish(builder: Builder) -> tuple[Kernel, ...]:
    """The kernels of a finished trace, in launch order, all with the same parameters; what is wrong with the function
    as a whole is placed at the `def`."""
    node, source = builder.table.source.node, builder.table.source
    header = source.span(node.lineno, node.col_offset, node.lineno, node.col_offset + len("def"))
    try:
        return _finished(builder, header)
    except TileError as error:
        raise settle(error.at(header)) from None


def _finished(builder: Builder, header: Loc) -> tuple[Kernel, ...]:
    table = builder.table
    for missing in table.undeclared.values():
        raise untyped(missing)
    if not builder.launches:
        raise misnested(
            f"`{builder.name}` has no `with T.Kernel(...)`",
            "a kernel's body stands in a T.Kernel block",
            "wrap the body in `with T.Kernel(...) as ...:`",
            header,
        )
    check_finalised(builder.reduced)
    params = table.ordered(list(table.signature.parameters))
    outputs = output_places(builder, len(params))
    every = (*params, *builder.empties, *builder.workspaces)
    first = len(every) - len(builder.workspaces)
    spaces = {"workspaces": tuple(range(first, len(every)))} if builder.workspaces else {}
    made = []
    for number, launch in enumerate(builder.launches):
        attrs = {**builder.attrs, **launch.attrs, **spaces, "asserts": tuple(builder.asserts)}
        name = builder.name if number == 0 else f"{builder.name}_{number}"
        made.append(one_kernel(name, every, launch, outputs, attrs, table.defaults, header))
    return tuple(made)


def one_kernel(
    name: str,
    params: tuple[Buffer | Var, ...],
    launch: Launch,
    outputs: tuple[int, ...],
    attrs: dict[str, Any],
    defaults: Mapping[Var, Any],
    header: Loc,
) -> Kernel:
    """The ir.Kernel of one T.Kernel block."""
    attrs = dict(attrs)
    notes = attrs.pop("notes", ())
    stated: tuple[Assumed, ...] = attrs.pop("assume", ())
    asserted: tuple[Assumed, ...] = attrs.pop("asserts", ())
    if launch.prelude:
        places = (*attrs.get("source_places", ()), launch.prelude_place)
        attrs |= {"prelude": launch.prelude, "source_places": places}
    kernel = Kernel(
        name=name,
        params=params,
        grid=launch.grid,
        block_vars=launch.block_vars,
        threads=math.prod(launch.thread_shape),
        body=with_private_fragments(without_unread(with_returns(tuple(launch.body)))),
        thread_vars=launch.thread_vars,
        thread_shape=launch.thread_shape,
        outputs=outputs,
        defaults=dict(defaults),
        attrs=attrs,
        cluster=launch.cluster,
        notes=tuple(dict.fromkeys(notes)),
        loc=header,
    )
    if launch.source is not None:
        kernel = kernel.with_(body=source_body(launch.source, kernel))
    if other := next((fact for fact in asserted if not of_arguments(fact.cond, kernel)), None):
        raise fault(
            "an assert before T.Kernel of what only the device knows",
            "there it is checked at every launch: of sizes and integer arguments",
            "move it into the T.Kernel block",
            other.cond.loc,
        )
    checked = (*asserted, *(fact for fact in stated if of_arguments(fact.cond, kernel)))
    kernel = kernel.with_(assumed=checked)
    check_scopes(kernel)
    return described_layouts(filled_layouts(kernel))


def single(kernels: tuple[Kernel, ...]) -> Kernel:
    """The only kernel of a function; LanguageError when it launches several."""
    if len(kernels) > 1:
        raise fault(
            f"`{kernels[0].name}` launches {len(kernels)} kernels",
            "a single launch is asked for here; tileworkbench.compile takes sequences of launches",
            "make a function for each T.Kernel block, or compile the whole",
            kernels[0].loc,
        )
    return kernels[0]


def output_places(builder: Builder, first: int) -> tuple[int, ...]:
    """Indices of the returned T.empty tensors among the parameters, in the order of the return."""
    returned = builder.returned
    values = () if returned is None else tuple(returned) if isinstance(returned, list | tuple) else (returned,)
    places = []
    for value in values:
        match = [n for n, e in enumerate(builder.empties) if e is value]
        if not match:
            what = (
                f"`{value.name}`"
                if isinstance(value, Buffer | Var)
                else "an expression"
                if isinstance(value, Expr)
                else repr(value)
            )
            raise fault(
                f"`{builder.name}` returns {what}",
                "a kernel returns the tensors that it made by T.empty",
                "return a T.empty tensor, or make the output a parameter and name it in out_idx",
                builder.return_loc,
            )
        places.append(first + match[0])
    if len(places) != len(builder.empties):
        raise fault(
            f"`{builder.name}` makes {len(builder.empties)} T.empty tensors and returns {len(places)}",
            "all T.empty tensors are returned",
            "return each of them once",
            builder.return_loc,
        )
    return tuple(places)
