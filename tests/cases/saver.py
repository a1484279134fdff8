"""A trainer that stores a checkpoint when it is stopped, which takes two seconds, and prints meanwhile."""

import os
import signal
import sys
import time


def save(number, frame):
    print("saving", flush=True)
    time.sleep(2)
    with open(os.environ["MARK"], "w") as file:  # noqa: PTH123
        file.write("saved")
    print("saved it", flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, save)
print("training", flush=True)
while True:
    time.sleep(0.1)
