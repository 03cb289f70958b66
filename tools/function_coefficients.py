#!/usr/bin/env python3
"""Writes src/rules/functions/coefficients.h: the polynomials and constants behind exp, log, sin, erf, ...

usage: function_coefficients.py > src/rules/functions/coefficients.h        (needs mpmath, numpy, scipy)

Each polynomial is a weighted minimax fit on a fine Chebyshev grid. Its coefficients are rounded to the target
format one at a time, the most significant first, and the rest fitted again around it; the error printed is
that of the result.
"""

import os
import sys

import numpy as np
from mpmath import mp, mpf
from scipy.optimize import linprog

mp.dps = 80
GRID = 800


def grid(a, b):
    """Chebyshev points of [a, b], without zero, where the quotients below are 0/0."""
    a, b = mpf(a), mpf(b)
    xs = [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * i / GRID) for i in range(GRID + 1)]
    return [x for x in xs if abs(x) > mpf(10) ** -20]


def poly(c, x):
    s = mpf(0)
    for k in reversed(c):
        s = s * x + k
    return s


def improve(xs, g, w, degree, c, fixed):
    """One step towards the p minimising max |w (g - p)| over xs, keeping the first `fixed` coefficients of c.

    What c leaves over is fitted in doubles by a linear program, in the basis x^fixed T_j; so the result gains
    the digits of a double at each step, and intervals with zero inside, where x^fixed vanishes, need no care.
    """
    a, b = xs[0], xs[-1]
    rest = [wi * (gi - poly(c, x)) for wi, gi, x in zip(w, g, xs)]
    scale = max(abs(v) for v in rest)
    reach = max(abs(a), abs(b))
    t = np.array([float((2 * x - a - b) / (b - a)) for x in xs])
    lead = np.array([float(wi * (x / reach) ** fixed) for wi, x in zip(w, xs)])
    unit = np.max(np.abs(lead))
    free = degree + 1 - fixed
    cols = np.polynomial.chebyshev.chebvander(t, free - 1) * (lead / unit)[:, None]
    y = np.array([float(v / scale) for v in rest])
    one = np.ones((len(xs), 1))
    lp = linprog(
        [0.0] * free + [1.0],
        np.block([[cols, -one], [-cols, -one]]),
        np.concatenate([y, -y]),
        bounds=[(None, None)] * free + [(0, None)],
        method="highs",
    )
    out = list(c)
    step = [mpf(0)] * free  # the correction, from Chebyshev polynomials to powers of x
    p, q = [mpf(1)], [-(a + b) / (b - a), 2 / (b - a)]
    for k in range(free):
        for i, v in enumerate(p):
            step[i] += v * mpf(float(lp.x[k]))
        nxt = [mpf(0)] * (len(q) + 1)
        for i, v in enumerate(q):
            nxt[i] -= 2 * v * (a + b) / (b - a)
            nxt[i + 1] += 4 * v / (b - a)
        for i, v in enumerate(p):
            nxt[i] -= v
        p, q = q, nxt
    for k in range(free):
        out[fixed + k] += step[k] * scale / (mpf(float(unit)) * reach**fixed)
    return out


def least_squares(xs, g, w, degree, fixed):
    """Where `improve` starts: the weighted least squares fit beyond the given first coefficients."""
    m = len(fixed)
    rows = [[wi * x ** (m + k) for k in range(degree + 1 - m)] for wi, x in zip(w, xs)]
    y = [wi * (gi - poly(fixed, x)) for wi, gi, x in zip(w, g, xs)]
    a = mp.matrix([[mp.fdot(zip(p, q)) for p in zip(*rows)] for q in zip(*rows)])
    sol = mp.lu_solve(a, mp.matrix([mp.fdot(zip(p, y)) for p in zip(*rows)]))
    return list(fixed) + list(sol)


def error_of(xs, g, w, c):
    return max(wi * abs(gi - poly(c, x)) for wi, gi, x in zip(w, g, xs))


def round_to(v, bits):
    if v == 0:
        return mpf(0)
    m, e = mp.frexp(v)
    return mp.ldexp(mp.nint(mp.ldexp(m, bits)), e - bits)


def short_hex(v):
    h = float(v).hex()
    head, exp = h.split("p")
    head = head.rstrip("0").rstrip(".") if "." in head else head
    return head + "p" + exp


def emit(name, values):
    parts = [short_hex(v) for v in values]
    lines, line = [], "   "
    for p in parts:
        if len(line) + len(p) + 2 > 108:
            lines.append(line)
            line = "   "
        line += " " + p + ","
    lines.append(line)
    lines[-1] = lines[-1].rstrip(",") + "};"
    print(f"inline constexpr double {name}[] = {{")
    print("\n".join(lines))


