"""From a decision to a bound pod: Reserve, Permit, PreBind, Bind, PostBind, and who waits there."""
