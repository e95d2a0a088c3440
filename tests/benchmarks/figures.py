"""The README's figures, written from the kept results: `python -m tests.benchmarks.figures` after a new run.

A test holds the README against them, so that nothing is published that no run has shown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
RESULTS = Path(__file__).resolve().parent / "results"
PLACE = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.S)


def result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def where(run: dict[str, Any]) -> str:
    return f"{run['card']}, driver {run['driver']}, {run['date']}"


def kernels() -> list[str]:
    run = result("kernels_h200")
    lines = [
        f"{where(run)}, NVRTC {run['nvrtc'].split()[-1]}; medians of {run['rounds']} interleaved rounds:",
        "",
        f"| kernel | here | torch {run['torch']} | here / torch |",
        "|---|---|---|---|",
    ]
    for row in run["rows"]:
        low, high = row["interval"]
        lines.append(
            f"| {row['name']} | {row['ours']} {row['unit']} | {row['torch']} {row['unit']} "
            f"| {row['ratio']:.3f} ({low:.3f} – {high:.3f}) |"
        )
    return lines


def time_to_result() -> list[str]:
    run = result("time_to_result_h200")
    lines = [
        f"From a kernel's text to machine code, imports aside ({run['host']} of the same machine, {run['date']}):",
        "",
        "| kernel | empty cache | of that, NVRTC | disk cache |",
        "|---|---|---|---|",
    ]
    rows = {(row["kernel"], row["state"]): row for row in run["rows"]}
    for kernel in dict.fromkeys(row["kernel"] for row in run["rows"]):
        cold, warm = rows[kernel, "cold"], rows[kernel, "disk cache"]
        lines.append(f"| {kernel} | {cold['total']:.2f} s | {cold['build']:.2f} s | {warm['total'] * 1000:.0f} ms |")
    return lines


def calls() -> list[str]:
    run = result("launch_cost_h200")
    names = {
        "ours, torch": "a repeated call on torch tensors, three of them:",
        "bare cuLaunchKernelEx, ctypes": "a bare launch with ready arguments:",
        "torch.add, output given": "`torch.add` into a given output:",
    }
    parts = [f"{text} {run[name]:.1f} µs" for name, text in names.items()]
    return [f"On the host ({where(run)}):", *[f"- {part}" for part in parts]]


def fuzz() -> list[str]:
    run = result("fuzz_h200")
    bad = len(run["bad"])
    return [
        f"Random kernels against NumPy on a card ({where(run)}):",
        f"{run['kernels']:,} kernels, {run['right']:,} runs right, {bad} wrong, {run['refused']:,} refused by name.",
    ]


def scripts() -> list[str]:
    run = result("conformance_h200")
    core, more = run["core"], run["more"]
    made = [
        f"TileLang's example scripts (VERSION 0.1.13), unchanged, with their own checks ({where(run)}):",
        (
            f"{core['passed'] + more['passed']} of {core['scripts'] + more['scripts']} pass; of the "
            f"{core['scripts']} that stand for the language, {core['passed']}."
        ),
    ]
    if "tilelang" in run:
        made += against_tilelang(run)
    if "tests" in run:
        tests = run["tests"]["behaviour"]
        made.append(
            f"Of its test functions that compare a kernel's numbers {tests['passed']} of {tests['functions']} pass."
        )
    return made


def against_tilelang(run: dict[str, Any]) -> list[str]:
    """The same scripts on TileLang itself."""
    core, more = run["tilelang"]["core"], run["tilelang"]["more"]
    ratios = sorted(r["kernel_ratio"] for r in run["rows"] if r.get("kernel_ratio"))
    return [
        (
            f"TileLang {run['tilelang_version']} itself on that card, {run['limits']}: "
            f"{core['passed'] + more['passed']} of {core['scripts'] + more['scripts']}, core {core['passed']}. "
            "Seconds of all scripts added up, builds "
            f"included: {run['seconds']['tileworkbench']:,} here, {run['seconds']['tilelang']:,} there."
        ),
        (
            f"Kernel time here over TileLang's, in the {len(ratios)} core scripts whose kernels bear one name on both "
            f"sides: median {ratios[len(ratios) // 2]:.2f}, above 3 in {len([r for r in ratios if r > 3])} (from "
            f"{ratios[0]:.2f} to {ratios[-1]:.2f})."
        ),
    ]


def section() -> str:
    """What stands between the two marks of the README."""
    parts = ["\n".join(part()) for part in (kernels, time_to_result, calls, fuzz, scripts)]
    return "\n" + "\n\n".join(parts) + "\n\n"


def main() -> None:
    text = README.read_text(encoding="utf-8")
    README.write_text(PLACE.sub(lambda _: section(), text), encoding="utf-8")


if __name__ == "__main__":
    main()
