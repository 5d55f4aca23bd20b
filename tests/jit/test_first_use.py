"""What a first use does: it compiles once, on one pool of threads, says so if it takes long, and frees what it made."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import featherjet as fj
from featherjet.cli import main
from featherjet.errors import InputError, UnknownName
from featherjet.jit import library as libraries
from featherjet.jit import notices, objects, workers
from featherjet.jit.engine import target
from featherjet.jit.garbage import uncollected
from featherjet.jit.kernel import direct_call_code

MODEL = fj.models.chain(2)


@pytest.fixture
def compilations(monkeypatch) -> list[str]:
    """The names of what is compiled, in a process that has nothing loaded."""
    direct_call_code(target().name)  # which all tests share
    seen: list[str] = []
    real = libraries.library

    def noted(cpu, what, name, make):
        def counted():
            seen.append(name)
            return make()

        return real(cpu, what, name, counted)

    for module in ("jit.kernel", "treejit.compiler"):
        monkeypatch.setattr(f"featherjet.{module}.library", noted)
    monkeypatch.setattr(libraries, "_loaded", weakref.WeakValueDictionary())
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", "")
    return seen


def test_compile_leaves_nothing_to_compile(compilations):
    robot = fj.Robot(MODEL, backend="compiled", unroll=True)
    robot.compile("mass_matrix", "gravity")
    names = [f"{name} for chain2{way}" for name in ("mass_matrix", "gravity") for way in ("", " in batches")]
    assert sorted(compilations) == sorted(names)
    before = list(compilations)
    q = np.array([[0.1, 0.2]] * 70)
    robot.mass_matrix(q[0]), robot.gravity(q[0]), robot.mass_matrix(q), robot.gravity(q)
    robot.bind("gravity")()
    assert compilations == before
    robot.bias(q[0], q[0])
    assert compilations != before


def test_compile_refuses_what_it_does_not_know():
    robot = fj.Robot(MODEL, backend="compiled")
    with pytest.raises(UnknownName, match="quantity to compile"):
        robot.compile("mass")
    with pytest.raises(InputError, match="takes no external forces"):
        robot.compile("mass_matrix", fext=True)
    with pytest.raises(InputError, match="needs contacts"):
        robot.compile("constrained_dynamics")


def test_compile_in_another_convention_and_without_compiled_code(compilations):
    fj.Robot(MODEL, backend="compiled", unroll=True).with_convention("mujoco").compile("gravity")
    assert sorted(compilations) == ["gravity for chain2", "gravity for chain2 in batches"]
    fj.Robot(MODEL, backend="numpy").compile("gravity")
    assert len(compilations) == 2


def test_the_command(compilations, capsys, monkeypatch):
    monkeypatch.setenv("FEATHERJET_BACKEND", "compiled")
    assert main(["compile", "arm", "--quantity", "gravity"]) == 0
    assert "arm: gravity compiled in" in capsys.readouterr().out
    assert compilations == ["gravity for arm"] * len(compilations) != []
    assert main(["compile", "arm", "--quantity", "nonsense"]) == 2


# Parts side by side


def test_results_are_in_order_and_errors_arrive(monkeypatch):
    monkeypatch.setattr(workers, "processors", lambda: 4)
    assert workers.on_all_processors(lambda k=k: k * k for k in range(100)) == [k * k for k in range(100)]

    def bad() -> int:
        raise ArithmeticError("bad")

    with pytest.raises(ArithmeticError):
        workers.on_all_processors([lambda: 1, bad, lambda: 2])


@pytest.mark.parametrize("count", [1, 3])
def test_code_does_not_depend_on_the_number_of_processors(monkeypatch, count):
    """Byte for byte; and parts in one object compute the same."""
    parts = []
    monkeypatch.setattr(libraries, "compiled", lambda cpu, made: parts.append(list(made)) or real(cpu, parts[-1]))
    monkeypatch.setattr(libraries, "_loaded", weakref.WeakValueDictionary())
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", "")
    real = objects.compiled
    q = np.array([[0.1, 0.2]] * 9)
    found = fj.Robot(MODEL, backend="compiled", unroll=True).mass_matrix(q)
    np.testing.assert_allclose(found, fj.Robot(MODEL, backend="numpy").mass_matrix(q), rtol=1e-13)
    monkeypatch.setattr(workers, "processors", lambda: count)
    assert len({real(target(), parts[0]) for _ in range(3)}) == 1


def test_one_pool_whatever_threads_is():
    pools = set()
    q = np.zeros((20_000, 2))
    for count in (2, 3, 7):
        robot = fj.Robot(MODEL, backend="compiled", threads=count)
        robot.inverse_dynamics_derivatives(q, q, q)
        pools.add(workers.workers())
    assert len(pools) == 1
    assert sum(t.name.startswith("featherjet") for t in threading.enumerate()) <= workers.MOST


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_its_own_pool():
    workers.workers().submit(int).result()
    child = os.fork()
    if child == 0:
        os._exit(0 if workers.workers().submit(lambda: 7).result(60) == 7 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# Memory


def test_code_of_dropped_robots_is_freed(monkeypatch):
    """But not code that a bound call, or one that is kept from a robot, still runs."""
    monkeypatch.setattr(libraries, "_loaded", weakref.WeakValueDictionary())
    monkeypatch.setattr(libraries, "_recent", libraries.deque(maxlen=2))
    q = np.array([0.3, 0.4])
    kept, expected = [], []
    for k in range(5):
        model = fj.models.chain(2).with_gravity([0.0, 0.0, -1.0 - k])
        robot = fj.Robot(model, backend="compiled", unroll=True)
        robot.gravity(q)
        expected.append(fj.Robot(model, backend="numpy").gravity(q))
        kept.append(robot.bind("gravity"))
    del robot
    gc.collect()
    assert len(libraries._loaded) == 5
    for bound, want in zip(kept, expected, strict=True):
        bound.q[:] = q
        bound()
        np.testing.assert_allclose(bound.g, want, rtol=1e-12)
    del bound, kept[:]
    gc.collect()
    assert len(libraries._loaded) == 2, "the most recent ones stay for the next robot"


# Notices

SLOW = """
import time
from featherjet.jit import notices
notices.PATIENCE = 0.05
with notices.announced("compiling some\\x1b[2Jthing", "once"):
    time.sleep({seconds})
