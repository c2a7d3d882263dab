"""What holds for all tests."""

import signal

from engine.readers.guard import Guard

# What a reader raises is a fault that no test may miss.
Guard.strict = True

# A run in the background of a shell inherits "ignore" for interrupts, and so would every process
# that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
