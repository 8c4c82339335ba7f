"""Words for people."""


def counted(count: int, what: str) -> str:
    """``1 step``, ``2,000 steps``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
