"""What is released: whether it holds what it should, and works where nothing but Python is."""
