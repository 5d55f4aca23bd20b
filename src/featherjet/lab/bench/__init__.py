"""Benchmarks of featherjet beside its peers, in one run, on the same states; results are compared before timing.

quantities       what is timed: inputs, results, and the peers' functions
timing           alternating rounds, pinned to one core, medians with quartiles
peers            featherjet's models as Pinocchio's and MuJoCo's
checking         states, contenders with their results, and the comparison before timing
contenders       every way to compute a quantity for a batch of states
peer_contenders  those of Pinocchio and MuJoCo
contacts         the same for dynamics under contact
standing         steps of a simulation beside MuJoCo's
peak             the most operations that the core can do
robots           the robots to measure
run              all of it for one robot; and how the cost grows with size
"""
