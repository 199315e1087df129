"""How name servers hear of the broker."""
