"""Layer 4: trace -> graph -> LLVM -> NumPy gufunc. It turns algorithms into machine code and knows no robotics."""
