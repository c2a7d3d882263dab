"""What holds for all tests."""

import signal

# A run in the background of a shell inherits "ignore" for interrupts, and so would every process
# that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
