"""Traffic runs over HTTP, ``/run`` and ``/runs``; what simulates is loaded with the first one."""

RUN, RUNS = "/run", "/runs"
