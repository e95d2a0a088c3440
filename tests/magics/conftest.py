from __future__ import annotations

import pytest

from .cells import Notebook


@pytest.fixture
def notebook():
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_cell("%load_ext tileworkbench")
    made = Notebook(shell)
    made.run("M, N = 40, 50")
    yield made
    shell.run_cell("%unload_ext tileworkbench")
    InteractiveShell.clear_instance()
