"""The conformance runner itself, on a made-up checkout."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from . import record, run, timed


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    examples = tmp_path / "checkout" / "examples" / "a"
    examples.mkdir(parents=True)
    (examples / "good.py").write_text("import tilelang\nprint('took 1.5 ms, then 2e-3 ms')\n")
    (examples / "bad.py").write_text("import tilelang.language as T\nT.alloc_tmem\n")
    (examples / "slow.py").write_text("import time\ntime.sleep(60)\n")
    (tmp_path / "list").write_text("core a/good.py\ncore a/bad.py\nmore a/slow.py\nmore a/absent.py\n")
    return tmp_path / "checkout"


def test_without_a_checkout_it_says_so(capsys, monkeypatch):
    monkeypatch.delenv("TILELANG_CHECKOUT", raising=False)
    assert run.main([]) == 0
    assert "skipped: no checkout" in capsys.readouterr().out


def test_every_script_becomes_a_line(checkout, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    arguments = ["--checkout", str(checkout), "--list", str(tmp_path / "list"), "--limit", "10", "--out", str(out)]
    assert run.main(arguments) == 1
    lines = {r["name"]: r for r in map(json.loads, out.read_text().splitlines())}
    assert {n: r["status"] for n, r in lines.items()} == {
        "a/good.py": "passed",
        "a/bad.py": "failed",
        "a/slow.py": "timeout",
        "a/absent.py": "missing",
    }
    assert lines["a/good.py"]["printed_ms"] == [1.5, 0.002]
    assert lines["a/bad.py"]["error"] == "TargetError" and "tensor memory" in lines["a/bad.py"]["rule"]
    said = capsys.readouterr().out
    assert "core: 1 of 2 passed (1 failed)" in said and "more: 0 of 2 passed (1 missing, 1 timeout)" in said


def test_choosing(checkout, tmp_path):
    names = [job.name for job in run.listed(checkout, ["core"], tmp_path / "list")]
    assert names == ["a/good.py", "a/bad.py"]
    assert [job.name for job in run.listed(checkout, ["slow"], tmp_path / "list")] == ["a/slow.py"]


def test_the_last_exception_is_what_ended_it():
    output = (
        "Traceback\nValueError: first\n\nDuring handling\ntileworkbench.errors.ShapeError: second\n  at x\n  rule: r\n"
    )
    assert run.ending(output) == ("ShapeError", "second", "r")
    assert run.ending("no error\nlast line\n") == ("", "last line", "")


def test_tests_of_a_checkout_are_recorded_one_by_one(checkout, tmp_path, capsys):
    folder = checkout / "testing" / "python" / "language"
    folder.mkdir(parents=True)
    (folder / "test_one.py").write_text(
        "import tilelang\nimport tilelang.language as T\nimport pytest\n\n"
        "def test_good():\n    assert tilelang.cdiv(5, 2) == 3\n\n"
        "def test_bad():\n    tilelang.transform.ThreadSync('shared')\n\n"
        "@pytest.mark.skip(reason='not here')\ndef test_left():\n    pass\n"
    )
    out = tmp_path / "out.jsonl"
    run.main(["--checkout", str(checkout), "--tests", "language", "--limit", "60", "--out", str(out)])
    records = [json.loads(line) for line in out.with_suffix(".tests.jsonl").read_text().splitlines()]
    assert {r["name"].split("::")[1]: r["status"] for r in records} == {
        "test_good": "passed",
        "test_bad": "failed",
        "test_left": "skipped",
    }
    assert "ThreadSync was used" in next(r["reason"] for r in records if r["status"] == "failed")
    assert "language: 1 failed, 1 passed, 1 skipped" in capsys.readouterr().out


def test_the_list_names_every_script_once():
    rows = [line.split() for line in run.LIST.read_text().splitlines()]
    assert len(rows) == 112 == len({name for _, name in rows})
    assert sum(group == "core" for group, _ in rows) == 62


def test_the_listed_functions_are_those_of_the_contract():
    rows = [line.split() for line in run.FUNCTIONS.read_text().splitlines()]
    assert len(set(map(tuple, rows))) == len(rows) == 345 + 55
    assert sum(group == "behaviour" for group, _ in rows) == 345


def test_a_listed_function_passes_with_all_of_its_cases(tmp_path):
    listing, records = tmp_path / "list", tmp_path / "records"
    names = ["whole", "partly", "gated", "left", "absent"]
    listing.write_text("".join(f"issue issue/test_a.py::test_{name}\n" for name in names))
    statuses = [
        ("whole", "passed"), ("whole", "passed"), ("partly", "passed"), ("partly", "failed"), ("gated", "passed"),
        ("gated", "skipped"), ("left", "skipped"),
    ]  # fmt: skip
    records.write_text(
        "".join(
            json.dumps({"name": f"somewhere/testing/python/issue/test_a.py::test_{name}[{case}]", "status": status})
            + "\n"
            for case, (name, status) in enumerate(statuses)
        )
    )
    said = run.functions_summary(records, listing).splitlines()
    assert said[0] == "issue: 2 of 5 listed functions passed"
    assert said[1:] == ["  not issue/test_a.py::test_partly", "  not issue/test_a.py::test_left",
                        "  not run: issue/test_a.py"]  # fmt: skip


def test_scripts_that_run_alone_come_last(checkout, tmp_path):
    jobs = run.listed(checkout, [], tmp_path / "list")
    ran: list[str] = []

    def act(job: run.Job) -> run.Outcome:
        ran.append(job.name)
        return run.Outcome(job.name, job.group, "passed", 0.0)

    assert len(list(run.all_run(jobs, ["good"], 3, act))) == 4
    assert ran[-1] == "a/good.py" and len(ran) == 4


NO_MEMORY = (
    ("OutOfMemoryError", ""),
    ("LaunchError", "allocating 8 bytes failed: CUDA_ERROR_OUT_OF_MEMORY (2)"),
    ("RuntimeError", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
)


@pytest.mark.parametrize("problem", NO_MEMORY, ids=["torch", "driver", "cublas"])
def test_scripts_that_find_no_memory_beside_others_run_again(checkout, tmp_path, problem):
    ran: list[str] = []

    def act(job: run.Job) -> run.Outcome:
        full = "good" in job.name and job.name not in ran
        ran.append(job.name)
        status, error, said = ("failed", *problem) if full else ("passed", "", "")
        return run.Outcome(job.name, job.group, status, 0.0, error, said)

    outcomes = list(run.all_run(run.listed(checkout, [], tmp_path / "list"), [], 3, act))
    assert {o.status for o in outcomes} == {"passed"} and len(outcomes) == 4 and ran.count("a/good.py") == 2


def test_kernels_of_tile_programs_are_timed_by_their_names():
    names = {
        "main_kernel": [3e6, 1e6, 2e6],
        "main_v_kernel": [5e5],
        "at::native::add_kernel<float>": [1.0],
        "other": [1],
        "main_kernel_1": [4e6],
        "more_1_kernel": [5e6],
    }
    events = [SimpleNamespace(name=lambda n=n: n, duration_ns=lambda t=t: t) for n, each in names.items() for t in each]
    assert timed.kernel_times(events) == {"main": [4, 0.5, 1.5], "main_1": [1, 4, 4], "more_1": [1, 5, 5]}


def test_a_timed_script_keeps_its_status(checkout, tmp_path):
    arguments = ["--checkout", str(checkout), "--list", str(tmp_path / "list"), "--limit", "30", "--timed", "core"]
    run.main([*arguments, "--only", "core", "--out", str(tmp_path / "out.jsonl")])
    lines = {r["name"]: r for r in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())}
    assert lines["a/good.py"]["status"] == "passed" and lines["a/bad.py"]["status"] == "failed"
    assert lines["a/bad.py"]["error"] == "TargetError"


TEXTUAL = """
import tilelang
import tilelang.language as T


