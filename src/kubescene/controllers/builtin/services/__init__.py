"""Services: where the pods behind them can be reached."""
