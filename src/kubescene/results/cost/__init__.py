"""What a run costs: `machines` are what is paid for, `prices` a list of somebody's own, `bill` what
each machine costs and what for, `rows` the tables of it.
"""
