// Minimax polynomials, lowest coefficient first, and constants in two parts, for the functions of this
// folder. Suffix 32: exact in f32; suffix 64: in f64. Written by tools/function_coefficients.py: do not edit.
// clang-format off
#pragma once

#include <cstdint>

namespace pg::rules::functions {

// (e^r - 1) / r, relative on [-0.3466, 0.3466], error 2^-26.13
inline constexpr double kExp_32[] = {
    0x1p+0, 0x1.fffffep-2, 0x1.5554b4p-3, 0x1.5556f8p-5, 0x1.12252ep-7, 0x1.6b95c8p-10};
// (2^r - 1) / r, relative on [-0.5, 0.5], error 2^-26.2
inline constexpr double kExp2_32[] = {
    0x1.62e43p-1, 0x1.ebfbdep-3, 0x1.c6afa4p-5, 0x1.3b2c3ep-7, 0x1.5ef136p-10, 0x1.4295f2p-13};
// (log(1+f) - f) / f^2, relative in log(1+f) on [-0.2929, 0.4142], error 2^-27.83
inline constexpr double kLog_32[] = {
    -0x1.fffff8p-2, 0x1.55555p-2, -0x1.000438p-2, 0x1.99a41cp-3, -0x1.5423e8p-3, 0x1.226c84p-3,
    -0x1.0f5208p-3, 0x1.0875p-3, -0x1.38138ep-4};
// (log2(1+f) - f/ln2) / f^2, relative in log2(1+f) on [-0.2929, 0.4142], error 2^-27.69
inline constexpr double kLog2_32[] = {
    -0x1.71547p-1, 0x1.ec7094p-2, -0x1.715afep-2, 0x1.277f44p-2, -0x1.eaa24ap-3, 0x1.a2c9ep-3,
    -0x1.87f7f6p-3, 0x1.7f27ecp-3, -0x1.c39ab2p-4};
// (sin r / r - 1) / r^2 in s = r^2, relative in sin on [0.0, 0.6169], error 2^-32.52
inline constexpr double kSin_32[] = {
    -0x1.555556p-3, 0x1.111174p-7, -0x1.a05954p-13, 0x1.7c2c4ep-19};
// (cos r - 1) / r^2 in s = r^2, relative in cos on [0.0, 0.6169], error 2^-32.99
inline constexpr double kCos_32[] = {
    -0x1p-1, 0x1.55554ap-5, -0x1.6c0c28p-10, 0x1.99e80cp-16};
// (tan r / r - 1) / r^2 in s = r^2, relative in tan on [0.0, 0.6169], error 2^-29.55
inline constexpr double kTan_32[] = {
    0x1.55556p-2, 0x1.110d9ep-3, 0x1.bad9c2p-5, 0x1.5cc0d4p-6, 0x1.62cb3p-7, 0x1.9c0eccp-14, 0x1.1e91cp-8};
// erf(x) / x - 1 in s = x^2, relative in erf on [0.0, 1.266], error 2^-30.11
inline constexpr double kErf_32[] = {
    0x1.06eba8p-3, -0x1.812742p-2, 0x1.ce2e18p-4, -0x1.b8166cp-6, 0x1.556d08p-8, -0x1.b55f8ap-11,
    0x1.b34feep-14, -0x1.f5a53cp-18};
// erfc(x)^(1/4), error of erf on [1.125, 4.0], error 2^-26.71
inline constexpr double kErfc_32[] = {
    0x1.01685cp+0, -0x1.3c327ap-2, -0x1.03c9f6p-4, -0x1.9d88bep-5, 0x1.0ed654p-4, -0x1.6bf28p-6,
    0x1.a7eacep-9, -0x1.786fe8p-13};
// 4 (log(1+f) - f + f^2/2) / f^3, relative in log(1+f) on [-0.2, 0.2], error 2^-35.14
inline constexpr double kPow_32[] = {
    0x1.555554p+0, -0x1.fffffep-1, 0x1.999c0cp-1, -0x1.55573ep-1, 0x1.23e038p-1, -0x1.fedc4ap-2,
    0x1.eea208p-2, -0x1.bbc91cp-2};
// (tanh x / x - 1) / x^2 in s = x^2, relative in tanh on [0.0, 0.3906], error 2^-27.72
inline constexpr double kTanh_32[] = {
    -0x1.555532p-2, 0x1.1106f6p-3, -0x1.b835a4p-5, 0x1.51f8cep-6, -0x1.750ce4p-8};
// (e^r - 1) / r, relative on [-0.3466, 0.3466], error 2^-55.59
inline constexpr double kExp_64[] = {
    0x1p+0, 0x1.0000000000005p-1, 0x1.555555555554fp-3, 0x1.5555555552273p-5, 0x1.1111111114d61p-7,
    0x1.6c16c17ec6addp-10, 0x1.a01a01872d04cp-13, 0x1.a019a7d4b3a9p-16, 0x1.71de665f4af1p-19,
    0x1.28a16ddbfe4dap-22, 0x1.ae99079a0b6cep-26};
// (2^r - 1) / r, relative on [-0.5, 0.5], error 2^-54.73
inline constexpr double kExp2_64[] = {
    0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58ep-3, 0x1.c6b08d704a21bp-5, 0x1.3b2ab6fba4047p-7,
    0x1.5d87fe786fc12p-10, 0x1.43091301ed487p-13, 0x1.ffcbfd2e40f05p-17, 0x1.62bfe7ed5c6c5p-20,
    0x1.b523c1f472a7fp-24, 0x1.e5e477d5c2706p-28, 0x1.eb2d7a639b907p-32};
// (log(1+f) - f) / f^2, relative in log(1+f) on [-0.2929, 0.4142], error 2^-54.14
inline constexpr double kLog_64[] = {
    -0x1.ffffffffffffbp-2, 0x1.55555555551a9p-2, -0x1.00000000008e5p-2, 0x1.9999999a327a1p-3,
    -0x1.555555552fc2dp-3, 0x1.249248e07184ep-3, -0x1.ffffff8c0dfcfp-4, 0x1.c71c8f080df31p-4,
    -0x1.9999ca49f7c63p-4, 0x1.7459ad26a4565p-4, -0x1.554d26b40244p-4, 0x1.3b4c55725fbb4p-4,
    -0x1.2548a8115a7ddp-4, 0x1.0f3892ca9c199p-4, -0x1.eee4eaa1a5d8p-5, 0x1.e95ba5133c494p-5,
    -0x1.15fdf8151a1dbp-4, 0x1.031042e918e4ep-4, -0x1.cfa58a6021e84p-6};
// (log2(1+f) - f/ln2) / f^2, relative in log2(1+f) on [-0.2929, 0.4142], error 2^-54.14
inline constexpr double kLog2_64[] = {
    -0x1.71547652b82fbp-1, 0x1.ec709dc39feb8p-2, -0x1.71547652b8ee4p-2, 0x1.2776c50f67a84p-2,
    -0x1.ec709dc373c41p-3, 0x1.a6176245a067p-3, -0x1.715475fd8f2bdp-3, 0x1.484b28e80eb06p-3,
    -0x1.2776e84df2487p-3, 0x1.0c980ef6f939fp-3, -0x1.ec64cd56a2dep-4, 0x1.c6e0f4a28f0c4p-4,
    -0x1.a71e82e785168p-4, 0x1.874ace79ea70ap-4, -0x1.64fe0fae7ef62p-4, 0x1.60fc311c7ff3ap-4,
    -0x1.910b72d1b7019p-4, 0x1.75c448368413dp-4, -0x1.4e7f78c113211p-5};
// (sin r / r - 1) / r^2 in s = r^2, relative in sin on [0.0, 0.6169], error 2^-57.89
inline constexpr double kSin_64[] = {
    -0x1.5555555555548p-3, 0x1.111111110f73p-7, -0x1.a01a019be9215p-13, 0x1.71de35552b264p-19,
    -0x1.ae5e4b83bad9cp-26, 0x1.5d8b558757c1cp-33};
// (cos r - 1) / r^2 in s = r^2, relative in cos on [0.0, 0.6169], error 2^-63.94
inline constexpr double kCos_64[] = {
    -0x1p-1, 0x1.555555555554bp-5, -0x1.6c16c16c15015p-10, 0x1.a01a019c8f254p-16, -0x1.27e4f7f1914b8p-22,
    0x1.1ee9dbcf02113p-29, -0x1.8fa6848de674dp-37};
// (tan r / r - 1) / r^2 in s = r^2, relative in tan on [0.0, 0.6169], error 2^-56.21
inline constexpr double kTan_64[] = {
    0x1.55555555554f2p-2, 0x1.11111111182c8p-3, 0x1.ba1ba1b46c0cbp-5, 0x1.664f49a84f79cp-6,
    0x1.226e125da9524p-7, 0x1.d6d93344d3f2bp-9, 0x1.7d5b620b959cbp-10, 0x1.37fa5cc8efc05p-11,
    0x1.d272f0ed6cf88p-13, 0x1.1e248e4f82ef6p-13, -0x1.b8c460b6c66fcp-16, 0x1.76c0b4844d8f6p-14,
    -0x1.77fb74f9e3e66p-15, 0x1.5dcd735bb0b06p-16};
// erf(x) / x - 1 in s = x^2, relative in erf on [0.0, 1.0], error 2^-56.03
inline constexpr double kErf_64[] = {
    0x1.06eba8214db68p-3, -0x1.812746b03799dp-2, 0x1.ce2f21a03f8b1p-4, -0x1.b82ce311a9273p-6,
    0x1.565bcceec43f3p-8, -0x1.c02daeb15c0abp-11, 0x1.f9a295e27e8a7p-14, -0x1.f4c81cf16ca1dp-17,
    0x1.b96a674d0920ep-20, -0x1.5b850df7ed025p-23, 0x1.d39eb8b7dc18fp-27, -0x1.a15d094e6b63ep-31};
// log(erfc(x)), error of erf on [1.0, 6.0], error 2^-62.28
inline constexpr double kErfc_64[] = {
    -0x1.d4f99f54c887bp-26, -0x1.20dd70e2e8288p+0, -0x1.45f32649e7883p-1, -0x1.a4f3172796606p-4,
    0x1.3965809a98d04p-6, 0x1.a7beb122b2dadp-13, -0x1.b7012f61efc41p-10, 0x1.21735096456b5p-11,
    0x1.74bc13819569bp-16, -0x1.d13075a95d4dep-14, 0x1.0fe2bea609599p-14, -0x1.97c2bef3ecde3p-16,
    0x1.c7c9ed00423b8p-18, -0x1.8b094ecbd0366p-20, 0x1.0ad8160275867p-22, -0x1.150b1883180ecp-25,
    0x1.ac119ae37aedp-29, -0x1.d00e71e931cc8p-33, 0x1.3b032ed522a9fp-37, -0x1.92f08c53e43a7p-43};
// (log((1+s)/(1-s)) / 2s - 1 - z/3) / z^2 in z = s^2 on [0.0, 0.02944], error 2^-73.48
inline constexpr double kPow_64[] = {
    0x1.9999999999996p-3, 0x1.2492492492f51p-3, 0x1.c71c71c5968fap-4, 0x1.745d1829565d2p-4,
    0x1.3b1364c96120dp-4, 0x1.11206f281f581p-4, 0x1.de3d71eb92a51p-5, 0x1.eac5afc91aabdp-5};

inline constexpr double kTanhSplit_32 = 0x1.4p-1;
inline constexpr double kErfSplit_32 = 0x1.2p+0, kErfcTop_32 = 0x1p+2;
inline constexpr double kErfSplit_64 = 0x1p+0, kErfcTop_64 = 0x1.8p+2;
// log 2
inline constexpr double kLn2_32Hi = 0x1.62e43p-1;
inline constexpr double kLn2_32Lo = -0x1.05c61p-29;
// log 2, exact times an exponent
inline constexpr double kLn2Cut_32Hi = 0x1.62e4p-1;
inline constexpr double kLn2Cut_32Lo = 0x1.7f7d1cp-20;
// 1 / log 2
inline constexpr double kLog2e_32Hi = 0x1.715476p+0;
inline constexpr double kLog2e_32Lo = 0x1.4ae0cp-26;
// log(4/3), cut like kLn2Cut_32
inline constexpr double kLog4Over3_32Hi = 0x1.2698p-2;
inline constexpr double kLog4Over3_32Lo = -0x1.deecb2p-18;
// pi / 2
inline constexpr double kHalfPi_32Hi = 0x1.921fb6p+0;
inline constexpr double kHalfPi_32Lo = -0x1.777a5cp-25;
// log 2
inline constexpr double kLn2_64Hi = 0x1.62e42fefa39efp-1;
inline constexpr double kLn2_64Lo = 0x1.abc9e3b39803fp-56;
// log 2, exact times an exponent
inline constexpr double kLn2Cut_64Hi = 0x1.62e42fefa38p-1;
inline constexpr double kLn2Cut_64Lo = 0x1.ef35793c7673p-45;
// 1 / log 2
inline constexpr double kLog2e_64Hi = 0x1.71547652b82fep+0;
inline constexpr double kLog2e_64Lo = 0x1.777d0ffda0d24p-56;
// 1/3
inline constexpr double kThird_64Hi = 0x1.5555555555555p-2;
inline constexpr double kThird_64Lo = 0x1.5555555555555p-56;
// pi / 2
inline constexpr double kHalfPi_64Hi = 0x1.921fb54442d18p+0;
inline constexpr double kHalfPi_64Lo = 0x1.1a62633145c07p-54;

// Bits of 2/pi: word i is floor(2/pi 2^(6 + 32 i)) mod 2^32, and floor(2/pi 2^(9 + 64 i)) mod 2^64.
inline constexpr std::uint32_t kTwoOverPi_32[] = {
    0x00000028, 0xbe60db93, 0x91054a7f, 0x09d5f47d, 0x4d377036, 0xd8a5664f,
    0x10e4107f};
inline constexpr std::uint64_t kTwoOverPi_64[] = {
    0x0000000000000145, 0xf306dc9c882a53f8, 0x4eafa3ea69bb81b6, 0xc52b3278872083fc,
    0xa2c757bd778ac36e, 0x48dc74849ba5c00c, 0x925dd413a32439fc, 0x3bd63962534e7dd1,
    0x046bea5d768909d3, 0x38e04d68befc8273, 0x23ac7306a673e939, 0x08bf177bf250763f,
    0xf12fffbc0b301fde, 0x5e2316b414da3eda, 0x6cfd9e4f96136e9e, 0x8c7ecd3cbfd45aea,
    0x4f758fd7cbe2f67a, 0x0e73ef14a525d4d7, 0xf6bf623f1aba10ac};

}  // namespace pg::rules::functions
