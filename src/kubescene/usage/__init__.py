"""What pods use and what else is measured in a world: the numbers behind the metrics APIs.

Nobody scrapes: what a scrape would have seen is a function of what is declared (`series`), the pods
and the time, and is worked out when somebody asks (`measuring`). Autoscalers and the API server ask
alike. Amounts are thousandths (of a core, a byte, a request), times nanoseconds.
"""
