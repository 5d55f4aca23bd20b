"""What PyTorch tells nobody in public: whether somebody differentiates, maps or traces a call.

Plain tensors may go straight to machine code if nobody does. A version of PyTorch that lacks one of the first two has
all calls take the general way.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch.autograd import forward_ad

transforming = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)  # of torch.func
modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)  # of tracing and fake tensors, how many


def ahead() -> bool:
    """Whether tensors may have changes for forward-mode derivatives."""
    return forward_ad._current_level >= 0


def with_changes() -> AbstractContextManager[None]:
    """Forward-mode derivatives of what is computed within, also inside a rule for them."""
    return forward_ad._set_fwd_grad_enabled(True)