"""


UNDER_A_BAR = """
from featherjet.terminal import progress
with progress() as bar:
    bar.add_task("steps", total=3)
"""


def on_a_terminal(seconds: float, code: str = SLOW, **environment: str) -> str:
    """What a program that works for some seconds prints on stderr, a terminal."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", code.format(seconds=seconds)]
    subprocess.run(command, stderr=theirs, env={**os.environ, **environment}, check=True, timeout=120)
    os.write(theirs, b"|")
    text = b""
    while not text.endswith(b"|"):
        text += os.read(ours, 1000)
    os.close(ours), os.close(theirs)
    return text[:-1].decode()


def test_long_work_says_so_on_a_terminal_only():
    assert on_a_terminal(1.0).strip() == r"featherjet: compiling some\x1b[2Jthing (once) ..."
    assert on_a_terminal(1.0, FEATHERJET_QUIET="1") == ""
    assert on_a_terminal(0.0) == ""
    code = [sys.executable, "-c", SLOW.format(seconds=0.3)]
    assert subprocess.run(code, capture_output=True, check=True, timeout=120).stderr == b""


def test_long_work_says_so_above_a_progress_bar():
    inner = "".join(f"    {line}\n" for line in SLOW.splitlines())
    shown = on_a_terminal(1.0, UNDER_A_BAR + inner, TERM="xterm")
    assert r"featherjet: compiling some\x1b[2Jthing (once) ..." in shown
    assert "steps" in shown


def test_a_notebook_is_told(monkeypatch, capsys):
    monkeypatch.delenv("FEATHERJET_QUIET", raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # of other tests
    assert not notices.somebody_watches(), "the output of tests goes to a file"
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setattr(notices, "PATIENCE", 0.0)
    said = threading.Event()
    monkeypatch.setattr(notices, "_say", lambda line: said.set())
    with notices.announced("compiling something", "once"):
        assert said.wait(60)


def test_compiling_is_announced(compilations, monkeypatch):
    said: list[tuple[str, str]] = []
    real = notices.announced
    monkeypatch.setattr(libraries, "announced", lambda *words: said.append(words) or real(*words))
    fj.Robot(MODEL, backend="compiled", unroll=True).gravity(np.zeros(2))
    assert said == [("compiling gravity for chain2", "once")]


def test_garbage_is_not_collected_while_code_is_written(monkeypatch):
    """Collections look at every operation of a trace again and again; a failure or a fork leaves them on."""
    seen: list[bool] = []

    def make():
        seen.append(gc.isenabled())
        raise ValueError("written in vain")
        yield

    monkeypatch.setenv("FEATHERJET_CACHE_DIR", "")
    with pytest.raises(ValueError, match="in vain"):
        libraries.library(target(), ("garbage",), "test", make)
    assert seen == [False]
    assert gc.isenabled()
    with uncollected, uncollected:
        assert not gc.isenabled()
        if hasattr(os, "fork"):
            child = os.fork()
            if child == 0:
                os._exit(0 if gc.isenabled() else 1)
            assert os.waitpid(child, 0)[1] == 0
    assert gc.isenabled()
    gc.disable()
    try:
        with uncollected:
            pass
        assert not gc.isenabled()  # as the user has it
    finally:
        gc.enable()


def test_hessians_of_all_torques_of_a_large_robot_are_loops(compilations):
    """If it were code for one robot, what computes one after the other, not code that nothing would run."""
    for unroll, name in ((None, "inverse_dynamics_second_derivatives"), (True, "inverse_dynamics_hessian")):
        robot = fj.Robot(fj.models.chain(20), backend="compiled", unroll=unroll)
        robot.compile("inverse_dynamics_second_derivatives")
        assert f"{name} for chain20" in compilations


def test_no_notice_comes_twice(compilations, monkeypatch):
    """Code for batches is other code than that for one state, and says so."""
    said: list[str] = []
    real = notices.announced
    monkeypatch.setattr(libraries, "announced", lambda *words: said.append(words[0]) or real(*words))
    robot = fj.Robot(MODEL, backend="compiled", unroll=True)
    for q in (np.zeros(2), np.zeros((70, 2))) * 2:
        robot.gravity(q)
    assert said == ["compiling gravity for chain2", "compiling gravity for chain2 in batches"]


def test_a_world_says_once_that_its_code_is_compiled(monkeypatch):
    """Its stages are compiled together when it is made, none of them perhaps for as long as a notice waits."""
    direct_call_code(target().name)  # which all tests share
    said: list[tuple[str, str]] = []
    real = notices.announced
    monkeypatch.setattr(libraries, "announced", lambda *words: said.append(words) or real(*words))
    robot = fj.Robot(MODEL, backend="compiled")
    ground = fj.Ground(robot, [fj.Foot(MODEL.frames[-1].name)])
    monkeypatch.setattr(libraries, "_loaded", weakref.WeakValueDictionary())
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", "")
    world = fj.World(robot, np.zeros(2), np.zeros(2), ground)
    assert said == [("compiling time steps", "once")]
    world.step()
    assert len(said) == 1
