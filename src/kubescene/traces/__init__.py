"""Traces: lists of what came to a cluster, how large it was and how long it ran.

A trace is operations over time, where a snapshot is state: each pod arrives when it did, and the
scheduler here decides where it goes. When it got its place there is a result, never an input.

::

    trace       what a trace holds, and what it asks of its nodes
    tables      what readers share
    openb, helios, philly, azure, swf
                the forms that are known
    conversion  which reader knows a file, and what it becomes: a Scenario whose pods arrive
"""
