"""What is only faster: the decisions of `cycle`, made of what was kept of earlier ones.

What a class of pods was told is kept per row of the node table; a row that changed is told anew; a
search reads. From top to bottom:

- `decisions`: who is asked by the cycle (`FastPath`), and decides about usual pods by reading;
- `kept_rows`: what is kept of one class, verdicts and scores of all rows;
- `kept_filtering`, `kept_scoring`: Filter and Score that read what is kept, for whole cycles too;
- `renewers`: how rows are judged and rated anew, by the plugins or by what comes to the same; what
  is said of node objects is shared by classes that are signed alike;
- `cpu_memory`: such as the arithmetic of cpu and memory;
- `repeating`: failures while nothing has changed.

From which numbers on another way is faster, and how much is kept, says `state.row_policy` alone.
"""
