#include "client/src/missed_accesses.h"

#include "absl/strings/str_cat.h"

namespace mets::client {
namespace {

constexpr char kHead[] = "phantom eviction: ";

}  // namespace

void MissedAccesses::Note(const Access& access, Bytes buffer,
                          const std::string& last_op) {
  std::string kind = absl::StrCat(
      access.write ? "write to" : "read of", " a buffer of ",
      FormatBytes(buffer), ", ",
      access.op.empty() ? "in no op" : absl::StrCat("in the op ", access.op),
      " of thread '", access.thread, "'");
  if (!last_op.empty()) absl::StrAppend(&kind, ", last used by ", last_op);
  absl::MutexLock lock(&mutex_);
  ++missed_;
  ++kinds_[kind];
}

std::vector<std::string> MissedAccesses::Report() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> lines = {
      absl::StrCat(kHead, "buffers were unreadable ", hidden_, " times, and ",
                   missed_, " accesses were missed")};
  for (const auto& [kind, count] : kinds_) {
    lines.push_back(absl::StrCat(kHead, count, " missed: ", kind));
  }
  return lines;
}

}  // namespace mets::client
