"""A target: the architecture that code is generated for, and the card that it is planned for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import TargetError
from .arch import Arch
from .detect import FoundDevice, detect
from .device import Device
from .devices import DEVICES
from .rows import ARCHS

# What other tools call the embedded machine: TileLang's C and LLVM targets run on the host as well.
_CPU_WORDS = frozenset({"cpu", "c", "llvm", "numpy", "simulate"})
_KINDS = {"cuda": "cuda", "cutedsl": "cuda", "nvidia": "cuda", "hip": "hip", "rocm": "hip", "amd": "hip"}
_DEFAULT_ARCH = {"cuda": "sm_90a", "hip": "gfx942"}
# In TileLang's strings and dicts "sm_90" means the card, whose code there is built with its "a" features.
_FULL = {"sm_90": "sm_90a", "sm_100": "sm_100a", "sm_120": "sm_120a"}
_ARCH_OPTIONS = ("arch", "mcpu")
_IGNORED_OPTIONS = frozenset({"keys", "max_num_threads", "thread_warp_size", "max_threads_per_block", "code", "host",
                              "libs", "model", "mtriple", "tag", "registers_per_block", "l2_cache_size_bytes",
                              "max_shared_memory_per_block"})  # fmt: skip


@dataclass(frozen=True)
class Target:
    """An architecture row with a device row. Hashable; `Target.of(str(target)) == target` for every known card.
    Generated code depends on `arch` alone; plans and predictions on both."""

    arch: Arch
    device: Device

    def __post_init__(self) -> None:
        built_for = ARCHS.get(self.device.arch)
        if built_for is not None and built_for.dialect != self.arch.dialect:
            raise TargetError(
                f"{self.arch.name} code cannot run on {self.device.name}",
                rule=f"{self.device.name} runs {built_for.dialect} code",
                fix=f'"{self.arch.name}/{self.arch.default_device}" or "{built_for.name}/{self.device.name}"',
            )

    def __str__(self) -> str:
        if self.device.name == self.arch.default_device:
            return self.arch.name
        return f"{self.arch.name}/{self.device.name}"

    @property
    def name(self) -> str:
        """The architecture, for example "sm_90a"."""
        return self.arch.name

    @property
    def build_arch(self) -> str:
        """What machine code is built for: `arch`, or the card's own architecture where that cannot run its binaries
        (NVIDIA's run within one major capability). So "sm_80/H200" runs the sm_80 instruction families on an H200."""
        card = ARCHS.get(self.device.arch)
        if card is None or card.capability is None or self.arch.capability is None:
            return self.arch.name
        return self.arch.name if card.capability[0] == self.arch.capability[0] else card.name

    @property
    def dialect(self) -> str:
        """What its kernels are written in: "cuda", "hip" or "cpu"."""
        return self.arch.dialect

    def has(self, feature: str) -> bool:
        """Whether the architecture has a feature, for example "wgmma"; InternalError for a name that is none."""
        return self.arch.has(feature)

    @staticmethod
    def of(spec: object = "auto") -> Target:
        """The target that `spec` names: an architecture ("sm_90a", "gfx942"), a card ("H200"), both ("sm_80/H200"),
        "cpu", "cuda" or "hip" (the card in this machine, else H200 or MI300X), "auto" (the card in this machine, else
        cpu), a TileLang string ("cuda -arch=sm_90") or dict ({"kind": "cuda", "arch": "sm_90"}), or a Target."""
        if isinstance(spec, Target):
            return spec
        if isinstance(spec, Arch):
            return Target(spec, DEVICES[spec.default_device])
        if isinstance(spec, Mapping):
            return _of_mapping(spec)
        if isinstance(spec, str):
            return _of_text(spec)
        kind = getattr(getattr(spec, "kind", None), "name", None)  # a tvm.target.Target, without importing tvm
        if isinstance(kind, str):
            return _of_kind(kind, getattr(spec, "arch", None))
        raise TargetError(f"a target cannot be made from {type(spec).__name__}", rule="a name or a dict", fix='"auto"')


def target_names() -> list[str]:
    """Every plain name that `Target.of` takes."""
    return ["auto", "cpu", "cuda", "hip", *(a for a in ARCHS if a != "cpu"), *(d for d in DEVICES if d != "cpu")]


def target_of_found(found: FoundDevice) -> Target | None:
    """The target of a detected GPU, with the card's own processor count; None when its architecture has no row.
    A card without a device row gets the figures of its architecture's default card, scaled where the driver knows."""
    if not found.arch:
        return None
    arch = ARCHS[found.arch]
    row = _device_named(found.name) or _scaled(DEVICES[arch.default_device], found)
    if found.sm_count and row.sm_count != found.sm_count:  # a partition of a card
        row = replace(_scaled(row, found), bandwidth_gbs=row.bandwidth_gbs, l2_bytes=row.l2_bytes)
    return Target(arch, row)


def _scaled(base: Device, found: FoundDevice) -> Device:
    sm_count, mhz = found.sm_count or base.sm_count, found.clock_mhz or base.boost_mhz
    factor = sm_count * mhz / (base.sm_count * base.boost_mhz)
    return replace(
        base,
        name=re.sub(r"[^A-Za-z0-9]+", "-", found.name).strip("-"),
        marketing=found.name,
        sm_count=sm_count,
        boost_mhz=mhz,
        sustained_mhz=None,
        peak_mhz=base.peak_mhz and round(base.peak_mhz * mhz / base.boost_mhz),
        memory_bytes=found.memory_bytes or base.memory_bytes,
        l2_bytes=found.l2_bytes or base.l2_bytes,
        bandwidth_gbs=round(found.bandwidth_gbs, 1) or base.bandwidth_gbs,
        tflops=tuple((dtype, round(rate * factor, 2)) for dtype, rate in base.tflops),
        aliases=(),
        sources=(("*", f"driver; peaks and power derived from {base.name} by processors and clock"),),
    )


def _of_mapping(spec: Mapping[object, object]) -> Target:
    for key in spec:
        if key not in ("kind", "device", *_ARCH_OPTIONS) and key not in _IGNORED_OPTIONS:
            raise TargetError(
                f"unknown key {key!r} in a target", rule='keys: "kind", "arch"', fix='{"kind": "cuda", "arch": "sm_90"}'
            )
    arch = next((spec[key] for key in _ARCH_OPTIONS if spec.get(key)), None)
    return _of_kind(str(spec.get("kind", "")), arch)


def _of_text(text: str) -> Target:
    words = text.split()
    if len(words) > 1:
        return _of_kind(words[0], _arch_option(words[1:]))
    word = words[0] if words else ""
    if word.lower() in _KINDS or word.lower() in _CPU_WORDS:
        return _of_kind(word, None)
    if word.lower() == "auto":
        return _present(None) or Target.of("cpu")
    arch_word, _, device_word = word.partition("/")
    if device_word and arch_word.lower() not in _KINDS:  # "nvidia/nvidia-h100" is a tag of one card, not a pair
        return Target(_arch(arch_word), _device(device_word))
    return _of_name(device_word or word)


def _arch_option(options: list[str]) -> str | None:
    arch = None
    for option in options:
        key, _, value = option.lstrip("-").partition("=")
        if key in _ARCH_OPTIONS:
            arch = value
        elif key not in _IGNORED_OPTIONS or not option.startswith("-"):
            raise TargetError(f"unknown target option {option!r}", rule="options: -arch=NAME", fix='"cuda -arch=sm_90"')
    return arch


def _of_kind(kind: str, arch: object) -> Target:
    word = kind.lower()
    if word in _CPU_WORDS:
        return Target(ARCHS["cpu"], DEVICES["cpu"])
    dialect = _KINDS.get(word)
    if dialect is None:
        raise _unknown(kind)
    if not arch:
        return _present(dialect) or _of_name(_DEFAULT_ARCH[dialect])
    row = _arch(_FULL.get(_spelling(str(arch)), str(arch)))
    if row.dialect != dialect:
        raise TargetError(
            f"{row.name} is not a {kind} architecture", rule=f"{row.name} runs {row.dialect} code", fix=f'"{row.name}"'
        )
    return Target.of(row)


def _of_name(word: str) -> Target:
    device = _device_named(word)
    if device is not None:
        return Target(ARCHS[device.arch], device)
    return Target.of(_arch(word))


def _present(dialect: str | None) -> Target | None:
    for found in detect():
        target = target_of_found(found)
        if target is not None and dialect in (None, target.dialect):
            return target
    return None


def _arch(word: str) -> Arch:
    row = ARCHS.get(_spelling(word))
    if row is None:
        raise _unknown(word)
    return row


def _spelling(word: str) -> str:
    """The row's spelling: "sm90a", "compute_90a" and "SM_90A" are sm_90a."""
    return re.sub(r"^(sm|compute)_?(?=\d)", "sm_", word.lower())


def _device(word: str) -> Device:
    device = _device_named(word)
    if device is None:
        raise _unknown(word)
    return device


def _device_named(name: str) -> Device | None:
    plain = _plain(name)
    return next((row for row in DEVICES.values() if plain == _plain(row.name) or plain in row.aliases), None)


def _plain(name: str) -> str:
    return re.sub(r"nvidia|geforce|tesla|amd|instinct|[^a-z0-9]", "", name.lower())


def _unknown(word: str) -> TargetError:
    known = {name.lower(): name for name in target_names()}
    near = _older(word) or difflib.get_close_matches(_spelling(word), known, n=1, cutoff=0.5)
    fix = f'did you mean "{known[near[0]]}"?' if near else 'use "auto" for the GPU of this machine, or "cpu"'
    return TargetError(f"unknown target {word!r}", rule="targets: " + ", ".join(target_names()), fix=fix)


def _older(word: str) -> list[str]:
    """The newest NVIDIA row not above an unknown "sm_NN": its code is the likeliest to be meant."""
    number = re.fullmatch(r"sm_(\d+)(\d)[a-z]?", _spelling(word))
    if number is None:
        return []
    wanted = (int(number[1]), int(number[2]))
    rows = [row for row in ARCHS.values() if row.capability is not None and row.capability <= wanted]
    return [row.name for row in sorted(rows, key=lambda row: row.capability or (0, 0))[-1:]]
