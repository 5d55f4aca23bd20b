"""Targets: FEATHERJET_CPU chooses the instruction set, and refuses what this machine cannot run."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from featherjet.errors import InputError, UnknownName
from featherjet.jit import engine
from featherjet.jit.engine import LEVELS, NATIVE, target, targets

NAMES = (NATIVE, *LEVELS)
ADD = """
define void @add(ptr %x) {
  %a = load <4 x double>, ptr %x
  %b = call <4 x double> @llvm.fmuladd.v4f64(<4 x double> %a, <4 x double> %a, <4 x double> %a)
  store <4 x double> %b, ptr %x
  ret void
}
declare <4 x double> @llvm.fmuladd.v4f64(<4 x double>, <4 x double>, <4 x double>)
"""


@pytest.fixture
def host(monkeypatch):
    """Pretend to have a CPU with these features, on this architecture."""

    def pretend(features: set[str], triple: str = "x86_64-unknown-linux-gnu") -> None:
        found = llvm.FeatureMap({name: name in features for _, names in LEVELS.values() for name in names})
        monkeypatch.setattr(engine.llvm, "get_host_cpu_features", lambda: found)
        monkeypatch.setattr(engine.llvm, "get_process_triple", lambda: triple)
        engine._target.cache_clear()

    yield pretend
    engine._target.cache_clear()


def up_to(level: str) -> set[str]:
    return {name for known in list(LEVELS)[: list(LEVELS).index(level) + 1] for name in LEVELS[known][1]}


def test_native_is_the_default(monkeypatch):
    monkeypatch.delenv("FEATHERJET_CPU", raising=False)
    assert target().name == NATIVE
    assert target().cpu == llvm.get_host_cpu_name()
    assert target().features == llvm.get_host_cpu_features().flatten()
    monkeypatch.setenv("FEATHERJET_CPU", "")
    assert target().name == NATIVE


def test_the_variable_is_read_on_every_call(target, monkeypatch):
    assert engine.target().name == target
    assert engine.target() is engine.target()
    assert engine.target().shared is engine.target().shared
    monkeypatch.setenv("FEATHERJET_CPU", NATIVE)
    assert engine.target().name == NATIVE


def test_targets_differ_in_their_text(monkeypatch):
    texts = set()
    for name in targets():
        monkeypatch.setenv("FEATHERJET_CPU", name)
        texts.add(target().text)
    assert len(texts) == len(targets())


@pytest.mark.parametrize("level", LEVELS)
def test_code_uses_the_registers_of_its_level(level, monkeypatch):
    if level not in targets():
        pytest.skip(f"this CPU is older than {level}")
    monkeypatch.setenv("FEATHERJET_CPU", level)
    text = target().machine().emit_assembly(llvm.parse_assembly(ADD))
    assert ("ymm" in text) == (level != "x86-64-v2")
    assert ("vfmadd" in text) == (level != "x86-64-v2")


@pytest.mark.parametrize("level, lanes", [("x86-64-v2", 2), ("x86-64-v3", 4), ("x86-64-v4", 8)])
def test_levels_that_the_host_has(host, monkeypatch, level, lanes):
    host(up_to(level))
    assert targets() == NAMES[: NAMES.index(level) + 1]
    monkeypatch.setenv("FEATHERJET_CPU", level)
    assert (target().name, target().cpu, target().lanes) == (level, level, lanes)
    monkeypatch.setenv("FEATHERJET_CPU", NATIVE)
    assert target().lanes == lanes


@pytest.mark.parametrize(
    "has, wanted, missing",
    [
        ("x86-64-v3", "x86-64-v4", "avx512f, avx512bw, avx512cd, avx512dq, avx512vl"),
        ("x86-64-v2", "x86-64-v3", "avx, avx2, bmi, bmi2, f16c, fma, lzcnt, movbe, xsave"),
    ],
)
def test_levels_that_the_host_lacks_are_refused(host, monkeypatch, has, wanted, missing):
    host(up_to(has))
    monkeypatch.setenv("FEATHERJET_CPU", wanted)
    with pytest.raises(
        InputError, match=f"^FEATHERJET_CPU={wanted}: this CPU lacks {missing}; it can run: native, x86"
    ):
        target()


def test_unknown_names_are_refused(host, monkeypatch):
    host(up_to("x86-64-v3"))
    monkeypatch.setenv("FEATHERJET_CPU", "haswell")
    with pytest.raises(UnknownName, match="unknown FEATHERJET_CPU 'haswell'; choose from: native, x86-64-v2") as error:
        target()
    assert error.value.choices == NAMES


def test_other_architectures_have_native_alone(host, monkeypatch):
    host(set(), "aarch64-apple-darwin")
    assert targets() == (NATIVE,)
    monkeypatch.setenv("FEATHERJET_CPU", "x86-64-v3")
    with pytest.raises(UnknownName, match=r"choose from: native$"):
        target()
    monkeypatch.setenv("FEATHERJET_CPU", NATIVE)
    assert target().lanes == 2
