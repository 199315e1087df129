"""The ledger of pulls: who was handed which message by which filter, who moved offsets, and who wanted what."""
