"""`python -m cliffwatch`: the same as the `cliffwatch` command."""

from cliffwatch.cli.main import main

main()
