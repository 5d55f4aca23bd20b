"""Exported code against Python: compiled, linked and run, on this machine and on others by emulation.

Expected numbers come from the NumPy reference, on which tests run; the exported code never went through it.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from compilers import built, needed, run, zig
from featherjet.errors import FeatherjetError, InputError
from featherjet.export import targets
from featherjet.jit.engine import targets as runnable
from helpers import agree, random_state
from trees import small_tree

ARM = fj.models.arm()
QUANTITIES = ("inverse_dynamics", "forward_dynamics_derivatives", "frame_velocity", "integrate")
SMALL = ("inverse_dynamics", "forward_dynamics")


TREE = small_tree()


def differences(said: str) -> list[float]:
    """The differences that an example prints, all of them good."""
    assert "WRONG" not in said
    return [float(x) for x in re.findall(r"difference (\S+) of", said)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rolled code of a tree for this machine, with external forces and batches."""
    robot = fj.Robot(TREE)
    out = tmp_path_factory.mktemp("rolled")
    robot.export(*QUANTITIES, out=out, fext=True, frame=robot.frame_names[-1], batch=True)
    return out


@pytest.fixture(scope="module")
def library(folder: Path) -> ctypes.CDLL:
    run(needed("gcc"), "-shared", "-o", folder / "tree.so", folder / "tree.o")
    return ctypes.CDLL(str(folder / "tree.so"))


def test_example_in_c(folder: Path) -> None:
    found = differences(run(built([needed("gcc")], folder, "tree")))
    assert len(found) == 2 * 6  # results of all quantities, for one sample and for batches
    assert max(found) < 1e-11  # of accelerations of a few hundred


def test_no_library_is_needed(folder: Path) -> None:
    names = {line.split()[-1] for line in run(needed("nm"), "-u", folder / "tree.o").splitlines()}
    assert names <= {"memcpy", "memset"}
    visible = re.findall(r" [TDBR] (\S+)", run(needed("nm"), folder / "tree.o"))
    assert sorted(visible) == sorted(f"tree_{q}{end}" for q in QUANTITIES for end in ("", "_batch"))


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_headers_in_cplusplus(folder: Path, tmp_path: Path, standard: str) -> None:
    """Views of arrays, spans and pointers; the header itself is C++ as strict compilers want it."""
    source = tmp_path / "main.cpp"
    nq, nv = TREE.nq, TREE.nv
    source.write_text(f"""
        #include <vector>
        #include "tree.hpp"
        int main() {{
          static_assert(tree::nq == {nq} && tree::nv == {nv});
          std::array<double, tree::nq> q{{}}, end{{}};
          double step[tree::nv] = {{}};
          {"".join(f"q[{part.q.start + u.stop - 1}] = 1;" for part in TREE.parts for u in part.manifold.units)}
          const auto fixed = q;
          tree::Workspace workspace;
          int wrong = tree::integrate(fixed, step, end, workspace);
          std::vector<double> more(tree::nq);
          wrong |= tree::integrate(q, step, tree::View<double, tree::nq>(more.data()), workspace);
        #if defined(__cpp_lib_span)
          std::span<const double, tree::nq> from(q);
          wrong |= tree::integrate(from, step, std::span<double, tree::nq>(end), workspace);
        #endif
          for (std::size_t k = 0; k < tree::nq; k++) wrong |= end[k] != q[k] || more[k] != q[k];
          return wrong;
        }}""")
    strict = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-std={standard}")
    run(needed("g++"), *strict, "-I", folder, source, folder / "tree.o", "-o", tmp_path / "main")
    run(tmp_path / "main")


def test_cmake_builds_and_tests(folder: Path, tmp_path: Path) -> None:
    needed("gcc")
    run(needed("cmake"), "-S", folder, "-B", tmp_path)
    run("cmake", "--build", tmp_path)
    run("ctest", "--test-dir", tmp_path)


def call(function: Any, *given: int | np.ndarray, workspace: int, shift: int = 0) -> int:
    """Call a C function with a workspace that begins anywhere; nothing around it may change."""
    memory = np.full(workspace + 256 + shift, 0xA5, np.uint8)
    start = 128 + shift
    pointers = [ctypes.c_int64(x) if isinstance(x, int) else ctypes.c_void_p(x.ctypes.data) for x in given]
    flags = function(*pointers, ctypes.c_void_p(memory.ctypes.data + start))
    assert (memory[:start] == 0xA5).all(), "the code wrote before its workspace"
    assert (memory[start + workspace :] == 0xA5).all(), "the code wrote beyond its workspace"
    return flags


def macro(folder: Path, name: str) -> int:
    found = re.search(rf"#define {name} (\d+)", (folder / "tree.h").read_text())
    assert found
    return int(found[1])


