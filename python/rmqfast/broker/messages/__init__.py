"""Messages that the control plane itself reads, stores and sends back."""
