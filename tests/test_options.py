"""Knobs: where a value comes from, what is refused, and what enters a cache key."""

import threading
from pathlib import Path

import pytest

from tileworkbench.errors import OptionError
from tileworkbench.options import KNOBS, Options


@pytest.fixture
def options(monkeypatch):
    for knob in KNOBS.values():
        monkeypatch.delenv(knob.environment, raising=False)
    return Options()


def test_order_of_precedence(options, monkeypatch):
    assert options.unroll_limit == 4096
    monkeypatch.setenv("TILEWORKBENCH_UNROLL_LIMIT", "10")
    assert (options.unroll_limit, options.origin("unroll_limit")) == (10, "TILEWORKBENCH_UNROLL_LIMIT")
    options.unroll_limit = 20
    assert (options.unroll_limit, options.origin("unroll_limit")) == (20, "set")
    with options(unroll_limit=30) as inner:
        assert inner.unroll_limit == 30
        with options(fast_math=True):
            assert (options.unroll_limit, options.fast_math) == (30, True)
        assert options.origin("unroll_limit") == "block"
        assert options.fast_math is False
    del options.unroll_limit
    assert options.unroll_limit == 10


def test_a_block_ends_with_its_exception(options):
    with pytest.raises(KeyError), options(seed=3):
        raise KeyError
    assert options.seed == 0


def test_blocks_are_private_to_a_thread(options):
    inside, release, seen = threading.Event(), threading.Event(), {}

    def other():
        seen["before"] = options.seed
        with options(seed=7):
            inside.set()
            release.wait(10)
            seen["inside"] = options.seed

    with options(seed=5):
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(10)
        assert options.seed == 5
        release.set()
        thread.join()
    assert seen == {"before": 0, "inside": 7}


def test_changed_repeats_the_settings_elsewhere(options):
    options.line_info = False
    with options(seed=5):
        carried = options.changed()
    assert carried == {"line_info": False, "seed": 5}
    with options(**carried):
        assert options.seed == 5


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("cache", "0", False),
        ("cache", "Yes", True),
        ("cache_size", "4GiB", 4 * 2**30),
        ("cache_size", "1.5 MB", 1_500_000),
        ("cache_size", 77, 77),
        ("compile_timeout", "2.5", 2.5),
        ("cache_dir", "/tmp/x", Path("/tmp/x")),
        ("verify", True, "on"),
        ("html", "live", "live"),
        ("target", " sm_80 ", "sm_80"),
        ("seed", 2**64 - 1, 2**64 - 1),
    ],
)
def test_values(options, name, given, value):
    with options(**{name: given}):
        assert getattr(options, name) == value
        assert type(getattr(options, name)) is type(value) or isinstance(value, Path)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("cache", "maybe"), ("cache", 1), ("cache", None), ("cache_size", "4 GiBi"), ("cache_size", -1),
        ("compile_timeout", 0), ("compile_timeout", float("nan")), ("compile_timeout", "inf"),
        ("compile_timeout", True),
        ("unroll_limit", 0), ("unroll_limit", 1.5), ("unroll_limit", True), ("seed", 2**64), ("ir_node_limit", 10),
        ("html", "svg"), ("verify", "ON"), ("cache_dir", ""), ("cache_dir", "a\0b"), ("cache_dir", 3), ("target", "  "),
        ("schedule", ["eager"]), ("simulate_memory_limit", "0"),
    ],
)  # fmt: skip
def test_refusals_name_the_rule_and_change_nothing(options, name, given):
    before = options.describe()
    with (
        pytest.raises(OptionError) as caught,
        options(**{"line_info": False, name: given}),
    ):
        pass
    assert name in str(caught.value)
    assert KNOBS[name].text in caught.value.rule
    with pytest.raises(OptionError):
        setattr(options, name, given)
    assert options.describe() == before


def test_a_bad_environment_value_names_the_variable(options, monkeypatch):
    monkeypatch.setenv("TILEWORKBENCH_SEED", "many")
    with pytest.raises(OptionError, match="TILEWORKBENCH_SEED"):
        _ = options.seed
    assert "invalid: 'many'" in options.describe()


@pytest.mark.parametrize(("name", "fix"), [("fastmath", "'fast_math'"), ("zzz", "describe()")])
def test_unknown_names(options, name, fix):
    for use in (
        lambda: getattr(options, name),
        lambda: setattr(options, name, 1),
        lambda: options(**{name: 1}).__enter__(),
    ):
        with pytest.raises(OptionError) as caught:
            use()
        assert fix in caught.value.fix
        assert "fast_math" in caught.value.rule


def test_digest_follows_code_generation_alone(options):
    first = options.digest()
    for name, knob in KNOBS.items():
        other = {"bool": not knob.default, "int": 5000, "text": "sm_80", "seconds": 1.0, "bytes": 2**22, "path": "/x"}
        value = knob.choices[-1] if knob.kind == "choice" else other[knob.kind]
        with options(**{name: value}):
            assert (options.digest() != first) == knob.codegen, name
    assert options.digest() == first


def test_every_default_is_valid_and_described(options):
    table = options.describe()
    for name, knob in KNOBS.items():
        assert knob.read(knob.default_value()) == knob.default_value()
        assert name in table
        assert knob.environment in table
        assert name in dir(options)


def test_cache_folder_without_a_home(options, monkeypatch):
    def no_home():
        raise RuntimeError

    monkeypatch.setattr(Path, "home", staticmethod(no_home))
    assert options.cache_dir.name == "tileworkbench-cache"


def test_cache_folder_obeys_xdg(options, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert options.cache_dir == Path("/somewhere/tileworkbench")
