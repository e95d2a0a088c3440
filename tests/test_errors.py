"""What a user reads, and what an editor is given."""

import copy
import json
import linecache
import pickle

import pytest

from tileworkbench import errors
from tileworkbench.errors import LayoutError, Loc, Note, ShapeError, TileError, caret


@pytest.fixture
def cell():
    """Registers text under a cell's name, as the notebook does, and forgets it afterwards."""
    names = []

    def register(text, name="<cell 7>"):
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        names.append(name)
        return name

    yield register
    for name in names:
        del linecache.cache[name]


def under(snippet):
    """The text above the carets of the first marked line, found by columns of a terminal (no wide characters)."""
    text, marks = snippet.split("\n")[:2]
    return text[marks.index("^") : marks.rindex("^") + 1]


def test_the_whole_message(cell):
    file = cell("a = 1\nT.copy(A[0], S)\n")
    error = ShapeError("A is 2-D", rule="a region has one index a dimension", fix="A[0, :]", loc=Loc(file, 2, 7, 2, 11))
    assert str(error) == (
        "A is 2-D\n"
        "  at <cell 7>:2:8\n"
        "    2 | T.copy(A[0], S)\n"
        "      |        ^^^^\n"
        "  rule: a region has one index a dimension\n"
        "  fix: A[0, :]"
    )


@pytest.mark.parametrize(
    ("text", "token"),
    [("x = foo(bar)", "bar"), ("\tx = foo(bar)", "bar"), ("x\t=\tfoo(\tbar)", "bar"), ("bar", "bar"),
     ("é = bar", "bar"), ("𝟙 = bar", "bar"), ("e\u0301 = 1", "=")],
)  # fmt: skip
def test_carets_stand_under_their_token(cell, text, token):
    col = text.index(token)
    snippet = caret(Loc(cell(text + "\n"), 1, col, 1, col + len(token)))
    line, marks = snippet.split("\n")
    # A combining mark takes a character but no column.
    line = line.replace("\u0301", "")
    assert line[marks.index("^") : marks.rindex("^") + 1] == token


@pytest.mark.parametrize(("before", "columns"), [("表格 = ", 7), ("🎲 = ", 5), ("🧑\u200d🔬 = ", 7), ("❤\ufe0f = ", 4)])
def test_wide_characters_take_two_columns(cell, before, columns):
    marks = caret(Loc(cell(before + "bar\n"), 1, len(before), 1, len(before) + 3)).split("\n")[1]
    assert marks == "      | " + " " * columns + "^^^"


def test_a_wide_token_is_underlined_wholly(cell):
    marks = caret(Loc(cell("f(表格)\n"), 1, 2, 1, 4)).split("\n")[1]
    assert marks.count("^") == 4


def test_a_tab_in_the_span(cell):
    assert caret(Loc(cell("f(a,\tb)\n"), 1, 2, 1, 6)) == "    1 | f(a,    b)\n      |   ^^^^^^^"


@pytest.mark.parametrize("col", [0, 60, 150, 295])
def test_long_lines_show_a_window(cell, col):
    text = "".join(f"{i:<5}" for i in range(60)).rstrip() + "xyz"
    token = text[col : col + 3]
    snippet = caret(Loc(cell(text + "\n"), 1, col, 1, col + 3))
    line = snippet.split("\n")[0]
    assert under(snippet) == token
    assert len(line) <= 8 + errors.SNIPPET_COLUMNS + 4
    assert ("… " in line) == (col > 55)
    assert line.endswith(" …") == (col < 240)


def test_a_span_longer_than_the_window(cell):
    snippet = caret(Loc(cell("y = " + "1 + " * 200 + "1\n"), 1, 4, 1, 805))
    line, marks = snippet.split("\n")
    assert 90 <= marks.count("^") <= 100
    assert len(marks) <= len(line)
    assert line.endswith("…")


def test_long_wide_lines(cell):
    text = "表" * 500 + "bar" + "表" * 500
    line, marks = caret(Loc(cell(text + "\n"), 1, 500, 1, 503)).split("\n")
    shown = line[: line.index("bar")]
    columns = len(shown) + shown.count("表")
    assert marks.index("^") == columns
    assert marks.count("^") == 3


def test_spans_over_lines(cell):
    file = cell("x = T.gemm(A,\n    B,\n    C)  # done\n")
    assert caret(Loc(file, 1, 4, 3, 6)) == (
        "    1 | x = T.gemm(A,\n      |     ^^^^^^^^^\n  ...\n    3 |     C)  # done\n      |     ^^"
    )
    assert caret(Loc(file, 2, 4, 3, 6)).count("...") == 0
    # A span that ends before the last line's text marks the first line alone.
    assert caret(Loc(file, 1, 4, 2, 0)).count("\n") == 1


