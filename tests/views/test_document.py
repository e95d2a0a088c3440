"""The record's JSON form, its diffs, its diagnostics and its budget."""

from __future__ import annotations

import base64
import gzip
import json
import linecache
import math
import random
from pathlib import Path

import pytest

import tileworkbench.views
from tileworkbench.errors import InternalError, Loc, ShapeError
from tileworkbench.views.blocks import Bar, Bars, Code, Diff, Picture, Table
from tileworkbench.views.bundle import BUDGET, bundle, size
from tileworkbench.views.document import MIME, Diagnostic, Document, Section, Verdict
from tileworkbench.views.text import to_text

from .samples import PNG, full, hostile

jsonschema = pytest.importorskip("jsonschema")

SCHEMA = json.loads((Path(tileworkbench.views.__file__).parent / "document.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("document", [full(), hostile(), Document("bare", Verdict("right", ""))])
def test_the_json_form_is_what_the_schema_says_and_strict_json(document: Document) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(document.to_json(), SCHEMA, cls=jsonschema.Draft202012Validator)
    text = json.dumps(document.to_json(), allow_nan=False, ensure_ascii=False)
    assert json.loads(text.encode()) == document.to_json()


def test_the_schema_refuses_what_is_not_a_record() -> None:
    for key, value in (("version", 2), ("title", 3), ("sections", [{"id": "x"}]), ("html", "<b>")):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**full().to_json(), key: value}, SCHEMA)


def test_long_code_is_compressed_and_comes_back() -> None:
    text = "\n".join(f"instruction {i}" for i in range(3000))
    record = Code("sass", text).to_json()
    assert "text" not in record
    assert gzip.decompress(base64.b64decode(record["gzip"])).decode() == text
    assert record == Code("sass", text).to_json()


def rebuilt(runs: list, before: list[str], signs: str) -> list[str]:
    """One side of a diff from its runs; folded lines are taken from `before`, which both sides share there."""
    lines: list[str] = []
    old = 0
    for sign, content in runs:
        count = content if sign == "~" else len(content)
        chosen = before[old : old + count] if sign == "~" else content
        lines += chosen if sign in signs else []
        old += count if sign in "=~-" else 0
    return lines


@pytest.mark.parametrize("seed", range(40))
def test_a_diff_holds_both_texts(seed: int) -> None:
    chance = random.Random(seed)
    before = [chance.choice("abcd") for _ in range(chance.randrange(40))]
    after = [line for line in before if chance.random() > 0.1]
    for _ in range(chance.randrange(4)):
        after.insert(chance.randrange(len(after) + 1), "new")
    runs = Diff("\n".join(before), "\n".join(after), context=chance.randrange(4)).runs
    assert rebuilt(runs, before, "=~-") == before
    assert rebuilt(runs, before, "=~+") == after


def test_a_diff_folds_far_lines_only() -> None:
    before = [str(i) for i in range(20)]
    after = [*before[:10], "x", *before[11:]]
    assert Diff("\n".join(before), "\n".join(after), context=2).runs == [
        ("~", 8),
        ("=", ["8", "9"]),
        ("-", ["10"]),
        ("+", ["x"]),
        ("=", ["11", "12"]),
        ("~", 7),
    ]


def test_bars_without_a_finite_length_keep_their_text() -> None:
    bars = Bars((Bar("a", math.inf), Bar("b", None, "not measured"), Bar("c", -1.0), Bar("d", 2.0)), "ms").to_json()[
        "bars"
    ]
    assert [bar["value"] for bar in bars] == [None, None, None, 2.0]
    assert [bar["text"] for bar in bars] == ["inf ms", "not measured", "-1 ms", "2 ms"]


def test_columns_of_numbers_are_told_apart_from_columns_of_words() -> None:
    table = Table(("n", "mixed", "flag"), ((1, 1, True), (2.5, "x", False), (None, 2, True)))
    assert table.numeric() == [True, False, False]
    with pytest.raises(InternalError):
        Table(("a", "b"), ((1,),))


def test_pictures_need_png_bytes_and_words() -> None:
    for png, alt in ((b"GIF89a", "words"), (PNG, "")):
        with pytest.raises(InternalError):
            Picture(png, alt, 1, 1)


def test_a_diagnostic_counts_utf16_units() -> None:
    line = "# é 𝟙 name"
    linecache.cache["cell-utf16"] = (len(line), None, [line + "\n"], "cell-utf16")
    start = line.index("name")
    error = ShapeError("found", rule="rule", fix="fix", loc=Loc("cell-utf16", 1, start, 1, start + 4))
    found, note = Diagnostic.of(error.note("seen here", None))
    units = line.encode("utf-16-le")
    assert units[2 * found.col : 2 * found.end_col].decode("utf-16-le") == "name"
    assert (found.message, found.hint, found.code) == ("found (rule: rule)", "fix", "shape")
    assert (note.severity, note.message, note.line, note.heading()) == ("info", "seen here", 0, "info")


@pytest.mark.parametrize("document", [full(), hostile()])
def test_a_default_bundle_fits_its_budget(document: Document) -> None:
    made = bundle(document)
    assert set(made) == {MIME, "text/html", "text/plain"}
    assert size(made) <= BUDGET
    jsonschema.validate(made[MIME], SCHEMA)


def test_a_huge_document_is_cut_and_says_so() -> None:
    chance = random.Random(1)
    noise = "\n".join(f"{chance.getrandbits(256):064x}" for _ in range(20_000))
    rows = tuple((i, str(chance.random())) for i in range(20_000))
    blocks = Code("sass", noise, "SASS"), Table(("i", "x"), rows), Diff(noise, noise[::-1]), Code("ptx", "one line")
    made = bundle(Document("big", Verdict("right", "all of it", "good"), (Section("s", "S", blocks),)))
    assert size(made) <= BUDGET
    assert made[MIME]["verdict"]["text"] == "all of it"
    kept = [block.get("text", "") for block in made[MIME]["sections"][0]["blocks"]]
    assert "one line" in kept
    assert any("of 20000 lines" in text for text in kept)
    assert any("of 20000 rows" in text for text in kept)
    assert "left out to keep the notebook small" in made["text/html"]


def test_the_text_form_holds_the_facts() -> None:
    text = to_text(full())
    for part in ("✓ right: on 5 shapes", "line 3: warning", "registers", "48 KiB", "0.00125", "◂ spills", "- f", "+ X"):
        assert part in text
    assert "[picture: a grid of three colours]" in text
    assert "\u202e" not in to_text(hostile())
