"""Histories: what happened to a cluster, change by change, as people have written it down.

A history begins with a state (a snapshot can be taken of it), and goes on with changes, each with
its instant. Readers hand both out as streams: however long a history is, no more of it is held
than what puts changes in order and the state of the cluster.

::

    history     a `RecordedChange`, a `RecordedHistory`, and how changes are put in order
    lines       lines of a file, packed or not, within bounds
    recordings  JSON lines: our own form (`kubescene record`), and kube-scheduler-simulator's
    kwok        KWOK's recordings
    simkube     SimKube's traces
    audit       audit logs of API servers
    table       which reader a file is for
    placements  where pods were placed meanwhile
    survey      one look at a whole history before it is played: whether it can be read, what it is
"""
