"""Chance and identity that are the same on every machine.

`Streams` hands out one independent integer generator per name, so that a component that draws
more often never shifts what another one draws. The generator is SplitMix64: 64-bit
integer arithmetic only, no dependence on CPU or library version.

`Identities` derives uids and generated names from (seed, kind, namespace, prefix, ordinal), never
from one global sequence: one more controller in the run renames nobody's pods.
"""

import math
from collections import Counter
from hashlib import blake2b

_MASK = (1 << 64) - 1
_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
NAME_SUFFIX_LENGTH = 5


class Stream:
    """An endless sequence of pseudo-random integers (SplitMix64)."""

    __slots__ = ("_state",)

    def __init__(self, state: int) -> None:
        self._state = state & _MASK

    def next_u64(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)

    def below(self, bound: int) -> int:
        """Uniform in ``[0, bound)``, without modulo bias."""
        if not 0 < bound <= 1 << 64:
            raise ValueError(f"bound must be in 1..2**64, not {bound}")
        limit = (1 << 64) - (1 << 64) % bound
        while (value := self.next_u64()) >= limit:
            pass
        return value % bound

    def uniform(self) -> float:
        """Uniform in ``[0, 1)`` with 53 bits; exact, since it only divides by a power of two."""
        return (self.next_u64() >> 11) / (1 << 53)

    def exponential(self, mean: float) -> float:
        """Exponentially distributed with the given mean."""
        return -mean * math.log1p(-self.uniform())


class Streams:
    """Named, independent streams of one seed."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def stream(self, name: str) -> Stream:
        """A new stream at its beginning; the same seed and name always give the same stream."""
        digest = blake2b(f"{self.seed}/{name}".encode(), digest_size=8).digest()
        return Stream(int.from_bytes(digest, "big"))


class Identities:
    """Uids and generated names of one world."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._ordinals: Counter[tuple[str, str, str, str]] = Counter()

    def uid(self, kind: str, namespace: str, name: str) -> str:
        """A version-4-shaped UUID; the n-th object of the same name gets the n-th uid."""
        digest = bytearray(self._digest("uid", kind, namespace, name))
        digest[6] = digest[6] & 0x0F | 0x40
        digest[8] = digest[8] & 0x3F | 0x80
        text = digest.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def name_suffix(self, kind: str, namespace: str, prefix: str) -> str:
        """Five characters for ``generateName``, from the alphabet that Kubernetes uses."""
        number = int.from_bytes(self._digest("name", kind, namespace, prefix), "big")
        letters = []
        for _ in range(NAME_SUFFIX_LENGTH):
            number, index = divmod(number, len(_NAME_ALPHABET))
            letters.append(_NAME_ALPHABET[index])
        return "".join(letters)

    def reset(self, seed: int) -> None:
        self.seed = seed
        self._ordinals.clear()

    def _digest(self, purpose: str, kind: str, namespace: str, name: str) -> bytes:
        key = (purpose, kind, namespace, name)
        ordinal = self._ordinals[key]
        self._ordinals[key] = ordinal + 1
        text = f"{self.seed}/{purpose}/{kind}/{namespace}/{name}/{ordinal}"
        return blake2b(text.encode(), digest_size=16).digest()
