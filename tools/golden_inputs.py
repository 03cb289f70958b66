"""Inputs of operator cases: the same values as tests/ops/op_table.cpp makes, from the same words."""
import math

import numpy as np

# name: (numpy type that holds the values, bytes in storage)
DTYPES = {
    'bool': (np.bool_, 1), 'i8': (np.int8, 1), 'u8': (np.uint8, 1), 'i16': (np.int16, 2), 'u16': (np.uint16, 2),
    'i32': (np.int32, 4), 'u32': (np.uint32, 4), 'i64': (np.int64, 8), 'u64': (np.uint64, 8),
    'f16': (np.float16, 2), 'bf16': (np.float32, 2), 'f32': (np.float32, 4), 'f64': (np.float64, 8),
}
FLOATS = ('f16', 'bf16', 'f32', 'f64')


def fnv(data, state=0xcbf29ce484222325):
    for byte in data:
        state = (state ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return state


class Lcg:
    def __init__(self, name, index):
        self.state = fnv(f'{name}/{index}'.encode())

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & 0xffffffffffffffff
        return self.state >> 40

    def unit(self):
        return self.next() * 2.0**-24


def round_bf16(v):
    if v == 0 or not math.isfinite(v):
        return v
    exponent = max(math.frexp(v)[1] - 8, -133)  # of the last bit kept
    r = round(math.ldexp(v, -exponent))  # halves to even
    r = math.ldexp(r, exponent)
    return math.copysign(math.inf, v) if abs(r) >= 2.0**128 else math.copysign(r, v)


def store(values, dtype):
    """Doubles as an array of the dtype: floats rounded to nearest, integers saturated."""
    kind, _ = DTYPES[dtype]
    with np.errstate(all='ignore'):
        if dtype == 'bf16':
            return np.array([round_bf16(v) for v in values], np.float32)
        if dtype in FLOATS:
            return np.array(values, np.float64).astype(kind)
        if dtype == 'bool':
            return np.array([v != 0 for v in values], np.bool_)
        ends = np.iinfo(kind)
        return np.array([min(max(int(v), int(ends.min)), int(ends.max)) for v in values], kind)


def storage_bytes(array, dtype):
    if dtype == 'bf16':
        return (array.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return array.tobytes()


def specials(dtype):
    if dtype == 'bool':
        return [0, 1]
    if dtype in FLOATS:
        greatest = {'f16': 65504.0, 'bf16': float.fromhex('0x1.fep127'), 'f32': float.fromhex('0x1.fffffep127'),
                    'f64': float.fromhex('0x1.fffffffffffffp1023')}[dtype]
        normal = {'f16': 2.0**-14, 'f64': 2.0**-1022}.get(dtype, 2.0**-126)
        least = {'f16': 2.0**-24, 'bf16': 2.0**-133, 'f32': 2.0**-149, 'f64': 5e-324}[dtype]
        return [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3, -7, 0.1, 100, -100, 1000.5, math.inf, -math.inf,
                math.nan, greatest, -greatest, normal, -normal, least]
    ends = np.iinfo(DTYPES[dtype][0])
    low, high = int(ends.min), int(ends.max)
    out = [0, 1, 2, 3, 5, 7, 8, 31, 100, low, low + 1, high]
    if dtype == 'u64':
        return out + [2**63, 3 * 2**62, 2**32, 2**40]
    if dtype == 'i64':
        out[10] = low  # low + 1 is no double
        return out + [-1, -7, 2**32, -2**40]
    return out + [high + v if low == 0 else v for v in (-1, -2, -3, -7)]


class Input:
    def __init__(self, dtype, dims, low=-2.0, high=2.0, fill='uniform'):
        self.dtype, self.dims, self.low, self.high, self.fill = dtype, tuple(dims), float(low), float(high), fill

    def make(self, name, index):
        n, rng = math.prod(self.dims), Lcg(name, index)
        if self.fill == 'special':
            values = specials(self.dtype)
        elif self.fill == 'uniform':
            values = [self.low + (self.high - self.low) * rng.unit() for _ in range(n)]
            if self.dtype not in FLOATS:
                values = [math.floor(v) for v in values]
        else:
            values = [self.low + (self.high - self.low) * (i + 0.5) / n for i in range(n)]
            for i in range(n, 1, -1):
                j = rng.next() % i
                values[i - 1], values[j] = values[j], values[i - 1]
        return store(values, self.dtype).reshape(self.dims)


def f(*dims, low=-2, high=2):
    return Input('f32', dims, low, high)


def ints(*dims, low, high, dtype='i32'):
    return Input(dtype, dims, low, high)


def bools(*dims):
    return Input('bool', dims, 0, 2)


def distinct(*dims):
    return Input('f32', dims, -2, 2, 'distinct')


def special(dtype, shape=lambda n: (n,)):
    return Input(dtype, shape(len(specials(dtype))), 0, 0, 'special')


def special_pair(dtype):
    return [special(dtype, lambda n: (n, 1)), special(dtype, lambda n: (1, n))]
