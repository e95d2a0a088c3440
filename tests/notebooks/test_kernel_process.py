"""The magics in a kernel process, as JupyterLab, nbclient and papermill run them."""

from __future__ import annotations

import hashlib
import json

import pytest

from tileworkbench.views.document import MIME

from .execution import executed_cells

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

KERNEL = """
%%tilekernel --target cpu
# é 𝟙 before the mistake
@T.prim_func
def copy(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(32):
            B[i] = A[i]
"""
WRONG = KERNEL.replace("A[i]", "A['𝟙', j]")


@pytest.fixture(scope="module")
def outputs():
    widget = "w = tw.compile(copy.tile, target='sm_80'); tw.Result(w).widget()"
    return executed_cells("%load_ext tileworkbench", KERNEL, WRONG, "copy(1, 2)", "%tile shw copy", "copy.name", widget)


def texts(out):
    return "\n".join(out["traceback"])


def test_a_good_cell_gives_one_result(outputs):
    (out,) = outputs[1]
    assert out["output_type"] == "execute_result" and out["data"][MIME]["verdict"]["word"] == "compiled"


def test_a_mistake_displays_its_record_and_then_fails_the_cell(outputs):
    shown, error = outputs[2]
    record = shown["data"][MIME]
    assert record["cell"]["sha256"] == hashlib.sha256(WRONG.encode()).hexdigest()
    first = record["diagnostics"][0]
    # The cell starts with an empty line; 𝟙 counts as two units in an editor.
    assert (first["line"], first["col"]) == (8, 26 + 1)
    assert WRONG.split("\n")[first["line"] - 1].encode("utf-16-le")[2 * first["col"] :].decode("utf-16-le")[0] == "j"
    assert error["output_type"] == "error" and error["ename"] == "LanguageError"
    assert "tileworkbench/" not in texts(error) and "^" in texts(error)


def test_a_wrong_call_shows_the_users_line_only(outputs):
    (error,) = outputs[3]
    assert error["ename"] == "LaunchError" and "copy(1, 2)" in texts(error)
    assert "jitkernel" not in texts(error)


def test_line_magics_fail_with_our_words(outputs):
    (error,) = outputs[4]
    assert error["ename"] == "OptionError" and "show" in texts(error)


def test_the_good_kernel_stays_bound(outputs):
    (out,) = outputs[5]
    assert out["data"]["text/plain"] == "'copy'"


def test_a_widget_carries_no_code(outputs):
    (out,) = outputs[6]
    assert "application/vnd.jupyter.widget-view+json" in out["data"]
    assert "_esm" not in json.dumps(out["data"])
