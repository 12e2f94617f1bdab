#include "daemon/app/machine_memory.h"

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

constexpr Bytes kUnit = MiB(64);  // Defaults are multiples of this.

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

absl::StatusOr<Bytes> MemAvailable(const std::string& path) {
  for (absl::string_view line : absl::StrSplit(ReadAll(path), '\n')) {
    if (!absl::ConsumePrefix(&line, "MemAvailable:")) continue;
    int64_t kib = 0;
    absl::ConsumeSuffix(&line, " kB");
    if (absl::SimpleAtoi(line, &kib)) return KiB(kib);
  }
  return absl::InternalError(absl::StrCat(path, " has no MemAvailable"));
}

std::optional<Bytes> ReadAmount(const std::string& path) {
  int64_t count = 0;
  if (!absl::SimpleAtoi(ReadAll(path), &count)) return std::nullopt;  // "max"
  return Bytes(count);
}

// What the groups from this process's own up to the root leave.
std::optional<Bytes> CgroupLeaves(const MemoryFiles& files) {
  std::string group;
  for (absl::string_view line :
       absl::StrSplit(ReadAll(files.self_cgroup), '\n')) {
    if (absl::ConsumePrefix(&line, "0::")) group = std::string(line);
  }
  std::optional<Bytes> least;
  while (group.size() > 1) {
    const std::string folder = absl::StrCat(files.cgroup_root, group);
    const auto limit = ReadAmount(absl::StrCat(folder, "/memory.max"));
    const auto used = ReadAmount(absl::StrCat(folder, "/memory.current"));
    if (limit.has_value() && used.has_value()) {
      const Bytes left = std::max(*limit - *used, Bytes());
      least = least.has_value() ? std::min(*least, left) : left;
    }
    group.resize(group.rfind('/'));
  }
  return least;
}

Bytes RoundDown(Bytes amount) { return kUnit * (amount / kUnit); }

}  // namespace

absl::StatusOr<Bytes> AvailableMemory(const MemoryFiles& files) {
  METS_ASSIGN_OR_RETURN(const Bytes available, MemAvailable(files.meminfo));
  return std::min(available, CgroupLeaves(files).value_or(available));
}

absl::Status FitToMachine(Bytes available, Config* config) {
  if (config->devices.empty()) {
    const Bytes size = RoundDown(Bytes(available.count() / 4));
    config->devices.push_back({"host", std::max(size, kUnit)});
  }
  Bytes pools;
  Bytes host;
  for (const DeviceSpec& device : config->devices) {
    const Bytes size = std::min(device.size, Bytes(int64_t{1} << 55));
    pools += size;
    if (device.kind == "host") host += size;
  }
  if (!config->swap_space.has_value()) {
    const Bytes left = std::max(available - host, Bytes());
    config->swap_space =
        std::min(2 * pools, RoundDown(Bytes(left.count() / 2)));
  }
  const Bytes wanted = host + *config->swap_space;
  if (wanted <= available) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "too little memory: the host devices take ", FormatBytes(host),
      " and the swap space ", FormatBytes(*config->swap_space), ", together ",
      FormatBytes(wanted), "; this machine has ", FormatBytes(available),
      " available. Choose smaller --device or --swap-space"));
}

}  // namespace mets::app
