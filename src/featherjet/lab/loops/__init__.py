"""Algorithms on trees of one-dof joints as loops over bodies, in the loop language (`math.loops`).

`LoopScan` runs the walks of an algorithm as loops, one after the other on one state, as the papers write them: with
inner loops over the dofs above or below a joint where sets of partials are carried along, and over columns.
scan      the walks
bodies    what they do at one body
matrices  loops over pairs of dofs, products and solutions
rows      responses to torques
memory    where numbers lie: only those that a result needs are stored
tables    the tree, as tables of integers and numbers
code      the function that is being written, in parts
kernel    the machine code of an algorithm
"""
