"""C text around exported code: CasADi's interface of compiled functions.

For a function NAME there are NAME, jac_NAME, adj1_NAME and jac_adj1_NAME, which `casadi.external` finds by these names,
and for each the functions that tell sparsity and memory. `casadi.CodeGenerator` and acados link them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .recipes import Recipe
from .sparsity import compressed_text

HEAD = """\
/* Functions of a robot for CasADi, compiled by featherjet: casadi.external("{name}", library). */
#include <stddef.h>

#ifndef casadi_real
#define casadi_real double
#endif
#ifndef casadi_int
#define casadi_int long long int
#endif
#if defined(_WIN32) || defined(__CYGWIN__)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

static const casadi_real *given(const casadi_real *x, casadi_real **w, casadi_int size) {{
  if (x) return x;
  casadi_real *zeros = *w;
  for (casadi_int k = 0; k < size; k++) zeros[k] = 0;
  *w += size;
  return zeros;
}}

static casadi_real *wanted(casadi_real *x, casadi_real **w, casadi_int size) {{
  if (x) return x;
  x = *w;
  *w += size;
  return x;
}}
"""


@dataclass(frozen=True)
class GlueStep:
    """A call of exported code: its symbol, workspace in bytes, and the numbers and sizes of arguments and results."""

    symbol: str
    workspace: int
    takes: Sequence[tuple[int, int]]
    gives: Sequence[tuple[int, int]]


def glue(name: str, functions: Sequence[tuple[str, Recipe, Sequence[GlueStep]]], states: int) -> str:
    """The C file of (name, Recipe, its steps) for each function."""
    return "\n".join([HEAD.format(name=name), *(one(*f, states) for f in functions)])


def one(name: str, recipe: Recipe, steps: Sequence[GlueStep], states: int) -> str:
    inputs, results = recipe.inputs, recipe.results
    lines = [*(declared(step, states) for step in steps)]
    for side, arrays in (("in", inputs), ("out", results)):
        for k, (_, sparsity) in enumerate(arrays):
            lines.append(f"static const casadi_int {name}_s{side}{k}[] = {{{compressed_text(sparsity)}}};")
        cases = " ".join(f"case {k}: return {name}_s{side}{k};" for k in range(len(arrays)))
        names = " ".join(f'case {k}: return "{array}";' for k, (array, _) in enumerate(arrays))
        lines += [
            f"EXPORTED casadi_int {name}_n_{side}(void) {{ return {len(arrays)}; }}",
            f"EXPORTED const casadi_int *{name}_sparsity_{side}(casadi_int i) {{ switch (i) {{ {cases} }} return 0; }}",
            f"EXPORTED const char *{name}_name_{side}(casadi_int i) {{ switch (i) {{ {names} }} return 0; }}",
        ]
    work = max((needed(step) for step in steps), default=0)
    lines += [
        f"EXPORTED int {name}_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, casadi_int *sz_w) {{",
        f"  if (sz_arg) *sz_arg = {len(inputs)};",
        f"  if (sz_res) *sz_res = {len(results)};",
        "  if (sz_iw) *sz_iw = 0;",
        f"  if (sz_w) *sz_w = {work};",
        "  return 0;",
        "}",
        f"EXPORTED void {name}_incref(void) {{}}",
        f"EXPORTED void {name}_decref(void) {{}}",
        f"EXPORTED int {name}(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem) {{",
        "  (void)iw; (void)mem; (void)arg; (void)res; (void)w;",
        *(line for step in steps for line in called(step, states)),
        "  return 0;",
        "}",
        "",
    ]
    return "\n".join(lines)


def needed(step: GlueStep) -> int:
    """Numbers of work memory: zeros for what is not given, room for what is not wanted, the workspace."""
    return sum(size for _, size in (*step.takes, *step.gives)) + -(-step.workspace // 8)


def declared(step: GlueStep, states: int) -> str:
    arrays = ["const casadi_real *"] * len(step.takes) + ["casadi_real *"] * len(step.gives)
    count = ["casadi_int"] if states > 1 else []
    return f"int {step.symbol}({', '.join([*count, *arrays, 'void *'])});"


def called(step: GlueStep, states: int) -> list[str]:
    if not step.gives:
        return []
    arrays = [f"given(arg[{k}], &at, {size})" for k, size in step.takes]
    lines = [
        f"  if ({' || '.join(f'res[{k}]' for k, _ in step.gives)}) {{",
        "    casadi_real *at = w;",
        *(f"    const casadi_real *x{j} = {x};" for j, x in enumerate(arrays)),
        *(f"    casadi_real *y{j} = wanted(res[{k}], &at, {size});" for j, (k, size) in enumerate(step.gives)),
    ]
    names = [*(f"x{j}" for j in range(len(step.takes))), *(f"y{j}" for j in range(len(step.gives)))]
    count = [str(states)] if states > 1 else []
    return [*lines, f"    {step.symbol}({', '.join([*count, *names, 'at'])});", "  }"]
