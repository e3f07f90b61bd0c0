"""The exit codes, and which error ends in which. docs/cli.md lists them."""

from __future__ import annotations

DONE = 0
FAILED = 1  # doctor found something wrong; an error without a code of its own
USAGE = 2  # the command line or a value in it is wrong
UNREACHABLE = 3  # no server, or no answer in time
DENIED = 4  # credentials or rights are missing
NOT_FOUND = 5
REFUSED = 6  # the server or the queue does not take it: full, too large, in conflict
UNSUPPORTED = 7  # this server or this build cannot
NOT_CONFIRMED = 8  # nobody said yes; nothing was changed
NO_EXTRA = 9  # cwist_jq[cli] is not installed
INTERRUPTED = 130  # Ctrl-C
PIPE_CLOSED = 141  # the reader of the output has gone

_BY_CLASS = {
    "InvalidParam": USAGE,
    "ConnectionFailed": UNREACHABLE,
    "Timeout": UNREACHABLE,
    "OutcomeUnknown": UNREACHABLE,
    "Denied": DENIED,
    "NotFound": NOT_FOUND,
    "Refused": REFUSED,
    "QueueFull": REFUSED,
    "TooLarge": REFUSED,
    "Conflict": REFUSED,
    "Unsupported": UNSUPPORTED,
}


def code_of(error: BaseException) -> int:
    """The exit code for an exception of cwist_jq."""
    for kind in type(error).__mro__:
        if kind.__name__ in _BY_CLASS:
            return _BY_CLASS[kind.__name__]
    return FAILED
