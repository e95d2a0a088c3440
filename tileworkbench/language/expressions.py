"""Rewriting of expressions, and the small tools that make calls of the stage."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

from ..errors import LanguageError, Loc
from .faults import MARK, fault
from .source import Source

A = TypeVar("A", bound=ast.AST)

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "floormod",
    ast.Pow: "pow",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
    ast.MatMult: "matmul",
    ast.UAdd: "pos",
    ast.USub: "neg",
    ast.Invert: "invert",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Is: "is",
    ast.IsNot: "is_not",
    ast.In: "in",
    ast.NotIn: "not_in",
}
# Attributes of tiles that the language answers in its own words (dtype objects, scope names).
_ATTRIBUTES = ("dtype", "scope", "strides", "shape", "ndim", "data")


class ExpressionRewriter(ast.NodeTransformer):
    """`names` are the function's own and free variables: reads of them are checked by the stage."""

    def __init__(self, source: Source, names: frozenset[str]) -> None:
        self.source, self.names = source, names
        self.parameters = {a.arg for a in (*source.node.args.args, *source.node.args.kwonlyargs)}
        self.spans: list[Loc] = []
        self.count = 0
        self.shadows: list[set[str]] = []

    # -- tools -------------------------------------------------------------------------------------------------------

    def at(self, made: A, node: Any) -> A:
        return ast.copy_location(made, node)

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{MARK}_{kind}{self.count}"

    def number(self, first: Any, last: Any) -> int:
        span = self.source.span(first.lineno, first.col_offset, last.end_lineno, last.end_col_offset)
        self.spans.append(span)
        return len(self.spans) - 1

    def tw(self, method: str, node: Any, *args: ast.expr, span: tuple[Any, Any] | None = None) -> ast.expr:
        """`__tw.method(k, *args)` placed at `node`, where `k` numbers its span."""
        first, last = span or (node, node)
        k = ast.Constant(self.number(first, last))
        # Python places a call of several lines at the end of what is called, so that stands at the start of the first.
        stage = ast.Attribute(ast.Name(MARK, ast.Load()), method, ast.Load())
        for part in (stage, stage.value):
            part.lineno = part.end_lineno = first.lineno
            part.col_offset = part.end_col_offset = first.col_offset
        made = ast.Call(stage, [k, *args], [])
        made.lineno, made.col_offset = first.lineno, first.col_offset
        made.end_lineno, made.end_col_offset = last.end_lineno, last.end_col_offset
        return made

    def delay(self, node: ast.expr) -> ast.expr:
        """`lambda: node`, for operands that are evaluated only when needed."""
        empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        made = ast.Lambda(empty, self.visit(node))
        return self.at(made, node) if hasattr(node, "lineno") else made

    def operator(self, op: ast.AST) -> str:
        return _OPERATORS[type(op)]

    # -- errors ------------------------------------------------------------------------------------------------------

    def refuse(self, node: Any, found: str, rule: str, fix: str) -> LanguageError:
        return fault(found, rule, fix, self.source.loc(node))

    def unsupported(self, node: Any, what: str, fix: str) -> LanguageError:
        rule = "a kernel's text holds assignments, if, for, while, with, assert and return"
        return self.refuse(node, f"{what} in a kernel", rule, fix)

    def bad_target(self, node: ast.expr) -> LanguageError:
        if isinstance(node, ast.Starred):
            return self.refuse(node, "a starred target", "each value gets a name of its own", "write all the names")
        if isinstance(node, ast.List):
            return self.refuse(node, "a list of targets", "targets are names or tuples of names", "use a tuple")
        if isinstance(node, ast.Attribute):
            rule = "a kernel's text assigns names and elements, not attributes"
            return self.refuse(node, f"assignment to the attribute `{ast.unparse(node)}`", rule, "use a local name")
        rule = "targets are names, elements, and tuples of them"
        return self.refuse(node, f"`{ast.unparse(node)}` cannot be assigned", rule, "assign to a name")

    def literal(self, value: str | tuple[str | None, ...]) -> ast.Constant:
        """A constant of the text; Python's compiler takes tuples too."""
        made = ast.Constant("")
        made.value = value  # type: ignore[assignment]  # typeshed names the literals of source text alone
        return made

    def targets(self, node: ast.expr, kind: str) -> str | tuple[str, ...]:
        """The name, or the tuple of names, after `for` or `as`."""
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Tuple) and all(isinstance(part, ast.Name) for part in node.elts):
            return tuple(part.id for part in node.elts)  # type: ignore[attr-defined]
        bad = node
        if isinstance(node, ast.Tuple):
            bad = next(part for part in node.elts if not isinstance(part, ast.Name))
        if isinstance(bad, ast.Starred | ast.List | ast.Attribute):
            raise self.bad_target(bad)
        rule = f"the target of a {kind} is a name or a tuple of names"
        raise self.refuse(bad, f"`{ast.unparse(bad)}` as a {kind} target", rule, "use plain names")

    # -- leaves and calls --------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.expr:
        checked = node.id in self.names and not any(node.id in names for names in self.shadows)
        if not isinstance(node.ctx, ast.Load) or not checked:
            return node
        return self.tw("read", node, ast.Constant(node.id), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        value = self.visit(node.value)
        if node.attr in _ATTRIBUTES and isinstance(node.ctx, ast.Load):
            return self.tw("attribute", node, value, ast.Constant(node.attr))
        return self.at(ast.Attribute(value, node.attr, node.ctx), node)

    def visit_Call(self, node: ast.Call, method: str = "call") -> ast.expr:
        function = self.visit(node.func)
        args = [self.visit(a) for a in node.args]
        keywords = [self.at(ast.keyword(k.arg, self.visit(k.value)), k) for k in node.keywords]
        made = self.tw(method, node, function, *args)
        made.keywords = keywords  # type: ignore[attr-defined]
        return made

    def iterator(self, node: ast.expr) -> ast.expr:
        """What a loop runs over; a direct call of `range` means T.serial."""
        return self.visit_Call(node, "iterate") if isinstance(node, ast.Call) else self.visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return self.tw("item", node, self.visit(node.value), self.index(node.slice))

    def index(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Tuple):
            return self.at(ast.Tuple([self.index(part) for part in node.elts], ast.Load()), node)
        if isinstance(node, ast.Slice):
            parts = [
                self.visit(p) if p is not None else ast.Constant(None) for p in (node.lower, node.upper, node.step)
            ]
            return self.tw("slice", node, *parts)
        made: ast.expr = self.visit(node)
        return made

    # -- operators ---------------------------------------------------------------------------------------------------

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        op = ast.Constant(self.operator(node.op))
        return self.tw("binary", node, op, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.operand, ast.Constant):
            return node
        if isinstance(node.op, ast.Not):
            return self.tw("negate", node, self.visit(node.operand))
        return self.tw("unary", node, ast.Constant(self.operator(node.op)), self.visit(node.operand))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        op = ast.Constant("land" if isinstance(node.op, ast.And) else "lor")
        first, *rest = node.values
        return self.tw("logical", node, op, self.visit(first), *[self.delay(v) for v in rest])

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1:
            op = ast.Constant(self.operator(node.ops[0]))
            return self.tw("compare", node, op, self.visit(node.left), self.visit(node.comparators[0]))
        ops = self.literal(tuple(self.operator(op) for op in node.ops))
        return self.tw("chain", node, ops, self.visit(node.left), *[self.delay(c) for c in node.comparators])

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return self.tw("choose", node, self.visit(node.test), self.delay(node.body), self.delay(node.orelse))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        to = self.tw("to", node.target, ast.Constant(node.target.id))
        value = self.at(ast.Call(to, [self.visit(node.value)], []), node.value)
        return self.at(ast.NamedExpr(node.target, value), node)

    # -- scopes of their own -----------------------------------------------------------------------------------------

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        a = node.args
        shadow = {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)}
        shadow |= {p.arg for p in (a.vararg, a.kwarg) if p is not None}
        a.defaults = [self.visit(d) for d in a.defaults]
        self.shadows.append(shadow)
        body = self.visit(node.body)
        self.shadows.pop()
        return self.at(ast.Lambda(a, body), node)

    def visit_comprehension_expression(self, node: Any) -> ast.expr:
        bound = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        self.shadows.append(bound)
        for generator in node.generators:
            generator.iter = self.tw("sequence", generator.iter, self.visit(generator.iter))
            generator.ifs = [self.tw("decided", test, self.visit(test)) for test in generator.ifs]
        for part in ("elt", "key", "value"):
            if hasattr(node, part):
                setattr(node, part, self.visit(getattr(node, part)))
        self.shadows.pop()
        return node  # type: ignore[no-any-return]

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_expression

    def visit_Yield(self, node: ast.expr) -> ast.expr:
        raise self.unsupported(node, "`yield`", "return the values, or store them")

    visit_YieldFrom = visit_Yield

    def visit_Await(self, node: ast.Await) -> ast.expr:
        raise self.unsupported(node, "`await`", "use the plain form")
