"""``python -m urlab``: the command line."""

from urlab.cli import main

if __name__ == "__main__":
    main()
