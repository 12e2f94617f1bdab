#include "client/src/extent_registrar.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "client/src/device.h"
#include "client/src/log.h"
#include "common/base/status_macros.h"

namespace mets::client {

ExtentRegistrar::ExtentRegistrar(DescriptorInbox& inbox, FindDevices devices)
    : inbox_(inbox), devices_(std::move(devices)) {
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "mets-extents");
}

ExtentRegistrar::~ExtentRegistrar() { Stop(); }

void ExtentRegistrar::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void ExtentRegistrar::Announce(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  announced_.push_back(id);
}

void ExtentRegistrar::Begin() {
  const auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !busy_;
  };
  absl::MutexLock lock(&mutex_);
  ++waiting_;
  mutex_.Await(absl::Condition(&free));
  --waiting_;
  busy_ = true;
}

void ExtentRegistrar::End() {
  absl::MutexLock lock(&mutex_);
  busy_ = false;
}

absl::Status ExtentRegistrar::Register(Device& device, uint64_t id) {
  if (device.KnowsExtent(id)) return absl::OkStatus();
  Begin();
  const absl::Status status = RegisterNow(device, id);
  End();
  return status;
}

absl::Status ExtentRegistrar::RegisterNow(Device& device, uint64_t id) {
  if (device.KnowsExtent(id)) return absl::OkStatus();
  METS_ASSIGN_OR_RETURN(DescriptorInbox::Entry entry, inbox_.CopyExtent(id));
  return device.RegisterExtent(id, std::move(entry.fd), entry.size);
}

void ExtentRegistrar::Forget(uint64_t id) {
  Begin();
  inbox_.ForgetExtent(id);
  for (Device* device : devices_()) device->ForgetExtent(id);
  End();
}

void ExtentRegistrar::Reset() {
  Begin();
  {
    absl::MutexLock lock(&mutex_);
    announced_.clear();
  }
  End();
}

void ExtentRegistrar::Run() {
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || (!announced_.empty() && !busy_ && waiting_ == 0);
  };
  for (;;) {
    uint64_t id;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&ready));
      if (stop_) return;
      id = announced_.front();
      announced_.pop_front();
      busy_ = true;
    }
    for (Device* device : devices_()) {
      const absl::Status status = RegisterNow(*device, id);
      // It may have been forgotten meanwhile; an order that needs it says more.
      if (!status.ok() && !absl::IsNotFound(status)) {
        Log(LogLevel::kWarning, status.message());
      }
    }
    End();
  }
}

}  // namespace mets::client
