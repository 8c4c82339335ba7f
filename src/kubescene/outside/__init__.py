"""Controllers, schedulers and API servers outside the process that take part in a Scenario.

`programs` is one of them as the server sees it: what it has asked and was not answered yet, and the
watches that it follows. `turns` are the rules by which each kind of program moves: a scheduler pod
by pod, an operator write by write, a bag of controllers in rounds. `stage` puts them together for
the engine. `waiters` judge from resources alone; `clients/python` is for programs that can
say themselves when a loop is over.
"""