def fit(name, what, g, w, a, b, degree, bits, fixed=()):
    xs = grid(a, b)
    gs = [g(x) for x in xs]
    ws = [abs(w(x)) for x in xs]
    c = least_squares(xs, gs, ws, degree, [mpf(v) for v in fixed])
    for k in range(len(fixed), degree + 1):
        for _ in range(30):
            better = improve(xs, gs, ws, degree, c, k)
            gain = error_of(xs, gs, ws, c) / error_of(xs, gs, ws, better)
            c = better if gain > 1 else c
            if gain < 1.001:
                break
        if k == len(fixed):
            ideal = error_of(xs, gs, ws, c)
        c[k] = round_to(c[k], bits)
    err = error_of(xs, gs, ws, c)
    if os.environ.get("VERBOSE"):
        print(
            name,
            "ideal",
            mp.nstr(mp.log(ideal, 2), 5),
            "rounded",
            mp.nstr(mp.log(err, 2), 5),
            file=sys.stderr,
        )
    print(f"// {what} on [{mp.nstr(mpf(a), 4)}, {mp.nstr(mpf(b), 4)}], error 2^{mp.nstr(mp.log(err, 2), 4)}")
    emit(name, c)


def pair(name, what, v, bits, hi_bits=None):
    """v as a sum of two numbers of `bits` bits; the first may be cut to fewer, so that products are exact."""
    hi = round_to(v, hi_bits or bits)
    lo = round_to(v - hi, bits)
    print(f"// {what}")
    print(f"inline constexpr double {name}Hi = {short_hex(hi)};")
    print(f"inline constexpr double {name}Lo = {short_hex(lo)};")


def words(name, first_bit, count, width):
    """Words of 2/pi: word i is floor(2/pi 2^(first_bit + width i)) mod 2^width."""
    mp.prec = 2000
    v = 2 / mp.pi
    out = [int(mp.floor(v * mpf(2) ** (first_bit + width * i))) % 2**width for i in range(count)]
    mp.dps = 80
    kind = "std::uint32_t" if width == 32 else "std::uint64_t"
    digits = width // 4
    print(f"inline constexpr {kind} {name}[] = {{")
    per = 6 if width == 32 else 4
    for i in range(0, count, per):
        row = ", ".join(f"0x{v:0{digits}x}" for v in out[i : i + per])
        print("    " + row + ("," if i + per < count else "};"))


LN2 = mp.log(2)
TANH_32 = mpf("0.625")  # where tanh changes from one form to the other
SPLIT_32, TOP_32, SPLIT_64, TOP_64 = mpf("1.125"), mpf(4), mpf(1), mpf(6)  # where erf changes; where it is 1
R = mp.sqrt


def expm1_over(r):
    return mp.expm1(r) / r


def exp2m1_over(r):
    return mp.expm1(r * LN2) / r


def sin_tail(s):
    return (mp.sin(R(s)) / R(s) - 1) / s


def cos_tail(s):
    return (mp.cos(R(s)) - 1) / s


def tan_tail(s):
    return (mp.tan(R(s)) / R(s) - 1) / s


def erf_tail(s):
    return mp.erf(R(s)) / R(s) - 1


def log_tail(f):
    return (mp.log1p(f) - f) / f**2


def log2_tail(f):
    return (mp.log1p(f) - f) / f**2 / LN2


def both(suffix, bits, deg, erf_split):
    half, quarter = LN2 / 2, (mp.pi / 4) ** 2
    low, high = R(mpf(1) / 2) - 1, R(mpf(2)) - 1
    n = lambda s: f"{s}_{suffix}"
    fit(
        n("kExp"),
        "(e^r - 1) / r, relative",
        expm1_over,
        lambda r: 1 / expm1_over(r),
        -half,
        half,
        deg["exp"],
        bits,
    )
    fit(
        n("kExp2"),
        "(2^r - 1) / r, relative",
        exp2m1_over,
        lambda r: 1 / exp2m1_over(r),
        -0.5,
        0.5,
        deg["exp"],
        bits,
    )
    fit(
        n("kLog"),
        "(log(1+f) - f) / f^2, relative in log(1+f)",
        log_tail,
        lambda f: f * f / mp.log1p(f),
        low,
        high,
        deg["log"],
        bits,
    )
    fit(
        n("kLog2"),
        "(log2(1+f) - f/ln2) / f^2, relative in log2(1+f)",
        log2_tail,
        lambda f: f * f * LN2 / mp.log1p(f),
        low,
        high,
        deg["log"],
        bits,
    )
    fit(
        n("kSin"),
        "(sin r / r - 1) / r^2 in s = r^2, relative in sin",
        sin_tail,
        lambda s: s * R(s) / mp.sin(R(s)),
        0,
        quarter,
        deg["sin"],
        bits,
    )
    fit(
        n("kCos"),
        "(cos r - 1) / r^2 in s = r^2, relative in cos",
        cos_tail,
        lambda s: s / mp.cos(R(s)),
        0,
        quarter,
        deg["cos"],
        bits,
        fixed=(-0.5,),
    )
    fit(
        n("kTan"),
        "(tan r / r - 1) / r^2 in s = r^2, relative in tan",
        tan_tail,
        lambda s: s * R(s) / mp.tan(R(s)),
        0,
        quarter,
        deg["tan"],
        bits,
    )
    fit(
        n("kErf"),
        "erf(x) / x - 1 in s = x^2, relative in erf",
        erf_tail,
        lambda s: R(s) / mp.erf(R(s)),
        0,
        erf_split**2,
        deg["erf"],
        bits,
    )