@pytest.mark.parametrize("count", [1, 2, 9, 33])
@pytest.mark.parametrize("shift", [0, 1, 24])
def test_batches_and_workspaces(folder: Path, library: ctypes.CDLL, count: int, shift: int) -> None:
    robot = fj.Robot(TREE)
    s = random_state(robot, count)
    out = [np.empty((count, robot.nv, robot.nv)) for _ in range(3)]
    size = macro(folder, "TREE_FORWARD_DYNAMICS_DERIVATIVES_BATCH_WORKSPACE")
    f = library.tree_forward_dynamics_derivatives_batch
    assert call(f, count, s.q, s.v, s.a, s.fext, *out, workspace=size, shift=shift) == 0
    for found, want in zip(out, robot.forward_dynamics_derivatives(s.q, s.v, s.a, s.fext), strict=True):
        agree(found, want, 1e-12)


def test_flags(folder: Path, library: ctypes.CDLL) -> None:
    robot = fj.Robot(TREE)
    s = random_state(robot, 1)
    tau, size = np.empty(robot.nv), macro(folder, "TREE_INVERSE_DYNAMICS_WORKSPACE")

    def flags(q: np.ndarray, v: np.ndarray) -> int:
        return call(library.tree_inverse_dynamics, q, v, s.a, s.fext, tau, workspace=size)

    assert flags(s.q, s.v) == 0
    want = tau.copy()
    v = s.v.copy()
    v[0, 0] = np.nan
    assert flags(s.q, v) == macro(folder, "TREE_LARGE")
    assert flags(3 * s.q, s.v) & macro(folder, "TREE_NOT_UNIT")
    assert flags(s.q, s.v) == 0
    agree(tau, want, 0.0, "nothing remains of earlier calls")


