"""An allocation that fails inside a kernel raises MemoryError, wherever it fails, and the next call works again."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import llvmlite.ir as ir
import pytest

import featherjet as fj
from featherjet.jit.emit.border import Border
from featherjet.jit.emit.lanes import I64, Lanes
from featherjet.jit.engine import Library, target
from featherjet.jit.flags import Flag
from featherjet.jit.graph import Graph
from featherjet.jit.number import DOUBLE
from featherjet.jit.objects import compiled, sources

PROGRAM = """
    import ctypes, sys
    import llvmlite.binding as llvm
    import numpy as np
    libc = ctypes.CDLL(None)
    libc.calloc.restype = libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes, libc.calloc.argtypes = [ctypes.c_size_t], [ctypes.c_size_t] * 2
    made, fails = 0, lambda k: False  # allocations, and which of them fail

    def malloc(size):
        global made
        made += 1
        return None if fails(made) else libc.malloc(size)

    def calloc(count, size):
        global made
        made += 1
        return None if fails(made) else libc.calloc(count, size)

    P, N = ctypes.c_void_p, ctypes.c_size_t
    replaced = {"malloc": ctypes.CFUNCTYPE(P, N)(malloc), "calloc": ctypes.CFUNCTYPE(P, N, N)(calloc)}
    for name, function in replaced.items():
        llvm.add_symbol(name, ctypes.cast(function, P).value)

    import featherjet as fj
    import featherjet.jit.kernel
    import backends as t
    from helpers import random_state

    def attempt(call, which):
        global made, fails
        made, fails = 0, which
        try:
            return call()
        finally:
            fails = lambda k: False

    def refused(call, which, expected=None):
        try:
            found = attempt(call, which)
        except MemoryError as error:
            assert "no memory" in str(error)
            return True
        if expected is not None:
            assert all(np.array_equal(x, y) for x, y in zip(found, expected)), "failed unnoticed"
        return False

    sites = 0

    def try_all(call):
        global sites  # each allocation of a call fails, alone and with all that follow; then it works as before
        call()  # the first call is not the direct one, whose failures are tried again the general way
        expected = attempt(call, lambda k: False)
        for n in range(1, made + 1):
            refused(call, lambda k: k == n, expected)
            assert refused(call, lambda k: k >= n), f"allocation {n} failed unnoticed"
            sites += 1
        assert all(np.array_equal(x, y) for x, y in zip(call(), expected))

    ROLLED = "bias", "mass_matrix", "forward_kinematics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives"
    for key in (("every kind", False), ("arm", True)):
        robot = t.pair_of(*key).compiled
        s = random_state(robot, 20)
        for name in ROLLED if key[0] == "every kind" else ("forward_dynamics", "mass_matrix"):
            for count in (1, 3, 20):
                args = [x[:count] for x in t.arguments(name, s)]
                try_all(lambda: t.results(robot, name, *args))
                if name == "mass_matrix":
                    try_all(lambda: t.results(robot, name, *(x.astype(np.float32) for x in args)))

    chain = fj.Robot(fj.models.chain(4), backend="compiled", unroll=False)  # three kernels in a row
    held = fj.Contacts(chain, [fj.PointContact(chain.joint_names[-1])], damping=0.1)
    s = random_state(chain, 100)
    before = sites
    for count in (1, 3, 100):
        args = [x[:count] for x in (s.q, s.v, s.a)]
        try_all(lambda: chain.constrained_dynamics_derivatives(*args, held))
    assert sites - before >= 3 * 4, "temporaries, and those of three stages"

    q = np.zeros(7)
    for _ in range(2):
        expected = robot.mass_matrix(q)  # the second time by the direct call
    step = robot.bind("mass_matrix")
    for call in (lambda: robot.mass_matrix(q), step):
        assert refused(call, lambda k: True)
        call()
    assert np.array_equal(step.M, expected)
    assert np.array_equal(robot.mass_matrix(q), expected)

    featherjet.jit.kernel.WORTH = 1e3
    many, robot.threads = np.zeros((8000, 7)), 2
    try_all(lambda: [robot.mass_matrix(many)])
    print(sites)
"""


def run(program: str) -> str:
    here = Path(__file__).parents[1]
    path = os.pathsep.join([str(here), str(Path(fj.__file__).parents[1])])
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=900, cwd=here,
        env={**os.environ, "PYTHONPATH": path}, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    return found.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the C library is found by its name on Linux")
def test_every_allocation_may_fail() -> None:
    assert int(run(PROGRAM)) > 20


class Sized(Border):
    """A border that allocates the product of three numbers, which it reads from its data."""

    def scratch(self, samples):
        w, b = self.w, self.b
        factors = [w.integer(b, self.data, I64(k)) for k in range(3)]
        memory, _ = self.allocate([I64(8), self.product(*factors), I64(8)])
        b.store(b.ptrtoint(memory, I64), self.data)  # or LLVM finds that nobody needs it
        return memory

    def compute(self, samples, s) -> None:
        pass


@pytest.mark.parametrize(
    "factors, fits",
    [((1, 2, 3), True), ((1000, 10, 1), True), ((2**32, 2**32, 1), False), ((2**31, 2**31, 2), False),
     ((2**63 - 1, 1, 1), False), ((2**62, 1, 1), False), ((2**60, 1, 1), False), ((2**50, 1, 1), False),
     ((2**31 + 1, 2**31 + 1, 4), False)],
)  # fmt: skip
def test_sizes_that_do_not_fit_are_refused(factors: tuple[int, ...], fits: bool) -> None:
    """2^32 2^32 = 0 and 8 2^61 = 0 in 64 bits: those would be small."""
    cpu = target()
    module = ir.Module("sizes")
    module.triple = cpu.triple
    samples = Sized(Lanes(module, Graph(), 1, DOUBLE), [], []).emit("samples")
    samples.linkage = "external"
    library = Library(compiled(cpu, sources(module)), cpu)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(library.address(samples.name))
    flags = ctypes.c_int64(0)
    address = ctypes.c_int64(ctypes.addressof(flags))
    args = (ctypes.c_void_p * 1)(ctypes.addressof(address))
    none, data = ctypes.c_int64(0), (ctypes.c_int64 * 3)(*factors)
    call(ctypes.addressof(args), ctypes.addressof(none), ctypes.addressof(none), ctypes.addressof(data))
    assert (flags.value == 0) == fits
    assert flags.value in (0, Flag.NO_MEMORY)
