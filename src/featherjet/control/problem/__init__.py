"""Problems: phases as users write them, the problem that they make, and the horizon that solvers see of it."""