@pytest.mark.parametrize("loc", [Loc("/no/such/file.py", 3), Loc("<gone>", 1, 4, 1, 9)])
def test_missing_source(loc):
    assert caret(loc) == ""
    assert str(TileError("bad", loc=loc)) == f"bad\n  at {loc}"
    assert TileError("bad", loc=loc).diagnostics()[0]["line"] == loc.line


def test_a_place_beyond_the_text(cell):
    file = cell("x = 1\n\n")
    assert caret(Loc(file, 1, 99, 1, 120)) == "    1 | x = 1\n      |      ^"
    assert caret(Loc(file, 2)) == ""
    assert caret(Loc(file, 9)) == ""


def test_no_escape_reaches_the_terminal(cell):
    file = cell("x = '\x1b[31m\u202e' + bar\n")
    col = linecache.getline(file, 1).index("bar")
    error = TileError("bad", loc=Loc(file, 1, col, 1, col + 3, calls=(Loc(file, 1),)))
    assert "\x1b" not in str(error)
    assert "\u202e" not in str(error)
    assert under(caret(error.loc)) == "bar"


def test_call_chain_is_told_from_the_inside_out(cell):
    outer, inner = cell("outer(1)\n", "<cell 1>"), cell("def outer(n):\n    inner(n)\n", "<cell 2>")
    loc = Loc("m.py", 9, calls=(Loc(outer, 1), Loc(inner, 2, 4)))
    lines = str(TileError("bad", loc=loc)).split("\n")
    assert lines[2:] == ["  called from <cell 2>:2:5: inner(n)", "  called from <cell 1>:1:1: outer(1)"]
    found = TileError("bad", loc=loc).diagnostics()
    assert [(d["file"], d["line"], d["severity"]) for d in found] == [
        ("m.py", 9, "error"), ("<cell 2>", 2, "info"), ("<cell 1>", 1, "info"),
    ]  # fmt: skip


def test_notes_have_places_of_their_own(cell):
    file = cell("S = f()\nT.annotate(S, a)\nT.annotate(S, b)\n")
    error = LayoutError("two layouts for S", rule="one", loc=Loc(file, 3, 0, 3, 16)).note(
        "the other is here", Loc(file, 2, 0, 2, 16)
    )
    text = str(error)
    assert (
        text.index("    3 | T.annotate(S, b)")
        < text.index("note: the other is here")
        < text.index("    2 | T.annotate(S, a)")
    )
    assert error.notes == (Note("the other is here", Loc(file, 2, 0, 2, 16)),)
    assert [d["line"] for d in error.diagnostics()] == [3, 2]
    assert isinstance(error, LayoutError)
    assert "note: plain" in str(TileError("x").note("plain"))


@pytest.mark.parametrize(("text", "units"), [("# é 𝟙 bar", 7), ("é bar", 2), ("🎲🎲 bar", 5), ("表 bar", 2)])
def test_diagnostics_count_utf16_units(cell, text, units):
    col = text.index("bar")
    loc = Loc(cell("\n" + text + "\n"), 2, col, 2, col + 3)
    (found,) = TileError("bad", rule="no bar", fix="baz", loc=loc).diagnostics()
    assert found == {
        "file": "<cell 7>", "line": 2, "col": units, "end_line": 2, "end_col": units + 3, "severity": "error",
        "message": "bad (rule: no bar)", "hint": "baz", "code": "tile",
    }  # fmt: skip
    # The editor's own slice, in UTF-16 units, is the token.
    encoded = text.encode("utf-16-le")
    assert encoded[2 * units : 2 * (units + 3)].decode("utf-16-le") == "bar"
    json.dumps(found)


def test_diagnostics_of_open_spans(cell):
    file = cell("🎲 = 1\n  🎲)\n")
    (one,) = TileError("bad", loc=Loc(file, 1)).diagnostics()
    assert (one["col"], one["end_line"], one["end_col"]) == (0, 1, 2)
    (over,) = TileError("bad", loc=Loc(file, 1, 4, 2, 4)).diagnostics()
    assert (over["col"], over["end_line"], over["end_col"]) == (5, 2, 5)
    (nowhere,) = TileError("bad").diagnostics()
    assert (nowhere["file"], nowhere["line"]) == ("", 0)


def test_at_keeps_the_first_place():
    error = TileError("bad").at(Loc("a", 1)).at(Loc("b", 2))
    assert error.loc == Loc("a", 1)


@pytest.mark.parametrize("kind", [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, TileError)])
def test_errors_survive_a_process_boundary(kind):
    error = kind("found", rule="rule", fix="fix", loc=Loc("f", 1)).note("n", Loc("g", 2))
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is kind
        assert str(again) == str(error)
        assert again.diagnostics() == error.diagnostics()


def test_codes_are_distinct():
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, TileError)]
    assert len({k.code for k in kinds}) == len(kinds)
