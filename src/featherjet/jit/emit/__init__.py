"""LLVM for traced algorithms: loops over bodies and pairs, straight-line pieces, and their border to Python."""
