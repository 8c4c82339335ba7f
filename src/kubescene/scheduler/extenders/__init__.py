"""Other processes that have a say in where a pod goes: what they are asked, and how."""
