"""For all tests."""

import signal

# A shell ignores Ctrl-C on behalf of what it runs in the background, and nohup the end of a terminal; some tests send
# these, to themselves and to processes that would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
