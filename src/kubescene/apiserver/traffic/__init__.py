"""Traffic runs over HTTP, ``/run`` and ``/runs``; what simulates is loaded with the first one."""

RUN, RUNS, CONVERT = "/run", "/runs", "/simulator/v1/convert"
