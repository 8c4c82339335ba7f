"""The admission webhook that does for a real API server what the gate does for ours.

`certificates` makes or reads what TLS needs, `reviews` says what may pass, `server` tells the API
server whom to ask, and answers it.
"""
