"""`python -m textor` is the same as `textor`."""

import sys

from textor.cli import main

sys.exit(main())
