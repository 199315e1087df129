"""Messages that the control plane reads, stores and sends back itself."""
