"""Consumer offsets: stored in the data plane, saved by the control plane."""
