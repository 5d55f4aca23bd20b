"""Measuring: featherjet beside its peers, in one run, on states and results that are checked first.

timing      who takes how long: alternating rounds, pinned to one core, medians with quartiles
peers       our models as Pinocchio's and MuJoCo's
contenders  every way to compute a quantity for a batch of states; each is checked before it is timed
operations  how many operations a sample takes, counted in the traced program
peak        how many the core can do
robots      which robots, and what they are called
run         all of it for one robot; and how the cost grows with size
"""