print(
    """// Minimax polynomials, lowest coefficient first, and constants in two parts, for the functions of this
// folder. Suffix 32: exact in f32; suffix 64: in f64. Written by tools/function_coefficients.py: do not edit.
// clang-format off
#pragma once

#include <cstdint>

namespace pg::rules::functions {
"""
)
both("32", 24, {"exp": 5, "log": 8, "sin": 3, "cos": 3, "tan": 6, "erf": 7}, SPLIT_32)
fit(
    "kErfc_32",
    "erfc(x)^(1/4), error of erf",
    lambda x: mp.erfc(x) ** mpf(0.25),
    lambda x: 4 * mp.erfc(x) ** mpf(0.75),
    SPLIT_32,
    TOP_32,
    7,
    24,
)
fit(
    "kPow_32",
    "4 (log(1+f) - f + f^2/2) / f^3, relative in log(1+f)",
    lambda f: 4 * (mp.log1p(f) - f + f * f / 2) / f**3,
    lambda f: f**3 / mp.log1p(f) / 4,
    -0.2,
    0.2,
    7,
    24,
)
fit(
    "kTanh_32",
    "(tanh x / x - 1) / x^2 in s = x^2, relative in tanh",
    lambda s: (mp.tanh(R(s)) / R(s) - 1) / s,
    lambda s: s * R(s) / mp.tanh(R(s)),
    0,
    TANH_32**2,
    4,
    24,
)
both("64", 53, {"exp": 10, "log": 18, "sin": 5, "cos": 6, "tan": 13, "erf": 11}, SPLIT_64)
fit(
    "kErfc_64",
    "log(erfc(x)), error of erf",
    lambda x: mp.log(mp.erfc(x)),
    lambda x: mp.erfc(x) / mp.erf(x),
    SPLIT_64,
    TOP_64,
    19,
    53,
)
fit(
    "kPow_64",
    "(log((1+s)/(1-s)) / 2s - 1 - z/3) / z^2 in z = s^2",
    lambda z: ((mp.atanh(R(z)) / R(z) - 1) / z - mpf(1) / 3) / z,
    lambda z: z * z,
    0,
    ((R(mpf(2)) - 1) / (R(mpf(2)) + 1)) ** 2,
    7,
    53,
)
print()
print(f"inline constexpr double kTanhSplit_32 = {short_hex(TANH_32)};")
print(f"inline constexpr double kErfSplit_32 = {short_hex(SPLIT_32)}, kErfcTop_32 = {short_hex(TOP_32)};")
print(f"inline constexpr double kErfSplit_64 = {short_hex(SPLIT_64)}, kErfcTop_64 = {short_hex(TOP_64)};")
pair("kLn2_32", "log 2", LN2, 24)
pair("kLn2Cut_32", "log 2, exact times an exponent", LN2, 24, 16)
pair("kLog2e_32", "1 / log 2", 1 / LN2, 24)
pair("kLog4Over3_32", "log(4/3), cut like kLn2Cut_32", mp.log(mpf(4) / 3), 24, 15)
pair("kHalfPi_32", "pi / 2", mp.pi / 2, 24)
pair("kLn2_64", "log 2", LN2, 53)
pair("kLn2Cut_64", "log 2, exact times an exponent", LN2, 53, 42)
pair("kLog2e_64", "1 / log 2", 1 / LN2, 53)
pair("kThird_64", "1/3", mpf(1) / 3, 53)
pair("kHalfPi_64", "pi / 2", mp.pi / 2, 53)
print()
print("// Bits of 2/pi: word i is floor(2/pi 2^(6 + 32 i)) mod 2^32, and floor(2/pi 2^(9 + 64 i)) mod 2^64.")
words("kTwoOverPi_32", 6, 7, 32)
words("kTwoOverPi_64", 9, 19, 64)
print("""
}  // namespace pg::rules::functions""")
