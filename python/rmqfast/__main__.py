"""`python -m rmqfast`: the command line."""

from rmqfast.cli import main

if __name__ == "__main__":
    main()
