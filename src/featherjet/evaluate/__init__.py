"""What evaluates quantities: the plain reference on NumPy arrays, compiled kernels, and the evaluator that chooses."""
