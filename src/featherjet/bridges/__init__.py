"""What the bridges to other frameworks (JAX, PyTorch, CasADi) share: differentiable functions of a robot.

`table` has a record for each function, with its derivatives; `rules` are those derivatives, written for arrays of any
framework; `ambient` takes changes of q to its tangent space and back; `robots` finds the machine code.
"""
