#include "daemon/app/config/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace mets::app {
namespace {

constexpr Bytes kDefaultUnit = MiB(64);  // Defaults are multiples of this.

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

absl::StatusOr<Bytes> ReadMeminfo(const std::string& path,
                                  absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(ReadAll(path), '\n')) {
    if (!absl::ConsumePrefix(&line, key)) continue;
    int64_t kib = 0;
    absl::ConsumePrefix(&line, ":");
    absl::ConsumeSuffix(&line, " kB");
    if (absl::SimpleAtoi(line, &kib)) return KiB(kib);
  }
  return absl::InternalError(absl::StrCat(path, " has no ", key));
}

std::optional<Bytes> ReadAmount(const std::string& path) {
  int64_t count = 0;
  if (!absl::SimpleAtoi(ReadAll(path), &count)) return std::nullopt;  // "max"
  return Bytes(count);
}

// The least that the groups from this process's own up to the root allow, or
// leave: less what is used.
std::optional<Bytes> LeastOfCgroups(const MemoryFiles& files, bool leave) {
  std::string group;
  for (absl::string_view line :
       absl::StrSplit(ReadAll(files.self_cgroup), '\n')) {
    if (absl::ConsumePrefix(&line, "0::/")) group = absl::StrCat("/", line);
  }
  std::optional<Bytes> least;
  while (!group.empty()) {
    const std::string folder = absl::StrCat(files.cgroup_root, group);
    const auto limit = ReadAmount(absl::StrCat(folder, "/memory.max"));
    const auto used = ReadAmount(absl::StrCat(folder, "/memory.current"));
    if (limit.has_value() && used.has_value()) {
      const Bytes has = std::max(*limit - (leave ? *used : Bytes()), Bytes());
      least = std::min(least.value_or(has), has);
    }
    // A container's own group is its root.
    group.resize(group == "/" ? 0 : std::max<size_t>(group.rfind('/'), 1));
  }
  return least;
}

Bytes RoundDown(Bytes amount) { return kDefaultUnit * (amount / kDefaultUnit); }

}  // namespace

absl::StatusOr<Bytes> AvailableMemory(const MemoryFiles& files) {
  METS_ASSIGN_OR_RETURN(const Bytes available,
                        ReadMeminfo(files.meminfo, "MemAvailable"));
  return std::min(available,
                  LeastOfCgroups(files, /*leave=*/true).value_or(available));
}

absl::StatusOr<Bytes> TotalMemory(const MemoryFiles& files) {
  METS_ASSIGN_OR_RETURN(const Bytes total,
                        ReadMeminfo(files.meminfo, "MemTotal"));
  return std::min(total,
                  LeastOfCgroups(files, /*leave=*/false).value_or(total));
}

absl::Status FitToMachine(Bytes memory, absl::string_view which,
                          Config* config) {
  if (config->devices.empty()) {
    const Bytes size = RoundDown(Bytes(memory.count() / 4));
    config->devices.push_back({"host", std::max(size, kDefaultUnit)});
  }
  Bytes pools;
  Bytes host;
  for (const DeviceSpec& device : config->devices) {
    // More would change nothing: swap space is less than `memory`.
    pools += std::min(device.size, memory);
    if (device.kind != "host") continue;
    if (device.size > memory) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "too little memory: a host device takes ", FormatBytes(device.size),
          ", and this machine has ", FormatBytes(memory), " ", which,
          ". Choose a smaller --device"));
    }
    host += device.size;
  }
  if (!config->swap_space.has_value()) {
    const Bytes left = std::max(memory - host, Bytes());
    config->swap_space =
        std::min(2 * pools, RoundDown(Bytes(left.count() / 2)));
  }
  const Bytes wanted = host + *config->swap_space;
  if (wanted <= memory) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "too little memory: the host devices take ", FormatBytes(host),
      " and the swap space ", FormatBytes(*config->swap_space), ", together ",
      FormatBytes(wanted), "; this machine has ", FormatBytes(memory), " ",
      which, ". Choose smaller --device or --swap-space"));
}

}  // namespace mets::app
