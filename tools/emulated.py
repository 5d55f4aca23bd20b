"""Run tests on an emulated aarch64, and compare results with those of this machine.

    python tools/emulated.py FOLDER [TESTS ...]

FOLDER keeps a Debian root with Python and the packages that tests need, both for aarch64. Debian's qemu-user-static and
mmdebstrap are needed, but neither a container nor, apart from tests that start Python again, a registered emulator.
Packages have the versions of this environment, so that both sides differ in the processor alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
EMULATOR, DEBIAN, PYTHON = "qemu-aarch64-static", "bookworm", "3.11"
PACKAGES = ("numpy", "llvmlite", "rich", "scipy", "pytest", "hypothesis", "mpmath", "pin")
LIBRARIES = "python3,libpython3-stdlib,libstdc++6,libgcc-s1,libgomp1,zlib1g,libexpat1"
GLIBC = ("manylinux_2_28", "manylinux_2_27", "manylinux2014", "manylinux_2_17")  # whose wheels this Debian runs
TESTS = ("tests/math", "tests/jit", "tests/algorithms", "tests/robot")
BITS = """\
from featherjet.lab import bits

for name, compute in bits.groups(("arm", "quadruped"), seconds=0.5):
    print(name, bits.digest(compute()), sep=": ", flush=True)
"""


def main(folder: Path, tests: list[str]) -> int:
    for program in (EMULATOR, "mmdebstrap"):
        if shutil.which(program) is None:
            sys.exit(f"{program} is missing: apt-get install qemu-user-static mmdebstrap")
    root, packages = folder / "root", folder / "packages"
    if not root.exists():
        make_root(root)
    if not packages.exists():
        install(packages)
    command, environment = emulated(folder)
    compare(command, environment)
    pytest = [*command, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(tests or TESTS)]
    return subprocess.run(pytest, cwd=ROOT, env=environment, check=False).returncode


def make_root(root: Path) -> None:
    """Unpack Debian packages; none of their scripts has to run."""
    part = root.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    command = ["mmdebstrap", "--quiet", "--arch=arm64", "--variant=extract", f"--include={LIBRARIES}", DEBIAN, part]
    subprocess.run([str(x) for x in command], check=True)
    part.rename(root)


def install(packages: Path) -> None:
    """Unpack wheels for aarch64, which this machine's own pip finds."""
    part = packages.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    platforms = [x for glibc in GLIBC for x in ("--platform", f"{glibc}_aarch64")]
    wanted = [f"{name}=={version(name)}" for name in PACKAGES]
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(part), "--only-binary", ":all:"]
    about = ["--implementation", "cp", "--python-version", PYTHON, *platforms]
    subprocess.run([*command, *about, *wanted], check=True)
    own = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(part), str(ROOT)]
    subprocess.run(own, check=True)  # for its metadata; the sources are those of this folder
    part.rename(packages)


def emulated(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The command of an emulated Python, and its environment."""
    root, packages = folder / "root", folder / "packages"
    pinocchio = packages / "cmeel.prefix" / "lib" / f"python{PYTHON}" / "site-packages"
    code = folder / "code"
    code.mkdir(mode=0o700, exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "QEMU_LD_PREFIX": str(root),
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", packages, pinocchio))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "FEATHERJET_CACHE_DIR": str(code),
        "FEATHERJET_TEST_CACHE": str(code),
    }
    return [EMULATOR, str(root / "usr" / "bin" / f"python{PYTHON}")], environment


def compare(command: list[str], environment: dict[str, str]) -> None:
    """Compute a part of what `featherjet check --bits` computes, here and there; exit unless all bits are the same."""
    here = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ours, theirs = (
        subprocess.run([*python, "-c", BITS], env=env, check=True, capture_output=True, text=True).stdout
        for python, env in (([sys.executable], here), (command, environment))
    )
    print(theirs, end="", flush=True)
    if ours != theirs:
        sys.exit(f"aarch64 computes something else than this machine:\n{ours}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
