"""The loop language: plain Python functions with loops, run by NumPy as their definition and traced as machine code.

`math/loops.py` says how to write one, and is its meaning on arrays.

index      integers: sizes, loop variables, entries of tables
program    the statements
trace      records a function as a program
verify     whether a program is well-formed
text       programs for people
interpret  programs on arrays, statement by statement
values     the values of their machine code
lower      programs as LLVM
replay     recorded straight-line code inside a function
products   the schedule of matrix products
spec       what a kernel is made of
kernel     functions of the language as kernels, for batches of any shape
emit       the loop over samples around a function
"""
