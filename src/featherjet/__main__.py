"""`python -m featherjet` is the command `featherjet`."""

import sys

from .cli import main

sys.exit(main())
