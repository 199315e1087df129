"""The data plane and the live store, as the control plane sees them."""
