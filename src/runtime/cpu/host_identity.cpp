#include "runtime/cpu/host_identity.h"

#include <fmt/format.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <fstream>

#include <sys/auxv.h>
#endif

namespace pg::runtime {
namespace {

#if defined(__x86_64__)
std::string find_out() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  std::string text = "x86-64";
  __get_cpuid(0, &a, &b, &c, &d);
  text += fmt::format(" {:08x}{:08x}{:08x}", b, d, c);  // the vendor; `a` only says how many leaves there are
  __get_cpuid(1, &a, &b, &c, &d);
  text += fmt::format(" {:08x} {:08x}{:08x}", a, c, d);  // `b` tells one core from another
  const bool saves = (c & (1U << 27)) != 0;
  __get_cpuid_count(7, 0, &a, &b, &c, &d);
  text += fmt::format(" {:08x}{:08x}{:08x}", b, c, d);
  __get_cpuid_count(7, 1, &a, &b, &c, &d);
  text += fmt::format(" {:08x}{:08x}{:08x}", a, b, d);
  __get_cpuid(0x80000001, &a, &b, &c, &d);
  text += fmt::format(" {:08x}{:08x}", c, d);
  if (saves) {  // which registers the system saves: without, a feature is there and cannot be used
    unsigned low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    text += fmt::format(" {:x}", low);
  }
  return text;
}
#elif defined(__aarch64__)
std::string find_out() {
  std::string model;
  std::ifstream("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1") >> model;
  return fmt::format("aarch64 {} {:x} {:x}", model, getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
}
#endif

}  // namespace

const std::string& host_identity() {
  static const auto* text = new std::string(find_out());
  return *text;
}

}  // namespace pg::runtime
