// pangrad devices: what there is, what opened, why not.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/strings.h"
#include "commands.h"
#include "engine/engine.h"
#include "runtime/device.h"

namespace pg::apps {

void show_devices() {
  std::string chosen = engine::default_device();
  for (const runtime::DeviceInfo& info : runtime::list_devices()) {
    std::string state = info.needs_argument     ? fmt::format("takes a path, as in {}:/tmp/file", info.kind)
                        : !info.problem.empty() ? fmt::format("did not open: {}", info.problem)
                        : info.kind == chosen   ? "works, and is the default"
                                                : "works";
    std::replace(state.begin(), state.end(), '\n', ' ');
    fmt::print("{:<8} {}\n", info.kind, state);
  }
}

}  // namespace pg::apps
