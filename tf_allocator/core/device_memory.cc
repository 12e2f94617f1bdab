#include "tf_allocator/core/device_memory.h"

#include <cstdio>
#include <cstdlib>

#include "tf_allocator/core/op_scope.h"

namespace mets {
namespace {

// What one can do without is waited for as long as others' eviction takes.
constexpr int64_t kOptionalWaitMs = 2000;
constexpr uint64_t kShownBytes = 1 << 20;

std::string InMiB(uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

bool ShowsHeld() {
  const char* value = std::getenv("METS_TF_SHOW_HELD");
  return value != nullptr && std::string(value) == "1";
}

std::string Advice(const std::string& kind) {
  if (kind != "host") return "";
  return " (TensorFlow on the CPU needs a host device: metsd --device "
         "host:SIZE)";
}

}  // namespace

std::unique_ptr<DeviceMemory> DeviceMemory::Open(const MetsApi& api,
                                                 const char* id,
                                                 const char* kind,
                                                 std::string* error) {
  mets_open_options options = METS_OPEN_OPTIONS_INIT;
  mets_client* client = nullptr;
  mets_device* device = nullptr;
  mets_device_info info = METS_DEVICE_INFO_INIT;
  if (api.open(&options, &client) != METS_OK) {
    *error = api.last_error();
    return nullptr;
  }
  const mets_status opened =
      api.device_open(client, id, METS_OPS_SEEN, &device);
  if (opened != METS_OK || api.device_get_info(device, &info) != METS_OK) {
    // UNAVAILABLE: metsd has no such device.
    *error = api.last_error() +
             (opened == METS_UNAVAILABLE ? Advice(kind) : "");
    return nullptr;
  }
  if (std::string(info.kind) != kind) {
    *error = std::string("device ") + info.id + " is a " + info.kind +
             " device" + Advice(kind);
    return nullptr;
  }
  return std::unique_ptr<DeviceMemory>(new DeviceMemory(api, device, info));
}

DeviceMemory::DeviceMemory(const MetsApi& api, mets_device* device,
                           const mets_device_info& info)
    : api_(api),
      device_(device),
      device_id_(info.id),
      threshold_bytes_(info.slab_threshold_bytes),
      limit_bytes_(info.limit_bytes != 0 ? info.limit_bytes : info.pool_bytes),
      shows_held_(ShowsHeld()) {}

DeviceMemory::Result DeviceMemory::Allocate(uint64_t bytes, uint64_t align,
                                            void** address, std::string* error,
                                            bool needed) {
  if (forked()) return Result::kNotHere;
  OpScope* scope = OpScope::Current();
  if (!TakeRoom(bytes, error)) {
    if (scope != nullptr && needed) scope->NoteFailure(*error);
    return Fail(*error, needed);
  }
  mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
  options.bytes = bytes;
  options.align = align;
  options.stream = stream();
  options.mobility = METS_HELD;
  if (!needed) options.deadline_ms = kOptionalWaitMs;
  if (scope != nullptr) {
    if (!scope->BeginForAllocation(error)) {
      LeaveRoom(bytes);
      return Fail(*error, needed);
    }
    if (scope->LetsMove() && !holds_all()) options.mobility = METS_MOVABLE;
  }
  const mets_status status = api_.alloc(device_, &options, address);
  if (status != METS_OK) LeaveRoom(bytes);
  if (status == METS_FORKED) return Result::kNotHere;
  if (status != METS_OK) {
    *error = api_.last_error();
    if (scope != nullptr && needed) scope->NoteFailure(*error);
    return Fail(*error, needed);
  }
  Remember(*address, bytes);
  if (options.mobility == METS_HELD) {
    held_.InsertUntilNamed(*address);
    if (scope == nullptr) {
      ShowHeld(*address, {"no op", "allocated outside ops"});
    } else {
      ShowHeld(*address, {scope->type(), "its allocations are not followed"});
    }
  }
  if (scope != nullptr) scope->NoteAllocated(*address, bytes);
  return Result::kOk;
}

DeviceMemory::Result DeviceMemory::Fail(const std::string& error, bool needed) {
  if (needed) SayOnce(error);
  return Result::kFailed;
}

bool DeviceMemory::TakeRoom(uint64_t bytes, std::string* error) {
  if (own_limit_bytes_ == 0) return true;
  const uint64_t used = used_bytes_.fetch_add(bytes);
  if (used + bytes <= own_limit_bytes_) return true;
  used_bytes_.fetch_sub(bytes);
  *error = "the program limits its memory of " + device_id_ + " to " +
           InMiB(own_limit_bytes_) + " itself: " + InMiB(used) +
           " are in use, and " + InMiB(bytes) + " more were asked for";
  return false;
}

void DeviceMemory::LeaveRoom(uint64_t bytes) {
  if (own_limit_bytes_ != 0) used_bytes_.fetch_sub(bytes);
}

uint64_t DeviceMemory::BytesAt(const void* address) const {
  mets_buffer_info info = METS_BUFFER_INFO_INIT;
  return api_.find(device_, address, &info) == METS_OK ? info.bytes : 0;
}

void DeviceMemory::Free(void* address) {
  if (forked()) return;
  held_.Erase(address);
  if (OpScope* scope = OpScope::Current()) scope->NoteFreed(address);
  if (own_limit_bytes_ != 0) LeaveRoom(BytesAt(address));
  api_.free(device_, address, stream());
}

bool DeviceMemory::HoldUntilNamed(void* address, const Reason& reason,
                                  int64_t step) {
  if (held_.SetStep(address, step)) return true;
  mets_buffer_info info = METS_BUFFER_INFO_INIT;
  if (api_.find(device_, address, &info) != METS_OK) return true;
  if (info.address != address) return HoldForGood(address, reason);
  // What libmets holds since an access was missed stays held.
  if (info.mobility != METS_MOVABLE) return true;
  if (!Hold(address, reason)) return false;
  held_.InsertUntilNamed(address, step);
  return true;
}

bool DeviceMemory::HoldWhileKept(void* address, const void* owner,
                                 const Reason& reason) {
  mets_buffer_info info = METS_BUFFER_INFO_INIT;
  if (api_.find(device_, address, &info) != METS_OK) return true;
  if (info.address != address) return HoldForGood(address, reason);
  held_.InsertWhileKept(address, owner);
  return Hold(address, reason);
}

bool DeviceMemory::HoldForGood(void* address, const Reason& reason) {
  mets_buffer_info info = METS_BUFFER_INFO_INIT;
  if (api_.find(device_, address, &info) != METS_OK) return true;
  held_.InsertForGood(info.address);
  return Hold(info.address, reason);
}

bool DeviceMemory::Hold(void* address, const Reason& reason) {
  ShowHeld(address, reason);
  return api_.set_mobility(device_, address, METS_HELD) == METS_OK;
}

bool DeviceMemory::Stats(mets_stats_t* stats) const {
  return !forked() && api_.get_stats(device_, stats) == METS_OK;
}

void DeviceMemory::Remember(const void* address, uint64_t bytes) {
  const uintptr_t from = reinterpret_cast<uintptr_t>(address);
  const uintptr_t to = from + bytes;
  uintptr_t low = lowest_.load(std::memory_order_relaxed);
  while (from < low && !lowest_.compare_exchange_weak(low, from)) {
  }
  uintptr_t high = highest_.load(std::memory_order_relaxed);
  while (to > high && !highest_.compare_exchange_weak(high, to)) {
  }
  uint64_t largest = largest_.load(std::memory_order_relaxed);
  while (bytes > largest && !largest_.compare_exchange_weak(largest, bytes)) {
  }
}

void DeviceMemory::SayOnce(const std::string& text) {
  if (said_.exchange(true)) return;
  std::fprintf(stderr, "METS: %s\n", text.c_str());
}

void DeviceMemory::ShowHeld(const void* address, const Reason& reason) {
  if (!shows_held_) return;
  const uint64_t bytes = BytesAt(address);
  if (bytes < kShownBytes) return;
  const std::string what = std::string(reason.op) + ": " + reason.why;
  std::lock_guard<std::mutex> lock(shown_mutex_);
  if (!shown_.insert(what).second) return;
  std::fprintf(stderr, "METS: holds %s: %s\n", InMiB(bytes).c_str(),
               what.c_str());
}

}  // namespace mets
