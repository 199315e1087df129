"""Histories of clusters whose brokers keep no ledger, sampled from outside, and what follows from them."""
