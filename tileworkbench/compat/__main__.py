"""`python -m tileworkbench.compat script.py [args]`: runs a script written for TileLang."""

import sys

from .script import main

sys.exit(main(sys.argv[1:]))
