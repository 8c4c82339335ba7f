"""Logarithm, powers and powers of two with the same bits on every platform.

C libraries differ in the last bit of these functions, and a last bit can move a percentile to
another bucket of a histogram. So they are made here of additions, multiplications and divisions
alone, which IEEE 754 defines exactly, by the classic argument reductions and minimax polynomials
of fdlibm: those that the vertical pod autoscaler's own runtime uses.
"""

from math import frexp, inf, isinf, ldexp, sqrt

_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_HALF_ROOT = sqrt(2.0) / 2
_LARGEST_EXPONENT = 1.0239999999999999e03
_SMALLEST_EXPONENT = -1.0740e03

# Minimax coefficients of r * (e^r + 1) / (e^r - 1) in r^2, and of log(1 + f) in (f / (2 + f))^2.
_E1, _E2, _E3, _E4, _E5 = (
    1.66666666666666657415e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
_L1, _L2, _L3, _L4, _L5, _L6, _L7 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


def exp2(x: float) -> float:
    """Two to the ``x``; beyond what a float can say: infinity or 0."""
    if x > _LARGEST_EXPONENT:
        return inf
    if x < _SMALLEST_EXPONENT:
        return 0.0
    whole = int(x + 0.5) if x > 0 else int(x - 0.5)
    rest = x - whole
    return _exp_times(rest * _LN2_HIGH, -rest * _LN2_LOW, whole)


def _exp_times(high: float, low: float, twos: int) -> float:
    """``e^(high - low) * 2^twos`` for a small ``high - low``."""
    r = high - low
    t = r * r
    c = r - t * (_E1 + t * (_E2 + t * (_E3 + t * (_E4 + t * _E5))))
    return ldexp(1 - ((low - (r * c) / (2 - c)) - high), twos)


def log(x: float) -> float:
    """The natural logarithm of a positive, finite number."""
    fraction, twos = frexp(x)
    if fraction < _HALF_ROOT:
        fraction *= 2
        twos -= 1
    f = fraction - 1
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    odd = s2 * (_L1 + s4 * (_L3 + s4 * (_L5 + s4 * _L7)))
    even = s4 * (_L2 + s4 * (_L4 + s4 * _L6))
    half = 0.5 * f * f
    return twos * _LN2_HIGH - ((half - (s * (half + (odd + even)) + twos * _LN2_LOW)) - f)


def power(x: float, exponent: int) -> float:
    """A positive number (or infinity) to a whole exponent, by squaring its mantissa."""
    if exponent == 0:
        return 1.0
    if isinf(x):
        return inf if exponent > 0 else 0.0
    mantissa, twos = _mantissa_power(x, abs(exponent))
    if exponent < 0:
        mantissa, twos = 1 / mantissa, -twos
    return _scaled(mantissa, twos)


def _mantissa_power(x: float, exponent: int) -> tuple[float, int]:
    square, square_twos = frexp(x)
    result, twos = 1.0, 0
    while exponent:
        if exponent & 1:
            result *= square
            twos += square_twos
        square *= square
        square_twos *= 2
        if square < 0.5:
            square += square
            square_twos -= 1
        exponent >>= 1
    return result, twos


def _scaled(mantissa: float, twos: int) -> float:
    try:
        return ldexp(mantissa, twos)
    except OverflowError:
        return inf
