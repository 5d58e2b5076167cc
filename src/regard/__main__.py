"""`python -m regard`: the program, as torchrun and environments without scripts start it."""

from regard.cli.app import main

if __name__ == "__main__":
    main()
