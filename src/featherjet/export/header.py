"""The C header of an export: functions, their arrays, and the conventions of the numbers in them."""

from __future__ import annotations

from collections.abc import Sequence

from ..algorithms.quantities import FEXT
from ..jit.flags import Flag
from .functions import Argument, Function, Package

FLAGS = {
    Flag.LARGE: "an input is not finite, or so large that a result may not be",
    Flag.NOT_UNIT: "a quaternion or cosine-sine pair was not of norm one; it was normalised",
    Flag.SMALL_MARGIN: "the mass matrix or the contacts are close to singular; results have few digits or none",
}


def ctype(package: Package) -> str:
    """C's name of the numbers."""
    return package.kind.name


def comment(text: str) -> str:
    """A text that may stand in a comment of C."""
    return "".join(c if c.isprintable() else "?" for c in text).replace("*/", "*_/").replace("/*", "/_*")


def header(package: Package) -> str:
    guard = f"{package.name}_h".upper()
    macros = [f"#define {package.name.upper()}_{flag.name} {int(flag)} /* {text} */" for flag, text in FLAGS.items()]
    return "\n".join(
        [
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            *described(package),
            "",
            "#include <stdint.h>",
            "",
            *sizes(package),
            "",
            "/* What functions return: 0, or the sum of what is wrong with at least one sample. */",
            *macros,
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            *(line for f in package.functions for line in declared(package, f)),
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            f"#endif /* {guard} */",
            "",
        ]
    )


def described(package: Package) -> list[str]:
    """The comment at the top: conventions, and the order of joints."""
    model = package.model
    lines = [
        f"Robot {model.name}: {model.njoints} joints, nq {model.nq}, nv {model.nv}; compiled by featherjet for "
        f"{package.target.name}.",
        "",
        "Arrays are dense and row-major: entry (i, j) of an n x m matrix is x[i * m + j]. SI units.",
        "q is a configuration (nq); v, a, tau have one entry for each degree of freedom (nv). Derivatives by q live in",
        "the tangent space: column k is the rate along degree of freedom k.",
        "Free joints: q = x y z and quaternion x y z w; v = linear, then angular velocity, in the body's own frame.",
        "Spherical joints: quaternion x y z w, angular velocity in the body's frame. Planar joints: x y cos sin; v in",
        "the body's frame. Unlimited revolute joints (continuous): cos sin. Quaternions are normalised before use.",
    ]
    if any(x.name == FEXT.name for f in package.functions for x in f.passed):
        lines.append("fext: force and moment on each joint's body, in that joint's frame, in the order of the joints.")
    lines += [
        "Angles beyond 823549 rad give NaN. No function allocates memory, keeps state, or calls any library but for",
        "memcpy and memset. Give each thread its own workspace, of any alignment.",
        "",
        "Joints in order, with their kinds and their entries in q and v:",
    ]
    own = {part.joint.name: (part.q, part.v) for part in model.parts}
    width = max(len(joint.name) for joint in model.joints)
    for k, joint in enumerate(model.joints):
        q, v = own.get(joint.name, (None, None))
        where = f"q[{span(q)}]  v[{span(v)}]" if q is not None and v is not None else "mimics another joint"
        lines.append(f"  {k:3d}  {joint.name:{width}s}  {joint.kind.name:11s}  {where}")
    return ["/*", *(f" * {comment(line)}".rstrip() for line in lines), " */"]


def span(part: slice) -> str:
    return str(part.start) if part.stop == part.start + 1 else f"{part.start}..{part.stop - 1}"


def sizes(package: Package) -> list[str]:
    name, model = package.name.upper(), package.model
    return [
        f"#define {name}_NQ {model.nq}",
        f"#define {name}_NV {model.nv}",
        f"#define {name}_JOINTS {model.njoints}",
        f"#define {name}_WORKSPACE {package.workspace} /* bytes that suffice for every function */",
    ]


def declared(package: Package, f: Function) -> list[str]:
    """The comment, the sizes and the declarations of a function."""
    macro = f.symbol.upper()
    lines = [f"/* {comment(f.record.summary)}", *(f" * {text}" for text in fixed(f)), " */"]
    lines.append(f"#define {macro}_WORKSPACE {f.workspace}")
    lines.append(f"int {f.symbol}({', '.join(parameters(package, f, sized=True))}, void *workspace);")
    if f.batch_workspace:
        lines += [
            "/* The same for count samples, whose arrays follow each other. */",
            f"#define {macro}_BATCH_WORKSPACE {f.batch_workspace}",
            f"int {f.symbol}_batch(int64_t count, {', '.join(parameters(package, f, sized=False))}, void *workspace);",
        ]
    return [*lines, ""]


def fixed(f: Function) -> list[str]:
    """The names and shapes of a function's arrays, for its comment."""
    return [f"{x.name}: {shown(x)}" for x in (*f.passed, *f.outputs)]


def shown(x: Argument) -> str:
    return " x ".join(map(str, x.shape)) or "one number"


def parameters(package: Package, f: Function, sized: bool) -> Sequence[str]:
    """The arrays as parameters of C: inputs, then results."""
    number = ctype(package)

    def array(x: Argument) -> str:
        return f"{x.name}[{x.size}]" if sized else f"*{x.name}"

    return [*(f"const {number} {array(x)}" for x in f.passed), *(f"{number} {array(x)}" for x in f.outputs)]
