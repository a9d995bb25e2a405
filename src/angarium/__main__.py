"""`python -m angarium` is the `angarium` command."""

import sys

from angarium.cli.main import main

sys.exit(main())
