"""Benchmarks, and the experiments of the papers; only the command line imports this package."""
