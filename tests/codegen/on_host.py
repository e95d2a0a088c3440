"""Generated text run on this machine: the HIP dialect, whose scalar text is plain builtins, compiled by clang for the
processor, thread after thread. Good for kernels whose threads do not talk to one another."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tileworkbench.codegen.emit import emit
from tileworkbench.ir.kernel import Kernel
from tileworkbench.target import Target

_HEAD = """\
#define __global__
#define __device__
#define __shared__
#define __forceinline__ inline
#define amdgpu_flat_work_group_size(least, most)
static int host_tid, host_block;
#define __builtin_amdgcn_workitem_id_x() host_tid
#define __builtin_amdgcn_workgroup_id_x() host_block
extern "C" void host_place(int tid, int block) { host_tid = tid; host_block = block; }
"""


def compiler() -> str:
    found = next(filter(None, map(shutil.which, ("clang++-22", "clang-22", "clang++-20", "clang++", "clang"))), None)
    if found is None:
        pytest.skip("no clang to run generated text on this machine")
    return found


def run(kernel: Kernel, folder: Path, *arrays: Any, blocks: int = 1) -> None:
    """Runs every thread of every block on `arrays`, one a parameter of the text, written in place; numbers as ctypes
    has them."""
    source = emit(kernel, Target.of("gfx942"))
    library_file = f"kernel{len(list(folder.iterdir()))}.so"  # a loaded library of the same name would be taken again
    (folder / "kernel.cpp").write_text(_HEAD + source.text, encoding="utf-8")
    command = [compiler(), "-x", "c++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-nostdinc", "-fwrapv",
               "kernel.cpp", "-o", library_file]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(folder / library_file))
    entry = getattr(library, source.entry)
    pointers = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arrays]
    for block in range(blocks):
        for tid in range(kernel.threads):
            library.host_place(tid, block)
            entry(*pointers)
