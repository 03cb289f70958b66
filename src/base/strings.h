// Numbers as people read them, for messages and progress bars.
#pragma once

#include <cstdint>
#include <string>

namespace pg {

/// A count of bytes with a binary unit and three digits: "512 B", "1.50 KiB", "23.4 MiB".
std::string format_bytes(int64_t bytes);

/// A span of time with a unit and three digits: "1.50 us", "23.4 ms", "120 s".
std::string format_seconds(double seconds);

/// A span of time as a clock shows it, to the second: "0:07", "12:34", "1:02:03".
std::string format_clock(double seconds);

}  // namespace pg
