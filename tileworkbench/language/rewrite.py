"""The one rewrite of a kernel's syntax tree: everything the builder must see becomes a call of the stage `__tw`.

    x = e                 x = __tw.to(k, "x")(e)
    A[i, j] = e           __tw.store(k, A, (i, j), e)
    for i in r: body      for i in __tw.loop(k, ("i",), r): body
    if c: a else: b       for __tw_b in __tw.branches(k, c): (a if __tw_b else b)
    with c as x: body     for x in __tw.within(k, ("x",), c): body
    a + b, f(x), A[i]     __tw.binary(k, "add", a, b), __tw.call(k, f, x), __tw.item(k, A, i)

`k` numbers a span of the text. Rewritten nodes keep the user's positions, so tracebacks and profilers stay right.
"""

from __future__ import annotations

import ast
from typing import Any

from .expressions import ExpressionRewriter
from .source import Source


class Rewriter(ExpressionRewriter):
    """Statements. Expressions are handled in the base class."""

    def __init__(self, source: Source, names: frozenset[str]) -> None:
        super().__init__(source, names)
        self.loops = 0

    def function(self) -> ast.FunctionDef:
        """The function without decorators, defaults and annotations, its body rewritten."""
        node = self.source.node
        if isinstance(node, ast.AsyncFunctionDef):
            raise self.unsupported(node, "`async def`", "write a plain `def`")
        if node.args.posonlyargs:
            raise self.refuse(
                node.args.posonlyargs[0],
                "positional-only parameters",
                "kernel parameters can be named",
                "remove the `/`",
            )
        plain = [ast.copy_location(ast.arg(a.arg), a) for a in node.args.args]
        keyword_only = [ast.copy_location(ast.arg(a.arg), a) for a in node.args.kwonlyargs]
        args = ast.arguments(
            posonlyargs=[],
            args=plain,
            vararg=node.args.vararg and ast.arg(node.args.vararg.arg),
            kwonlyargs=keyword_only,
            kw_defaults=[None] * len(keyword_only),
            kwarg=node.args.kwarg and ast.arg(node.args.kwarg.arg),
            defaults=[],
        )
        made = ast.FunctionDef(name=node.name, args=args, body=self.body(node.body), decorator_list=[], returns=None)
        if "type_params" in ast.FunctionDef._fields:
            made.type_params = []  # type: ignore[attr-defined]
        return ast.copy_location(made, node)

    def body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in statements:
            made = self.visit(statement)
            out.extend(made if isinstance(made, list) else [made])
        return out

    # -- control flow ------------------------------------------------------------------------------------------------

    def visit_For(self, node: ast.For) -> ast.AST:
        if node.orelse:
            raise self.refuse(
                node.orelse[0], "`else` on a `for` loop", "loops have no else", "test after the loop instead"
            )
        names = self.targets(node.target, "loop")
        iterator = self.iterator(node.iter)
        body = self.in_loop(node.body)
        made = self.tw("loop", node, self.literal(names), iterator, span=(node, node.iter))
        return self.loop_over(node, node.target, made, body)

    def visit_While(self, node: ast.While) -> ast.AST:
        if node.orelse:
            raise self.refuse(
                node.orelse[0], "`else` on a `while` loop", "loops have no else", "test after the loop instead"
            )
        test = self.delay(node.test)
        made = self.tw("repeat", node, test, span=(node, node.test))
        return self.loop_over(node, None, made, self.in_loop(node.body))

    def in_loop(self, body: list[ast.stmt]) -> list[ast.stmt]:
        self.loops += 1
        made = self.body(body)
        self.loops -= 1
        return made

    def visit_If(self, node: ast.If) -> ast.AST:
        flag = self.fresh("b")
        made = self.tw("branches", node, self.visit(node.test), span=(node, node.test))
        choice = ast.If(test=ast.Name(flag, ast.Load()), body=self.body(node.body), orelse=self.body(node.orelse))
        return self.loop_over(node, ast.Name(flag, ast.Store()), made, [self.at(choice, node)])

    def visit_With(self, node: ast.With) -> ast.stmt | None:
        inside: ast.stmt | None = None
        for item in reversed(node.items):
            names = self.targets(item.optional_vars, "with") if item.optional_vars is not None else ()
            made = self.tw("within", item.context_expr, self.literal(names), self.visit(item.context_expr))
            body = [inside] if inside is not None else self.body(node.body)
            inside = self.loop_over(node, item.optional_vars, made, body)
        return inside

    def loop_over(self, node: ast.AST, target: ast.expr | None, iterator: ast.expr, body: list[ast.stmt]) -> ast.stmt:
        if target is None:
            target = ast.Name(self.fresh("w"), ast.Store())
        return self.at(ast.For(target=target, iter=iterator, body=body, orelse=[]), node)

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return self.at(ast.Expr(self.tw("leave", node)), node)

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return self.at(ast.Expr(self.tw("skip", node)), node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        value = self.visit(node.value) if node.value is not None else ast.Constant(None)
        return self.at(ast.Return(self.tw("ret", node, value)), node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        message = self.delay(node.msg or ast.Constant(""))
        return self.at(ast.Expr(self.tw("check", node, self.visit(node.test), message)), node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant):
            return node
        return self.at(ast.Expr(self.tw("effect", node, self.visit(node.value))), node)

    # -- assignments -------------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> Any:
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            target = node.targets[0]
            return self.at(ast.Assign([target], self.bound(target, self.visit(node.value), node)), node)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            return self.assign(node.targets[0], self.visit(node.value), node)
        held = self.fresh("t")
        value = self.hinted(node.targets[0], node.value)
        if len(node.targets) > 1:
            value = self.tw("once", node.value, value)
        out: list[ast.stmt] = [self.at(ast.Assign([ast.Name(held, ast.Store())], value), node)]
        for each in node.targets:
            made = self.assign(each, ast.Name(held, ast.Load()), node)
            out.extend(made if isinstance(made, list) else [made])
        return out

    def hinted(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """The rewritten value; in `a, b = f(), g()` each element knows the name it will get."""
        if (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
            and not any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))
        ):
            parts = [
                self.at(ast.Call(self.tw("hint", v, ast.Constant(t.id)), [self.visit(v)], []), v)
                if isinstance(t, ast.Name)
                else self.visit(v)
                for t, v in zip(target.elts, value.elts, strict=True)
            ]
            return self.at(ast.Tuple(parts, ast.Load()), value)
        made: ast.expr = self.visit(value)
        return made

    def assign(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> Any:
        """Statements that put an already evaluated value into a target."""
        if isinstance(target, ast.Name):
            return self.at(ast.Assign([target], self.bound(target, value, node)), node)
        if isinstance(target, ast.Subscript):
            whole = ast.Constant(self.number(node, node))
            store = self.tw("store", target, whole, self.visit(target.value), self.index(target.slice), value)
            return self.at(ast.Expr(store), node)
        if isinstance(target, ast.Tuple):
            self.targets_fit(target)
            held = self.fresh("t")
            flat = tuple(t.id if isinstance(t, ast.Name) else None for t in target.elts)
            unpacked = self.tw("unpack", node, self.literal(flat), value)
            out: list[ast.stmt] = [self.at(ast.Assign([ast.Name(held, ast.Store())], unpacked), node)]
            for number, part in enumerate(target.elts):
                one = ast.Subscript(ast.Name(held, ast.Load()), ast.Constant(number), ast.Load())
                made = self.assign(part, self.at(one, part), node)
                out.extend(made if isinstance(made, list) else [made])
            return out
        raise self.bad_target(target)

    def targets_fit(self, target: ast.Tuple) -> None:
        for part in target.elts:
            if isinstance(part, ast.Starred | ast.List | ast.Attribute):
                raise self.bad_target(part)

    def bound(self, target: ast.Name, value: ast.expr, node: ast.stmt) -> ast.expr:
        """`__tw.to(k, "x")(value)`: the stage hears the name before the value is computed, so allocations take it."""
        return self.at(ast.Call(self.tw("to", node, ast.Constant(target.id)), [value], []), value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if not isinstance(node.target, ast.Name):
            raise self.bad_target(node.target)
        name = node.target.id
        annotation = self.visit(node.annotation)
        if node.value is None:
            held = ast.Name(name, ast.Load()) if name in self.parameters else ast.Constant(None)
            made = self.tw("declare", node, ast.Constant(name), annotation, held)
        else:
            value = self.at(ast.Call(self.tw("hint", node, ast.Constant(name)), [self.visit(node.value)], []), node)
            made = self.tw("typed", node, ast.Constant(name), annotation, value)
        return self.at(ast.Assign([node.target], made), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        op = ast.Constant(self.operator(node.op))
        if isinstance(node.target, ast.Name):
            name = node.target.id
            old = self.at(ast.Name(name, ast.Load()), node.target)
            made = self.tw("augment", node, ast.Constant(name), op, old, self.visit(node.value))
            return self.at(ast.Assign([node.target], made), node)
        if isinstance(node.target, ast.Subscript):
            buffer, index = self.visit(node.target.value), self.index(node.target.slice)
            made = self.tw("augment_item", node, buffer, index, op, self.visit(node.value))
            return self.at(ast.Expr(made), node)
        raise self.bad_target(node.target)

    # -- what a kernel's text cannot hold ----------------------------------------------------------------------------

    def visit_Try(self, node: ast.Try) -> ast.AST:
        raise self.unsupported(node, "`try`", "check the condition before, in Python outside the kernel")

    def visit_TryStar(self, node: ast.TryStar) -> ast.AST:
        raise self.unsupported(node, "`try`", "check the condition before, in Python outside the kernel")

    def visit_AsyncFor(self, node: ast.AST) -> ast.AST:
        raise self.unsupported(node, "`async`", "use the plain form")

    visit_AsyncWith = visit_AsyncFor

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        word = "global" if isinstance(node, ast.Global) else "nonlocal"
        raise self.unsupported(node, f"`{word}`", "pass the value as an argument; use T.alloc_var for mutable values")

    visit_Nonlocal = visit_Global

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        raise self.unsupported(node, "`async def`", "write a plain `def`")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A nested def keeps its text (its decorator reads it again); an undecorated one is inlined like a macro."""
        if not node.decorator_list:
            node.decorator_list = [self.tw("nested", node)]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node
