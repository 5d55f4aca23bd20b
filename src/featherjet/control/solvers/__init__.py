"""Solvers: FDDP, control limits, constraints, receding horizons, and what they find."""
