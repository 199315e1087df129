"""Consumer offsets. The data plane keeps them, and the control plane saves them."""
