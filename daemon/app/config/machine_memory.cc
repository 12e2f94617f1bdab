#include "daemon/app/config/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace mets::app {
namespace {

constexpr Bytes kDefaultUnit = MiB(64);  // Defaults are multiples of this.
constexpr Bytes kNoLimit(std::numeric_limits<int64_t>::max());

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

// A line "KEY AMOUNT" of a file; 0 where there is none.
Bytes ReadStat(const std::string& path, absl::string_view key) {
  int64_t count = 0;
  for (absl::string_view line : absl::StrSplit(ReadAll(path), '\n')) {
    if (absl::ConsumePrefix(&line, key) && absl::SimpleAtoi(line, &count)) {
      return Bytes(count);
    }
  }
  return Bytes();
}

// Control groups of one version, as the kernel shows them.
struct Cgroups {
  std::string root;
  absl::string_view limit, used;  // Files of a group.
  absl::string_view cache;        // In its memory.stat: files nobody reads now.
};

// The least that a group and those above it allow, or leave: less what is used.
Bytes LeastOf(const Cgroups& cgroups, std::string group, bool leave) {
  Bytes least = kNoLimit;
  while (!group.empty()) {
    const std::string folder = absl::StrCat(cgroups.root, group, "/");
    const auto limit = ReadAmount(absl::StrCat(folder, cgroups.limit));
    auto used = ReadAmount(absl::StrCat(folder, cgroups.used));
    if (limit.has_value() && used.has_value()) {
      *used -= ReadStat(absl::StrCat(folder, "memory.stat"), cgroups.cache);
      const Bytes has = std::max(*limit - (leave ? *used : Bytes()), Bytes());
      least = std::min(least, has);
    }
    // A container's own group is its root.
    group.resize(group == "/" ? 0 : std::max<size_t>(group.rfind('/'), 1));
  }
  return least;
}

// The same, of this process's own group.
Bytes LeastOfCgroups(const MemoryFiles& files, bool leave) {
  const Cgroups v1 = {absl::StrCat(files.cgroup_root, "/memory"),
                      "memory.limit_in_bytes", "memory.usage_in_bytes",
                      "total_inactive_file"};
  const Cgroups v2 = {files.cgroup_root, "memory.max", "memory.current",
                      "inactive_file"};
  Bytes least = kNoLimit;
  for (absl::string_view line :
       absl::StrSplit(ReadAll(files.self_cgroup), '\n')) {
    // "0::/GROUP" (v2), "NUMBER:CONTROLLERS:/GROUP" (v1).
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<absl::string_view> controllers =
        absl::StrSplit(fields[1], ',');
    if (fields[1].empty()) {
      least = std::min(least, LeastOf(v2, fields[2], leave));
    } else if (absl::c_linear_search(controllers, "memory")) {
      least = std::min(least, LeastOf(v1, fields[2], leave));
    }
  }
  return least;
}

Bytes RoundDown(Bytes amount) { return kDefaultUnit * (amount / kDefaultUnit); }

}  // namespace

absl::StatusOr<Bytes> AvailableMemory(const MemoryFiles& files) {
  METS_ASSIGN_OR_RETURN(const Bytes available,
                        ReadMeminfo(files.meminfo, "MemAvailable"));
  return std::min(available, LeastOfCgroups(files, /*leave=*/true));
}

absl::StatusOr<Bytes> TotalMemory(const MemoryFiles& files) {
  METS_ASSIGN_OR_RETURN(const Bytes total,
                        ReadMeminfo(files.meminfo, "MemTotal"));
  return std::min(total, LeastOfCgroups(files, /*leave=*/false));
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