@T.prim_func
def kernel(A: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=4):
        T.fill(A, 3)


def lowered():
    made = tilelang.compile(kernel, target="cpu")
    return made, made.get_kernel_source()


def shown(made):
    return made.get_kernel_source().splitlines()


def test_numbers():
    import numpy as np
    made, text = lowered()
    place = text.index("words of another compiler")
    for line in shown(made):
        assert line == place
    a = np.zeros(4, np.int32)
    made(a)
    with np.errstate(all="ignore"):
        assert "more" in shown(made)
        assert a.tolist() == EXPECTED
"""


@pytest.mark.parametrize(("expected", "passed"), [("[3, 3, 3, 3]", "passed"), ("[3, 3, 3, 4]", "failed")])
def test_text_is_left_out_and_numbers_are_not(checkout, tmp_path, capsys, expected, passed):
    folder = checkout / "testing" / "python" / "issue"
    folder.mkdir(parents=True)
    (checkout / "testing" / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--run-perf', action='store_true')\n"
    )
    # A function that returns text among others counts as text itself, so the kernel comes by its own way.
    text = TEXTUAL.replace(
        "made, text = lowered()", 'made = tilelang.compile(kernel, target="cpu")\n    text = lowered()[1]'
    )
    (folder / "test_text.py").write_text(text.replace("EXPECTED", expected))
    out = tmp_path / "out.jsonl"
    arguments = ["--checkout", str(checkout), "--tests", "issue", "--limit", "60", "--out", str(out)]
    run.main(arguments)
    record = json.loads(out.with_suffix(".tests.jsonl").read_text())
    assert record["status"] == "failed" and "substring not found" in record["reason"]
    run.main([*arguments, "--textless"])
    record = json.loads(out.with_suffix(".tests.jsonl").read_text())
    assert record["status"] == passed
    assert run.function_statuses([record]) == {"issue/test_text.py::test_numbers": {passed}}


def test_a_record_joins_both_runs(tmp_path):
    def lines(name, *rows):
        (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in rows))
        return str(tmp_path / name)

    def row(name, status, seconds, **kernels):
        return {"name": name, "group": "core", "status": status, "seconds": seconds, "kernels": kernels, "error": "E",
                "rule": "", "message": "m"}  # fmt: skip

    ours = lines("o", row("a", "passed", 2.0, main=[3, 0.5, 1.0], own=[1, 9, 9]), row("b", "failed", 1.0))
    theirs = lines("t", row("a", "passed", 5.0, main=[3, 0.25, 1.0]), row("b", "passed", 4.0))
    group, names = next(iter(run.listed_functions().items()))
    tests = lines("x", *[{"name": f"c/testing/python/{n}[1]", "status": "passed"} for n in names[:7]])
    out = tmp_path / "record.json"
    record.main(
        ["--ours", ours, "--theirs", theirs, "--tests", f"{group}={tests}", "--run", '{"card": "x"}', "--out", str(out)]
    )
    made = json.loads(out.read_text())
    assert made["card"] == "x" and made["core"] == {"scripts": 2, "passed": 1}
    assert made["seconds"] == {"tileworkbench": 3, "tilelang": 9}
    assert made["rows"][0]["kernel_ratio"] == 2.0 and made["rows"][1]["kernel_ratio"] is None
    assert made["rows"][1]["reason"] == "E: m" and made["tests"][group]["passed"] == 7


def test_scripts_run_without_torch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    ran: list[int] = []
    timed.profiled(lambda: ran.append(1), tmp_path / "times.json")
    assert ran == [1] and not (tmp_path / "times.json").exists()
