"""For all tests."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell ignores Ctrl-C on behalf of what it runs in the background; some tests send it, to themselves and others.
    signal.signal(signal.SIGINT, signal.default_int_handler)
