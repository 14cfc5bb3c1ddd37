"""The command line as `python -m walltime`."""

from walltime.cli.main import main

if __name__ == "__main__":
    main()
