"""The shapes of types: built-in ones and custom ones, and what they say of a value."""
