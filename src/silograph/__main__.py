"""The command `silograph`, and `python -m silograph`."""

import sys


def main() -> None:
    """Run the command line, or say how to get it."""
    try:
        from silograph.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("The command line needs typer and rich. Install them with: pip install 'silograph[cli]'")
    app()


if __name__ == "__main__":
    main()
