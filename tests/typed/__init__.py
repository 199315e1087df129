"""Programs as users write them: type checkers take them without a complaint."""
