"""Chance and identity that are the same on every machine.

`Streams` hands out one independent integer generator per name, so that a component that draws
more often never shifts what another one draws. The generator is SplitMix64: 64-bit
integer arithmetic only, no dependence on CPU or library version; `kubescene.clock.draws` makes
exponential and normal numbers of it without leaving the integers.

`Identities` derives uids and generated names from (seed, kind, namespace, prefix, ordinal), never
from one global sequence: one more controller in the run renames nobody's pods.
"""

from collections import Counter
from collections.abc import Container
from copy import copy
from hashlib import blake2b
from os import urandom
from typing import TYPE_CHECKING

from kubescene.clock.draws import GAMMA, unit_exponential, unit_normals

if TYPE_CHECKING:
    from kubescene.clock.batches import Integers, Words

_MASK = (1 << 64) - 1
_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
NAME_SUFFIX_LENGTH = 5
_LETTER_PAIRS = [one + other for other in _NAME_ALPHABET for one in _NAME_ALPHABET]
_PAIRS = len(_LETTER_PAIRS)
_NAMES: int = len(_NAME_ALPHABET) ** NAME_SUFFIX_LENGTH


class Stream:
    """An endless sequence of pseudo-random integers (SplitMix64).

    The methods in the plural draw the same numbers as that many calls of those in the singular,
    as NumPy arrays and some thirty times as fast.
    """

    __slots__ = ("_spare", "_state")

    def __init__(self, state: int) -> None:
        self._state = state & _MASK
        self._spare: int | None = None

    def next_u64(self) -> int:
        self._state = mixed = (self._state + GAMMA) & _MASK
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

    def exponential(self, mean: int) -> int:
        """Exponential with the given mean, rounded down; one draw.

        At most ``mean * 2.4e-10 + 1`` too small (a nanosecond and a quarter for a mean of one
        second), and at most 36.74 means. A mean of ``1 << 32`` gives the unit exponential in Q32.
        """
        if mean < 0:
            raise ValueError(f"a mean is not negative: {mean}")
        return mean * unit_exponential(self.next_u64()) >> 32

    def normal(self, mean: int, deviation: int) -> int:
        """Normal with the given mean and standard deviation, to the nearest integer.

        Two draws give two numbers, of which the second is kept for the next call. The error is
        below ``deviation * 4e-8 + 1``, close to the mean ``deviation * 3e-5 + 1``; no number is
        farther than 8.6 deviations from the mean.
        """
        if deviation < 0:
            raise ValueError(f"a standard deviation is not negative: {deviation}")
        unit, self._spare = self._spare, None
        if unit is None:
            unit, self._spare = unit_normals(self.next_u64(), self.next_u64())
        return mean + ((deviation * unit + (1 << 27)) >> 28)

    def next_u64s(self, count: int) -> "Words":
        from kubescene.clock import batches  # NumPy, for those who draw by the thousand

        words = batches.words(self._state, count)
        self._state = (self._state + count * GAMMA) & _MASK
        return words

    def exponentials(self, mean: int, count: int) -> "Integers":
        """``count`` times `exponential`; the mean below ``1 << 45`` (9.7 hours in nanoseconds)."""
        from kubescene.clock import batches

        return batches.scaled_exponentials(batches.unit_exponentials(self.next_u64s(count)), mean)

    def normals(self, mean: int, deviation: int, count: int) -> "Integers":
        """``count`` times `normal`; mean and deviation below ``1 << 45``."""
        from kubescene.clock import batches

        kept = [] if self._spare is None or not count else [self._spare]
        missing = count - len(kept)
        units = batches.unit_normals(self.next_u64s(missing + missing % 2))
        if count:
            self._spare = int(units[-1]) if missing % 2 else None
        return batches.scaled_normals(batches.joined(kept, units[:missing]), mean, deviation)


_VARIANTS = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
"""The digit of a UUID that says of which kind it is, by the one that is drawn."""


class Streams:
    """Named, independent streams of one seed: one name, one stream."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._streams: dict[str, Stream] = {}

    def stream(self, name: str) -> Stream:
        """The stream of this name; asked again, the same one, which goes on where it was left.

        The same seed and name always give the same numbers.
        """
        if name not in self._streams:
            self._streams[name] = self.single(name)
        return self._streams[name]

    def single(self, name: str) -> Stream:
        """The stream of this name from its beginning, for one draw: it is not kept."""
        digest = blake2b(f"{self.seed}/{name}".encode(), digest_size=8).digest()
        return Stream(int.from_bytes(digest, "big"))

    def reset(self, seed: int | None = None) -> None:
        """Begin anew, for a new world: every name gets a stream at its beginning."""
        if seed is not None:
            self.seed = seed
        self._streams.clear()


class Identities:
    """Uids and generated names of one world.

    ``life`` says how often the world was opened before: those of an earlier life are not known any
    more, and are not given again.
    """

    def __init__(self, seed: int = 0, life: int = 0) -> None:
        self.seed = seed
        self._first = life << 32
        self._go_on: Container[str] | None = None
        """Kinds whose ordinals go on from an earlier life; None: all."""
        self._ordinals: Counter[tuple[str, str, str, str]] = Counter()

    def __deepcopy__(self, memo: object) -> "Identities":
        twin = copy(self)
        twin._ordinals = self._ordinals.copy()  # one for every name there ever was
        return twin

    def uid(self, kind: str, namespace: str, name: str) -> str:
        """A version-4-shaped UUID; the n-th object of the same name gets the n-th uid."""
        text = self._digest("uid", kind, namespace, name).hex()
        variant = _VARIANTS[text[16]]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"

    def name_suffix(self, kind: str, namespace: str, prefix: str) -> str:
        """Five characters for ``generateName``, from the alphabet that Kubernetes uses."""
        number = int.from_bytes(self._digest("name", kind, namespace, prefix), "big")
        rest, first = divmod(number % _NAMES, _PAIRS)
        last, second = divmod(rest, _PAIRS)
        return _LETTER_PAIRS[first] + _LETTER_PAIRS[second] + _NAME_ALPHABET[last]

    def reset(self, seed: int, *, kept: Container[str] = ()) -> None:
        """Begin anew, except for kinds whose objects outlive the world: theirs are never reused."""
        self.seed = seed
        self._go_on = kept
        ordinals = self._ordinals.items()
        self._ordinals = Counter({key: count for key, count in ordinals if key[1] in kept})

    def _digest(self, purpose: str, kind: str, namespace: str, name: str) -> bytes:
        key = (purpose, kind, namespace, name)
        ordinal = self._ordinals.get(key)
        if ordinal is None:
            ordinal = self._first if self._go_on is None or kind in self._go_on else 0
        self._ordinals[key] = ordinal + 1
        text = f"{self.seed}/{purpose}/{kind}/{namespace}/{name}/{ordinal}"
        return blake2b(text.encode(), digest_size=16).digest()


def unguessable(size: int) -> bytes:
    """Bytes that nobody else knows, from the machine: for keys, which are no part of any result."""
    return urandom(size)
