"""`python -m rmqfast.cli`."""

from rmqfast.cli import main

if __name__ == "__main__":
    main()
