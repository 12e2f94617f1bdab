#include "client/ctl/doctor/machine_checks.h"

#include <dirent.h>
#include <sys/resource.h>

#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/bytes.h"

namespace mets::ctl {
namespace {

constexpr Bytes kLittleMemory = GiB(1);

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Of a line "MemAvailable:    1234 kB".
Bytes MemoryLine(const std::string& text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, absl::StrCat(name, ":"))) continue;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t kib = 0;
    if (words.size() > 1 && absl::SimpleAtoi(words[1], &kib)) return KiB(kib);
  }
  return Bytes();
}

// The word in brackets: "always [madvise] never".
std::string Chosen(const std::string& text) {
  const size_t begin = text.find('['), end = text.find(']');
  if (begin == text.npos || end == text.npos || end < begin) return "";
  return text.substr(begin + 1, end - begin - 1);
}

std::string Pids(const std::set<int>& pids) {
  return absl::StrCat(pids.size() == 1 ? "process " : "processes ",
                      absl::StrJoin(pids, ", "));
}

}  // namespace

Finding CheckHostMemory(const Machine& machine) {
  const std::string text = Read(machine.proc + "/meminfo");
  const Bytes available = MemoryLine(text, "MemAvailable");
  Finding finding{
      Verdict::kGood, "host memory",
      absl::StrCat(FormatBytes(available), " of ",
                   FormatBytes(MemoryLine(text, "MemTotal")), " are available"),
      ""};
  if (available < kLittleMemory) {
    finding.verdict = Verdict::kWrong;
    finding.advice =
        "swap space and host devices take host memory: end something, or give "
        "metsd less (device, swap-space)";
  }
  return finding;
}

Finding CheckHugePages(const Machine& machine) {
  const std::string enabled =
      Chosen(Read(machine.sys + "/kernel/mm/transparent_hugepage/enabled"));
  if (enabled == "always" || enabled == "madvise") {
    return {Verdict::kGood, "huge pages",
            absl::StrCat("the kernel gives them (", enabled, ")"), ""};
  }
  return {Verdict::kHint, "huge pages",
          enabled.empty() ? "the kernel has none" : "they are switched off",
          absl::StrCat("mapping chunks of host devices is slower; echo madvise "
                       "> ",
                       machine.sys, "/kernel/mm/transparent_hugepage/enabled")};
}

Finding CheckDriver(const Machine& machine) {
  const auto gpus = machine.gpus();
  if (gpus.ok()) {
    return {Verdict::kGood, "GPU driver",
            absl::StrJoin(*gpus, "; ",
                          [](std::string* out, const CudaDeviceInfo& gpu) {
                            absl::StrAppend(out, gpu.name, " (", gpu.id, ", ",
                                            FormatBytes(gpu.total), ")");
                          }),
            ""};
  }
  return {Verdict::kHint, "GPU driver", std::string(gpus.status().message()),
          "only host devices can be shared here"};
}

Frameworks FindFrameworks(const Machine& machine) {
  Frameworks found;
  DIR* folder = opendir(machine.proc.c_str());
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
    std::ifstream file(absl::StrCat(machine.proc, "/", pid, "/maps"));
    std::stringstream text;
    text << file.rdbuf();
    if (!file.is_open() || file.bad()) {
      ++found.unreadable;
      continue;
    }
    const std::string maps = text.str();
    if (absl::StrContains(maps, "/libmets.so")) {
      found.with_mets.insert(pid);
    } else if (absl::StrContains(maps, "libtensorflow_framework.so") ||
               absl::StrContains(maps, "/libtorch_cuda.so")) {
      found.without_mets.insert(pid);
    }
  }
  closedir(folder);
  return found;
}

Finding CheckBypassing(const Machine& machine) {
  const Frameworks found = FindFrameworks(machine);
  const std::string seen = absl::StrCat(
      found.with_mets.size(),
      found.with_mets.size() == 1 ? " process has" : " processes have",
      " METS loaded",
      found.unreadable == 0
          ? ""
          : absl::StrCat("; ", found.unreadable,
                         " of other users could not be looked at"));
  if (found.without_mets.empty()) return {Verdict::kGood, "programs", seen, ""};
  return {Verdict::kHint, "programs",
          absl::StrCat(seen, "; ", Pids(found.without_mets),
                       " with TensorFlow or PyTorch, but without METS"),
          "their memory is not shared: run them with metsctl run, and PyTorch "
          "programs call mets.torch.enable()"};
}

Findings CheckForeign(const Machine& machine) {
  Findings findings;
  const auto gpus = machine.gpus();
  if (!gpus.ok()) return findings;
  const Frameworks known = FindFrameworks(machine);
  for (const CudaDeviceInfo& gpu : *gpus) {
    const auto processes = machine.gpu_processes(gpu.id);
    if (!processes.ok()) {
      findings.push_back({Verdict::kHint, "GPU users",
                          std::string(processes.status().message()), ""});
      continue;
    }
    Bytes used;
    std::set<int> foreign;
    for (const CudaProcess& process : *processes) {
      if (known.with_mets.count(process.pid) > 0) continue;
      foreign.insert(process.pid);
      used += process.used;
    }
    if (foreign.empty()) {
      findings.push_back({Verdict::kGood, "GPU users",
                          absl::StrCat(gpu.id, ": none but METS's jobs"), ""});
      continue;
    }
    findings.push_back(
        {Verdict::kHint, "GPU users",
         absl::StrCat(gpu.id, ": ", FormatBytes(used), " are used by ",
                      Pids(foreign), ", not by METS's jobs"),
         "the pool cannot have that: end them, or give metsd a smaller size "
         "(device = \"cuda:GPU:SIZE\")"});
  }
  return findings;
}

}  // namespace mets::ctl
