"""A compiler that knows no robots: trace -> graph -> LLVM -> NumPy gufunc."""
