// Which CPU this is, for keys of caches that hold code compiled for "native".
#pragma once

#include <string>

namespace pg::runtime {

/// Equal on machines whose CPUs have the same model and features as far as compilers care. Opens no library,
/// takes microseconds.
const std::string& host_identity();

}  // namespace pg::runtime
