"""Evaluates quantities: the NumPy reference, and the evaluator that chooses between it and compiled kernels."""
