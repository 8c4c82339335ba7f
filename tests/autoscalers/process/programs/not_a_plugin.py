"""``not_a_plugin.py HOW``: programs that never come to be a plugin."""

import os
import subprocess
import sys
import time

HANDSHAKES = {
    "old": "2|1|unix|/tmp/nowhere|grpc|",
    "other": "1|7|unix|/tmp/nowhere|grpc|",
    "netrpc": "1|1|unix|/tmp/nowhere",
    "tls": f"1|1|unix|/tmp/nowhere|grpc|{'c' * 60}",
    "nowhere": "1|1|unix|/tmp/kubescene-nowhere-to-be-found|grpc|",
    "refused": "1|1|tcp|127.0.0.1:1|grpc|",
    "garbage": "Hello, world!",
    "stubborn": "Try me!",
}

how = sys.argv[1]
if how == "exits":
    sys.exit("I cannot go on")
if how == "floods":
    while True:
        os.write(1, b"x" * 65536)
if how == "stubborn":
    # It has a child that holds its output, too.
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    print(child.pid, os.getpid(), file=open(sys.argv[2], "w"), flush=True)  # noqa: SIM115
if how in HANDSHAKES:
    print(HANDSHAKES[how], flush=True)
print("waiting for better days", file=sys.stderr, flush=True)
time.sleep(3600)  # noqa: TID251 - it is there and does nothing
