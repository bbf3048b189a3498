"""`python -m benchmarks`: the data-plane benchmark."""

import sys

from benchmarks.data_plane import main

if __name__ == "__main__":
    sys.exit(main())
