#include "common/device/chunk_budget.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace mets {

ChunkBudget::ChunkBudget(Bytes total, std::vector<Bytes> classes,
                         std::string what)
    : total_(total), classes_(std::move(classes)), what_(std::move(what)) {}

Bytes ChunkBudget::left() const {
  absl::MutexLock lock(&mutex_);
  return total_ - used_;
}

absl::Status ChunkBudget::CheckClass(Bytes size) const {
  if (std::find(classes_.begin(), classes_.end(), size) != classes_.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(size.count(), " bytes are no chunk class"));
}

absl::Status ChunkBudget::Reserve(Bytes size) {
  absl::MutexLock lock(&mutex_);
  if (size > total_ - used_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a chunk of ", FormatBytes(size), ": the ", what_, " of ",
                     FormatBytes(total_), " has only ",
                     FormatBytes(total_ - used_), " left"));
  }
  used_ += size;
  return absl::OkStatus();
}

void ChunkBudget::Unreserve(Bytes size) {
  absl::MutexLock lock(&mutex_);
  METS_CHECK(size <= used_) << "released " << size << " of " << used_;
  used_ -= size;
}

}  // namespace mets
