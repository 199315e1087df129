"""The recipes of `docs/recipes`, run in an environment of their own."""
