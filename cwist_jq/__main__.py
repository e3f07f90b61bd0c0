"""python -m cwist_jq: the command line."""

from cwist_jq.cli import main

if __name__ == "__main__":  # a child process of the worker imports this module too
    main()
