"""TileLang's environment names, cache switches, test decorators and supplies."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from tileworkbench import options
from tileworkbench.compat import alias_tilelang, environment, settings, testing
from tileworkbench.compat.closeness import torch_assert_close
from tileworkbench.compat.lowering import lower
from tileworkbench.compat.templates import MatmulTemplate
from tileworkbench.errors import OptionError, TargetError
from tileworkbench.jitkernel.passconfig import PassConfigKey, ignored


@pytest.fixture(autouse=True)
def as_before():
    yield
    environment.forget_environment()
    for name in ("cache", "cache_dir", "target", "compile_timeout"):
        delattr(options, name)
        settings.Environment.__dict__[settings.GUESTS[name].environment].assigned = None


def test_names_with_a_meaning_set_our_options(monkeypatch, tmp_path):
    monkeypatch.delenv("TILEWORKBENCH_TARGET", raising=False)
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", "sm_80")
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILELANG_VERBOSE", "1")
    environment.apply_environment()
    assert (options.target, options.cache, options.cache_dir) == ("sm_80", False, tmp_path)
    assert environment.ignored() == ["TILELANG_VERBOSE"]
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", '{"kind": "cuda", "arch": "sm_90a"}')
    assert environment.env.get_default_target() == options.target == {"kind": "cuda", "arch": "sm_90a"}
    assert options.changed() == {"target": options.target, "cache": False, "cache_dir": tmp_path}
    assert options.origin("cache") == "TILELANG_DISABLE_CACHE"
    environment.enable_cache()
    assert not environment.is_cache_enabled()
    environment.forget_environment()
    assert options.origin("target") == options.origin("cache_dir") == "default" and not options.cache


def test_our_own_name_comes_first(monkeypatch, tmp_path):
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "theirs"))
    environment.apply_environment()
    assert str(tmp_path / "theirs" / "tmp") == environment.env.TILELANG_TMP_DIR
    monkeypatch.setenv("TILEWORKBENCH_CACHE_DIR", str(tmp_path / "ours"))
    assert environment.env.TILELANG_CACHE_DIR == str(tmp_path / "ours") == str(options.cache_dir)


def test_what_is_assigned_wins_and_none_takes_it_back(monkeypatch, tmp_path):
    monkeypatch.setenv("TILELANG_PASS_DIFF", "html")
    env = environment.env
    assert env.TILELANG_PASS_DIFF == "html"
    monkeypatch.setattr(env, "TILELANG_PASS_DIFF", "0")
    assert env.TILELANG_PASS_DIFF == "0"
    env.TILELANG_PASS_DIFF = None
    assert env.TILELANG_PASS_DIFF == "html"
    env.TILELANG_CACHE_DIR = str(tmp_path)
    env.TILELANG_DISABLE_CACHE = "1"
    assert options.cache_dir == tmp_path and not options.cache and env.is_cache_globally_disabled()
    env.TILELANG_DISABLE_CACHE = env.TILELANG_CACHE_DIR = None
    assert options.cache and options.cache_dir != tmp_path


@pytest.mark.parametrize(("text", "limit"), [("", 60.0), ("0", settings.NO_LIMIT), ("1.5", 1.5)])
def test_a_time_limit(monkeypatch, text, limit):
    environment.apply_environment()
    monkeypatch.setenv("TILELANG_COMPILE_TIMEOUT_SECONDS", text)
    assert options.compile_timeout == limit
    assert environment.env.get_compile_timeout_seconds() == (float(text or 0) or None)


@pytest.mark.parametrize("text", ["bad", "nan", "inf", "-1"])
def test_a_wrong_time_limit(monkeypatch, text):
    environment.apply_environment()
    monkeypatch.setenv("TILELANG_COMPILE_TIMEOUT_SECONDS", text)
    with pytest.raises(ValueError, match="TILELANG_COMPILE_TIMEOUT_SECONDS"):
        environment.env.get_compile_timeout_seconds()
    with pytest.raises(OptionError, match="environment variable TILELANG_COMPILE_TIMEOUT_SECONDS"):
        options.compile_timeout
    assert "TILELANG_COMPILE_TIMEOUT_SECONDS" in options.describe()


def test_a_target_that_is_no_json(monkeypatch):
    environment.apply_environment()
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", '{kind: "cuda"}')
    for asked in (environment.env.get_default_target, lambda: options.target):
        with pytest.raises(OptionError, match="Use JSON syntax"):
            asked()


def test_cache_switches():
    environment.disable_cache()
    assert not options.cache and not environment.env.is_cache_enabled()
    environment.env.enable_cache()
    assert environment.is_cache_enabled()
    with pytest.raises(AttributeError, match="no setting"):
        environment.env.TILELANG_NOTHING


def test_keys_without_a_meaning_are_listed():
    configs = {PassConfigKey.TL_ENABLE_FAST_MATH: True, PassConfigKey.TL_FORCE_LET_INLINE: True, "tl.other": 1}
    assert ignored(configs) == ("tl.force_let_inline", "tl.other")


def fresh():
    def test():
        """Marks of pytest go to functions with a name."""

    return test


def test_decorators_skip_with_a_reason():
    marked = testing.requires_metal(fresh())
    (mark,) = marked.pytestmark
    assert mark.args == (True,) and "Metal" in mark.kwargs["reason"]
    (absent,) = testing.requires_package("no_such_package")(fresh()).pytestmark
    assert absent.args == (True,) and "no_such_package" in absent.kwargs["reason"]
    (there,) = testing.requires_package("numpy")(fresh()).pytestmark
    assert there.args == (False,)
    with pytest.raises(OptionError, match="ge, gt, le, lt, eq"):
        testing.requires_cuda_compute_version(9, 0, mode="ne")


def test_regression_collects_what_process_func_was_given(capsys):
    space = {"testing": testing, "__name__": "made"}
    source = (
        "def regression_a():\n    testing.process_func(lambda n: n / 2, 'halved', n=3)\nfound = testing.regression()"
    )
    exec(source, space)
    assert space["found"] == [("halved", 1.5)] and "| halved | 1.5 |" in capsys.readouterr().out


def test_seeds_repeat():
    testing.set_random_seed(3)
    first = np.random.rand()
    testing.set_random_seed(3)
    assert np.random.rand() == first


def test_lower_gives_text_and_parameters():
    found = lower(MatmulTemplate(64, 64, 64).equivalent_function(), target="sm_80")
    assert "main" in found.kernel_source and [p.shape for p in found.params] == [[64, 64]] * 3
    assert [str(p.dtype) for p in found.params] == ["float16"] * 3 and not found.params[0].is_scalar()


def test_hooks_edit_the_text():
    from tileworkbench.compat import hooks
    from tileworkbench.jitkernel import hooks as registry

    try:

        @hooks.register_cuda_postproc_callback
        def mark(code, target):
            return f"// for {target}\n{code}"

        source = lower(MatmulTemplate(64, 64, 64).equivalent_function(), target="sm_80").kernel_source
        assert source.startswith("// for sm_80\n")
        with pytest.raises(TargetError, match="not generated text"):
            hooks.register_c_postproc(mark)
    finally:
        registry.register("cuda", None)


def test_torch_assert_close():
    torch = pytest.importorskip("torch")
    a = torch.arange(1000, dtype=torch.float32)
    b = a.clone()
    b[5] += 1
    assert torch_assert_close(a, b, max_mismatched_ratio=0.001)
    with pytest.raises(AssertionError, match=r"1 of 1000 elements differ .*first at \(5,\)"):
        torch_assert_close(a, b, max_mismatched_ratio=0.0005)
    with pytest.raises(AssertionError, match="dtype"):
        torch_assert_close(a, a.double())
    with pytest.raises(AssertionError, match="shapes differ"):
        torch_assert_close(a, a[1:])


def test_the_alias_reads_them_when_tilelang_is_imported(monkeypatch, tmp_path):
    monkeypatch.delenv("TILEWORKBENCH_CACHE_DIR", raising=False)
    with alias_tilelang():
        monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))
        importlib.import_module("tilelang")
        assert options.cache_dir == tmp_path
    assert options.origin("cache_dir") == "default"
