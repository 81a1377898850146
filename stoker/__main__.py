"""`python -m stoker`: see `stoker._src.cli.main`."""

import sys

from stoker._src.cli.main import main

sys.exit(main())
