"""Motions as tables."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from ..atomic import write_text
from ..model.model import Array, Model
from ..model.names import coordinate_names


def write_csv(
    path: Path, model: Model, t: Array, q: Array, v: Array, a: Array, tau: Array, overwrite: bool = True
) -> Path:
    """Write columns t, q:<name>, v:<name>, a:<name>, tau:<name>, one row for each time t (n,) [s].

    q is (n, nq); v, a and tau are (n, nv). Every number is written with enough digits to be read back unchanged.
    """
    q_names, v_names = coordinate_names(model)
    columns = {"q": q_names, "v": v_names, "a": v_names, "tau": v_names}
    rows = np.column_stack([t, q, v, a, tau])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["t", *(f"{letter}:{name}" for letter, names in columns.items() for name in names)])
    writer.writerows([repr(x) for x in row] for row in rows.tolist())
    return write_text(path, text.getvalue(), overwrite)
