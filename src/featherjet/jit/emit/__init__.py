"""LLVM for traced functions: straight-line pieces, the loop over samples around them, and calls from Python."""
