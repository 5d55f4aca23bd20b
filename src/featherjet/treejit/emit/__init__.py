"""LLVM for rolled programs: loops over bodies, over pairs of dofs, and over columns."""
