"""What a stranger, or one client too many, can do to a broker: bounded programs, and one table of what came of them."""