def test_angles_beyond_reach_are_not_numbers(tmp_path: Path) -> None:
    """In double precision to half a million radians; single precision goes to double on the way there."""
    robot = fj.Robot(ARM)
    for dtype, far in (("float64", 8e5), ("float32", 5e5)):
        robot.export("gravity", out=tmp_path, dtype=dtype, name=f"arm_{dtype}")
        (tmp_path / "CMakeLists.txt").unlink()
        run(needed("gcc"), "-shared", "-o", tmp_path / f"{dtype}.so", tmp_path / f"arm_{dtype}.o")
        f = getattr(ctypes.CDLL(str(tmp_path / f"{dtype}.so")), f"arm_{dtype}_gravity")
        found = np.empty(robot.nv, dtype)
        for start, finite in ((far, True), (1e6, False)):
            q = np.full(robot.nq, start).astype(dtype)
            call(f, q, found, workspace=1 << 16)
            assert np.isfinite(found).all() == finite
            if finite:
                agree(found, robot.gravity(q.astype(float)), 1e-6 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_unrolled_code(tmp_path: Path, dtype: str) -> None:
    fj.Robot(ARM, unroll=True).export(*SMALL, out=tmp_path, dtype=dtype)
    found = differences(run(built([needed("gcc")], tmp_path, "arm")))
    assert max(found) < (1e-11 if dtype == "float64" else 1e-2)


def test_contacts(tmp_path: Path) -> None:
    """Derivatives with contacts are a chain of three kernels, which call each other through constants."""
    robot = fj.Robot(fj.models.quadruped())
    held = fj.Contacts(robot, [fj.PointContact(name) for name in robot.frame_names if name.endswith("foot")][:2])
    robot.export("constrained_dynamics", "constrained_dynamics_derivatives", out=tmp_path, contacts=held, batch=True)
    found = differences(run(built([needed("gcc")], tmp_path, "quadruped")))
    assert len(found) == 2 * (2 + 6)
    assert max(found) < 1e-9  # forces of hundreds of newtons over a contact matrix of two feet


EMULATED = {
    "aarch64": ("aarch64-linux-gnu-gcc", "qemu-aarch64-static"),
    "riscv64": ("riscv64-linux-gnu-gcc", "qemu-riscv64-static"),
    "armv7": ("arm-linux-gnueabihf-gcc", "qemu-arm-static"),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("target", EMULATED)
def test_other_machines(tmp_path: Path, target: str, dtype: str) -> None:
    compiler, emulator = EMULATED[target]
    needed(emulator)
    quantity = "mass_matrix" if dtype == "float64" else "forward_dynamics"
    fj.Robot(TREE).export(quantity, out=tmp_path, target=target, dtype=dtype, batch=True)
    found = differences(run(emulator, built([needed(compiler)], tmp_path, "tree", "-static")))
    assert max(found) < (1e-11 if dtype == "float64" else 1e-2)


def test_web_assembly(tmp_path: Path) -> None:
    """Without any library: the page gives memory, memcpy and memset."""
    robot = fj.Robot(TREE)
    robot.export("forward_dynamics", out=tmp_path, target="wasm32")
    s = random_state(robot, 1)
    ends = ("--no-entry", "--export=tree_forward_dynamics", "--import-memory", "--allow-undefined")
    run(*zig(), "wasm-ld", *ends, tmp_path / "tree.o", "-o", tmp_path / "tree.wasm")
    places = {"q": 1 << 17, "v": (1 << 17) + 1024, "tau": (1 << 17) + 2048, "a": (1 << 17) + 3072, "w": 1 << 18}
    given = {"q": s.q[0].tolist(), "v": s.v[0].tolist(), "tau": s.a[0].tolist()}
    script = tmp_path / "run.mjs"
    script.write_text(f"""
        import {{ readFileSync }} from "node:fs";
        const memory = new WebAssembly.Memory({{ initial: 64 }});
        const bytes = new Uint8Array(memory.buffer);
        const env = {{
          memory,
          memcpy: (to, from, size) => {{ bytes.copyWithin(to, from, from + size); return to; }},
          memset: (to, value, size) => {{ bytes.fill(value, to, to + size); return to; }},
        }};
        const {{ instance }} = await WebAssembly.instantiate(readFileSync("{tmp_path}/tree.wasm"), {{ env }});
        const at = {json.dumps(places)}, given = {json.dumps(given)};
        const view = (name, size) => new Float64Array(memory.buffer, at[name], size);
        for (const name in given) view(name, given[name].length).set(given[name]);
        const flags = instance.exports.tree_forward_dynamics(at.q, at.v, at.tau, at.a, at.w);
        console.log(JSON.stringify([flags, Array.from(view("a", {robot.nv}))]));
    """)
    flags, a = json.loads(run(needed("node"), script))
    assert flags == 0
    agree(np.array(a), robot.forward_dynamics(s.q[0], s.v[0], s.a[0]), 1e-12)


@pytest.mark.parametrize("target", [name for name in targets.names() if name not in EMULATED])
def test_every_target_makes_an_object(tmp_path: Path, target: str) -> None:
    paths = fj.Robot(ARM).export("gravity", out=tmp_path, target=target)
    machine = {"wasm32": b"\0asm"}.get(target, b"\x7fELF")
    assert paths[0].read_bytes()[:4] == machine
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    if target in runnable():
        assert max(differences(run(built([needed("gcc")], tmp_path, "arm")))) < 1e-11


def test_equal_calls_write_equal_bytes(tmp_path: Path) -> None:
    """In two processes, whose sets and dictionaries have other orders."""
    for seed in "12":
        out = str(tmp_path / seed)
        command = ("export", "arm", "--quantity", *SMALL, "--target", "x86-64-v3", "--out", out)
        run(sys.executable, "-m", "featherjet", *command, PYTHONHASHSEED=seed)
    for path in (tmp_path / "1").iterdir():
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "arm.h").write_text("mine")
    with pytest.raises(InputError, match=r"arm\.h: exists"):
        fj.Robot(ARM).export("gravity", out=tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["arm.h"]
    fj.Robot(ARM).export("gravity", out=tmp_path, overwrite=True)
    assert "arm_gravity" in (tmp_path / "arm.h").read_text()


@pytest.mark.parametrize(
    ("quantities", "options", "what"),
    [
        ((), {}, "at least one quantity"),
        (("gravty",), {}, "did you mean: gravity"),
        (("gravity",), {"target": "x86-64-v9"}, "x86-64-v3"),
        (("gravity",), {"dtype": "float16"}, "float32"),
        (("gravity",), {"name": "while"}, "--name"),
        (("gravity",), {"name": "\u4e2d"}, "--name"),
        (("jacobian",), {}, "frame="),
        (("jacobian",), {"frame": "nowhere"}, "nowhere"),
        (("constrained_dynamics",), {}, "contacts="),
    ],
)
def test_mistakes_are_named(tmp_path: Path, quantities: tuple, options: dict, what: str) -> None:
    with pytest.raises(FeatherjetError, match=re.escape(what)):
        fj.Robot(ARM).export(*quantities, out=tmp_path / "new", **options)
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is not a folder"):
        fj.Robot(ARM).export("gravity", out=tmp_path / "file")


def test_other_conventions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="with_convention"):
        fj.Robot(TREE).with_convention("drake").export("gravity", out=tmp_path)


def test_names_of_robots_become_names_in_c(tmp_path: Path) -> None:
    builder = fj.ModelBuilder("2 Arms (v1.0)")
    builder.add_joint("end */ of comment", "revolute")
    builder.add_body("end */ of comment", mass=1.0, inertia=np.eye(3))
    paths = fj.Robot(builder.build()).export("gravity", out=tmp_path)
    assert paths[0].name == "robot_2_arms_v1_0.o"
    run(built([needed("gcc")], tmp_path, "robot_2_arms_v1_0"))
