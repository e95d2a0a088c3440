"""`python -m tileworkbench` is the `tileworkbench` command."""

import sys

from tileworkbench.cli import main

if __name__ == "__main__":
    sys.exit(main())
