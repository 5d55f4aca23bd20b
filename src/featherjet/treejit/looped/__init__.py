"""Any algorithm as loops, on one sample at a time: also those that carry sets of partials or many columns along.

The lab times algorithms in this form on robots of any size; quantities that users ask for are compiled by `rolled.py`.
tracing   what the walks of an algorithm do, recorded: `LoopedScan`, and `WideScan` for columns
program   the recorded loops
walks     LLVM for walks with inner loops over sets or columns
product   LLVM for products of matrices
sparse    LLVM for factors of the mass matrix and solves with them
kernel    loops one after the other, for each sample of a batch
"""
