// The one table of devices, and the devices opened so far. Neither is ever destroyed: programs and buffers
// held in static variables of the host may outlive anything we could order.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "runtime/cpu/cpu_device.h"
#include "runtime/device.h"
#include "runtime/disk/disk_device.h"
#include "runtime/interp/interp_device.h"
#include "runtime/null/null_device.h"
#include <pangrad/error.h>

namespace pg::runtime {
namespace {

std::vector<DeviceKind> built_in() {
  return {
      {"CPU", DeviceArgument::Ordinal, open_cpu},
      {"INTERP", DeviceArgument::Text, open_interp},
      {"NULL", DeviceArgument::Text, open_null},
      {"DISK", DeviceArgument::Path, open_disk},
  };
}

struct Registry {
  ForkSafeMutex mutex;
  std::vector<DeviceKind> kinds = built_in();
  std::map<std::string, std::unique_ptr<Device>, std::less<>> open;

  static Registry& get() {
    static auto* registry = new Registry;
    return *registry;
  }
  std::optional<DeviceKind> find_kind(std::string_view name) {
    const std::lock_guard lock(mutex);
    const auto found = std::ranges::find(kinds, name, &DeviceKind::name);
    return found == kinds.end() ? std::nullopt : std::optional(*found);
  }
  Device* find_open(std::string_view name) {
    const std::lock_guard lock(mutex);
    const auto found = open.find(name);
    return found == open.end() ? nullptr : found->second.get();
  }
  std::vector<DeviceKind> all_kinds() {
    const std::lock_guard lock(mutex);
    return kinds;
  }
};

// A name taken apart. `rest` is as it was written.
struct Parts {
  DeviceKind kind;
  std::string rest;
};

[[noreturn]] void unknown(std::string_view name) {
  std::string known;
  std::string broken;
  for (const DeviceInfo& info : list_devices()) {
    if (info.problem.empty()) {
      known +=
          fmt::format("{}{}{}", known.empty() ? "" : ", ", info.kind, info.needs_argument ? ":path" : "");
    } else {
      broken += fmt::format("; {} did not open: {}", info.kind, info.problem);
    }
  }
  throw DeviceError(fmt::format("[device] there is no \"{}\"; there are {}{}", name, known, broken));
}

Parts take_apart(std::string_view name) {
  const size_t colon = std::min(name.find(':'), name.size());
  std::string kind(name.substr(0, colon));
  std::ranges::transform(kind, kind.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  auto found = Registry::get().find_kind(kind);
  if (!found) unknown(name);
  return {std::move(*found), std::string(name.substr(std::min(colon + 1, name.size())))};
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "07" is "7", "0" is "".
std::string canonical_ordinal(std::string_view digits) {
  return std::string(digits.substr(std::min(digits.find_first_not_of('0'), digits.size())));
}

std::string canonical_argument(const Parts& parts, std::string_view name) {
  switch (parts.kind.argument) {
    case DeviceArgument::Ordinal:
      if (!parts.rest.empty() && !all_digits(parts.rest)) {
        throw DeviceError(
            fmt::format("[device] \"{}\": after \"{}:\" comes a number", name, parts.kind.name));
      }
      return canonical_ordinal(parts.rest);
    case DeviceArgument::Text: {
      const size_t colon = parts.rest.rfind(':');
      const size_t start = colon == std::string::npos ? 0 : colon + 1;
      const std::string_view last = std::string_view(parts.rest).substr(start);
      if (!all_digits(last)) return parts.rest;
      const std::string ordinal = canonical_ordinal(last);
      if (!ordinal.empty()) return parts.rest.substr(0, start) + ordinal;
      return parts.rest.substr(0, start == 0 ? 0 : start - 1);
    }
    case DeviceArgument::Path: {
      if (parts.rest.empty()) {
        throw DeviceError(
            fmt::format("[device] \"{}\" needs the path of a file: \"{}:path\"", name, parts.kind.name));
      }
      std::error_code error;
      const auto path = std::filesystem::absolute(parts.rest, error).lexically_normal();
      if (error) throw DeviceError(fmt::format("[device] \"{}\": {}", name, error.message()));
      return path.string();
    }
  }
  throw InternalError("[device] an argument of no kind");
}

}  // namespace

std::string canonical_device(std::string_view name) {
  const Parts parts = take_apart(name);
  const std::string argument = canonical_argument(parts, name);
  return argument.empty() ? parts.kind.name : parts.kind.name + ":" + argument;
}

Device& device(std::string_view name) {
  Registry& registry = Registry::get();
  if (Device* found = registry.find_open(name)) return *found;  // already canonical, as it mostly is
  const Parts parts = take_apart(name);
  const std::string argument = canonical_argument(parts, name);
  const std::string canonical = argument.empty() ? parts.kind.name : parts.kind.name + ":" + argument;
  if (Device* found = registry.find_open(canonical)) return *found;
  // Opened without the lock, since it may take long and may ask for other devices. Of two threads one's work
  // is thrown away.
  std::unique_ptr<Device> opened = parts.kind.open(canonical, argument);
  const std::lock_guard lock(registry.mutex);
  return *registry.open.try_emplace(canonical, std::move(opened)).first->second;
}

void register_device(DeviceKind kind) {
  Registry& registry = Registry::get();
  const std::lock_guard lock(registry.mutex);
  if (std::ranges::find(registry.kinds, kind.name, &DeviceKind::name) != registry.kinds.end()) {
    throw ValueError(fmt::format("[register_device] there is a device \"{}\" already", kind.name));
  }
  registry.kinds.push_back(std::move(kind));
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> infos;
  for (const DeviceKind& kind : Registry::get().all_kinds()) {
    DeviceInfo info{
        .kind = kind.name, .problem = {}, .needs_argument = kind.argument == DeviceArgument::Path};
    if (!info.needs_argument) {
      try {
        device(kind.name);
      } catch (const Error& error) {
        info.problem = error.what();
      }
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace pg::runtime
