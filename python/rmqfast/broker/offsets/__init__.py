"""How far groups are, and how that is set back."""
