"""%tile and %tile_doctor, completion, settings, and taking it all back."""

from __future__ import annotations

import pytest

import tileworkbench as tw
from tileworkbench import errors
from tileworkbench.magics.complete import matches
from tileworkbench.magics.options import OPTIONS, parse

from .cells import ADD


def test_list_show_compare_clear(notebook):
    assert "No %%tilekernel" in str(notebook.run("%tile list").value)
    notebook.run(ADD.format(options=" --target cpu"))
    notebook.run(ADD.format(options=" --target sm_80 --name other").replace("def add", "def other"))
    listed = str(notebook.run("%tile").value)
    assert "add" in listed and "sm_80" in listed
    assert notebook.run("%tile show other").value.kernel is notebook.space["other"]
    compared = str(notebook.run("%tile compare add other").value)
    assert "registers" in compared and "__global__" in compared
    assert "2 kernels" in notebook.run("%tile clear").shown[0]["text/plain"]
    assert "add" in notebook.space


@pytest.mark.parametrize("line, found, fix", [
    ("lst", "lst", "list"),
    ("show", "0 names", "show NAME"),
    ("show ad", "'ad'", "add"),
    ("compare add", "1 name", "compare"),
])  # fmt: skip
def test_mistakes(notebook, line, found, fix):
    notebook.run(ADD.format(options=" --target cpu"))
    done = notebook.fail(f"%tile {line}")
    assert isinstance(done.error, errors.OptionError)
    assert found in done.error.found and fix in done.error.fix


def test_doctor(notebook):
    assert "Python" in notebook.run("%tile_doctor").shown[0]["text/plain"]


@pytest.mark.parametrize("cell, expected", [
    ("%%tilekernel --ch", "--check"),
    ("%%tilekernel --target sm_9", "sm_90a"),
    ("%%tilekernel --show plan,pt", "plan,ptx"),
    ("%%tilekernel\nT.alloc_sh", "T.alloc_shared"),
    ("%%tilekernel\nx = T.gem", "T.gemm"),
])  # fmt: skip
def test_completion(notebook, cell, expected):
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        found = [c.text for c in notebook.shell.Completer.completions(cell, len(cell))]
    assert expected.split(".")[-1].split(",")[-1] in {t.split(".")[-1].split(",")[-1] for t in found}


def test_completion_answers_in_our_cells_only():
    assert matches("T.ge", "T.ge", 0, "T.ge") == []
    assert matches("%%time\nT.ge", "T.ge", 1, "T.ge") == []
    names = dict(matches("%%tilekernel\nT.gemm", "T.gemm", 1, "T.gemm"))
    assert names["T.gemm"].startswith("function (A, B, C, transpose_A=False")


def test_config(notebook):
    before = tw.options.seed
    try:
        notebook.run("%config TileWorkbench.seed = 7")
        assert tw.options.seed == 7
        notebook.run("%config TileWorkbench.schedule = 'sometimes'")
        assert tw.options.schedule == "eager"
    finally:
        del tw.options.seed
    assert tw.options.seed == before


def test_the_table_of_options_is_the_one_that_is_parsed():
    found = parse(
        "--target cpu --name k --check ref --bench --show ptx,sass --set M=3 --set dtype=float16 --set x=1e3 --help"
    )
    assert (found.target, found.name, found.check, found.bench, found.show, found.help) == (
        "cpu", "k", "ref", True, ("ptx", "sass"), True)  # fmt: skip
    assert found.set == {"M": 3, "dtype": "float16", "x": 1000.0}
    assert parse("").check is None and parse("--check --bench").check == ""
    assert all(option.text for option in OPTIONS)


def test_unload_takes_everything_back(notebook):
    notebook.run("%unload_ext tileworkbench")
    assert notebook.shell.find_cell_magic("tilekernel") is None
    assert not hasattr(errors.TileError, "_render_traceback_")
    notebook.run("%load_ext tileworkbench")
    assert notebook.run(ADD.format(options=" --target cpu")).error is None


def test_widget(notebook):
    pytest.importorskip("ipywidgets")
    result = notebook.run(ADD.format(options=" --target sm_80")).value
    widget = result.widget()
    controls, output = widget.children
    back, choice, forth = controls.children
    first = output.outputs[0]["data"]
    assert back.disabled and "application/vnd.tileworkbench.v1+json" in first
    forth.click()
    assert choice.value == 1 and output.outputs[0]["data"] != first
