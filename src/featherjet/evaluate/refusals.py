"""Results that are refused although the inputs are valid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..algorithms.quantities import Quantity
from ..errors import IndefiniteMassMatrix, NonFiniteResult
from ..model.model import Array, Model


def in_single(record: Quantity, results: Sequence[Array]) -> tuple[Array, ...]:
    """Results of double precision, rounded; raises NonFiniteResult where single precision has no room for them."""
    with np.errstate(over="ignore"):
        rounded = tuple(x.astype(np.float32) for x in results)
    refuse_nonfinite(record, rounded)
    return rounded


def refuse_nonfinite(record: Quantity, results: Sequence[Array]) -> None:
    """Raise NonFiniteResult if a result is infinite or NaN, unless NumPy is told to ignore overflow."""
    if np.geterr()["over"] == "ignore":
        return
    for result, x in zip(record.results, results, strict=True):
        if not np.isfinite(x).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(x))[0])
            cut = max(x.ndim - len(result.axes), 0)
            sample = f" at sample {where[:cut]}" if cut else ""
            raise NonFiniteResult(
                f"{record.name}: {result.name}{list(where[cut:]) or ''} is {x[where]}{sample}: the inputs, or the "
                f"numbers of the model, are too large for {x.dtype}. To get it all the same, compute under "
                "np.errstate(over='ignore')"
            )


def refuse_indefinite(model: Model, M: Array) -> None:
    """Raise IndefiniteMassMatrix at the first sample whose mass matrix (..., nv, nv) is not positive definite."""
    try:
        np.linalg.cholesky(M)  # takes a quarter of the time of eigenvalues, but does not say which sample fails
        return
    except np.linalg.LinAlgError:
        pass
    least = np.linalg.eigvalsh(M)[..., 0]
    if (least <= 0).any():
        sample = tuple(int(i) for i in np.argwhere(least <= 0)[0])
        where = f" at sample {sample}" if sample else ""
        joint = next(j.name for j in model.joints if not j.body.definite)
        raise IndefiniteMassMatrix(
            f"robot {model.name!r}: the mass matrix is not positive definite{where}: the body of joint "
            f"{joint!r} is physically impossible. Correct its mass and inertia; "
            "fj.load(..., strict=True) says what is wrong"
        )
