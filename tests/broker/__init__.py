"""Tests of the control plane of a broker."""
