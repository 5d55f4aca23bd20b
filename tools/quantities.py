"""Write the table of docs/quantities.md from the records in featherjet/algorithms/quantities.py."""

from __future__ import annotations

from pathlib import Path

from featherjet.algorithms.quantities import QUANTITIES, Axis, Quantity

PAGE = Path(__file__).parent.parent / "docs" / "quantities.md"
START = "| quantity |"
LENGTHS = {"q": "nq", "v": "nv", "dofs": "nv of the tree", "joints": "njoints", "parameters": "10 njoints"}
HEAD = "| quantity | inputs | results | options | code | what it is |"


def shape(axes: tuple[Axis, ...]) -> str:
    return "(" + ", ".join(LENGTHS.get(str(a), str(a)) for a in axes) + ("," if len(axes) == 1 else "") + ")"


def row(x: Quantity) -> str:
    inputs = ", ".join([*(i.name for i in x.inputs), *(["[fext]"] if x.forces else [])])
    results = "; ".join(f"{r.name} {shape(r.axes)}" for r in x.results)
    options = ", ".join([*x.options, *(["method"] if x.methods else [])])
    code = "shared or unrolled" if x.rolled else "shared" if x.contact_walk else "unrolled"
    return f"| `{x.name}` | {inputs} | {results} | {options} | {code} | {x.summary} |"


def table() -> str:
    return "\n".join([HEAD, "|---|---|---|---|---|---|", *map(row, QUANTITIES.values())]) + "\n"


def main() -> None:
    text = PAGE.read_text()
    PAGE.write_text(text[: text.index(START)] + table())


if __name__ == "__main__":
    main()
