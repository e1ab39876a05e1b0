"""The console script and ``python -m torchmod``."""

import os
import sys


def main() -> int:
    """Run the command line and give the exit status."""
    try:
        from torchmod.cli import main as run
    except KeyboardInterrupt:
        return 130
    return run(sys.argv[1:])


if __name__ == "__main__":
    # `python -m` puts the working directory first: a user's copy.py or rich.py must never be imported
    if not sys.flags.safe_path and sys.path and os.path.abspath(sys.path[0]) == os.getcwd():
        del sys.path[0]
    sys.exit(main())
