#include "daemon/app/store/descriptor_store.h"

#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"

namespace mets::app {
namespace {

// execve takes no longer string, and all names come in one, a colon behind
// each.
constexpr size_t kMostNameBytes = 120'000;
constexpr uint64_t kBarrierUs = 5'000'000;

}  // namespace

DescriptorStore::DescriptorStore(
    std::set<std::string> kept,
    std::function<void(const absl::Status&)> on_give_up)
    : on_give_up_(std::move(on_give_up)), names_(std::move(kept)) {
  for (const std::string& name : names_) name_bytes_ += name.size() + 1;
}

bool DescriptorStore::Exists() { return getenv("NOTIFY_SOCKET") != nullptr; }

std::string DescriptorStore::NameOf(ChunkId chunk) {
  return absl::StrCat("c", absl::Hex(chunk.value()));
}

std::string DescriptorStore::NameOf(ExtentId extent) {
  return absl::StrCat("e", absl::Hex(extent.value()));
}

absl::Status DescriptorStore::Reserve(const std::string& name) {
  if (name_bytes_ + name.size() + 1 > kMostNameBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "there are ", names_.size(), " descriptors, more than can be passed"));
  }
  if (names_.insert(name).second) name_bytes_ += name.size() + 1;
  return absl::OkStatus();
}

void DescriptorStore::Keep(const std::string& name, int fd) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (given_up_) return;
    status = Reserve(name);
  }
  if (status.ok()) {
    // The service manager is not to watch it: it would drop what has an event.
    const std::string text = absl::StrCat("FDSTORE=1\nFDPOLL=0\nFDNAME=", name);
    const int result = sd_pid_notify_with_fds(0, /*unset_environment=*/0,
                                              text.c_str(), &fd, 1);
    if (result <= 0) status = ErrnoToStatus(-result, "sd_notify");
  }
  if (!status.ok()) GiveUp(status);
}

bool DescriptorStore::Drop(const std::string& name) {
  {
    absl::MutexLock lock(&mutex_);
    if (names_.erase(name) == 0) return true;
    name_bytes_ -= name.size() + 1;
  }
  const std::string text = absl::StrCat("FDSTOREREMOVE=1\nFDNAME=", name);
  const int result = sd_notify(0, text.c_str());
  if (result > 0) return true;
  GiveUp(ErrnoToStatus(-result, "sd_notify"));
  return false;
}

void DescriptorStore::DropOthers(const std::set<std::string>& wanted) {
  std::set<std::string> names;
  {
    absl::MutexLock lock(&mutex_);
    names = names_;
  }
  bool dropped = false;
  for (const std::string& name : names) {
    if (wanted.count(name) > 0) continue;
    if (!Drop(name)) return;
    dropped = true;
  }
  if (dropped) sd_notify_barrier(0, kBarrierUs);
}

void DescriptorStore::GiveUp(const absl::Status& reason) {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(given_up_, true)) return;
  }
  on_give_up_(reason);
  DropAll();
}

}  // namespace mets::app
