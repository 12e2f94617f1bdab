// The C interface: checks arguments, turns statuses into codes and texts.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/include/mets/mets.h"
#include "client/src/device.h"
#include "client/src/env.h"
#include "client/src/fork_guard.h"
#include "client/src/log.h"
#include "client/src/session.h"

namespace {

using mets::client::Device;
using mets::client::InForkedChild;
using mets::client::Op;
using mets::client::Session;

thread_local std::string last_error;

std::mutex session_mutex;
Session* session = nullptr;  // Never destroyed: buffers outlive every use.

Device* ToDevice(mets_device* device) {
  return reinterpret_cast<Device*>(device);
}

mets_status Fail(mets_status code, std::string text) {
  last_error = std::move(text);
  return code;
}

mets_status Forked() {
  return Fail(METS_FORKED, absl::StrCat("this is a forked child of ",
                                        mets::client::OwnerPid(),
                                        ", which has no METS session"));
}

mets_status FromStatus(const absl::Status& status) {
  if (status.ok()) return METS_OK;
  std::string text(status.message());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return Fail(METS_INVALID_ARGUMENT, std::move(text));
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kOutOfRange:
      return Fail(METS_OUT_OF_MEMORY, std::move(text));
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return Fail(METS_UNAVAILABLE, std::move(text));
    case absl::StatusCode::kAlreadyExists:
      return Fail(METS_ALREADY_EXISTS, std::move(text));
    case absl::StatusCode::kPermissionDenied:
      return Fail(METS_PERMISSION_DENIED, std::move(text));
    case absl::StatusCode::kFailedPrecondition:
      return Fail(METS_REFUSED, std::move(text));
    default:
      return Fail(METS_FAILED, std::move(text));
  }
}

mets_status FromShare(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return FromStatus(status);
  return Fail(METS_NOT_FOUND, std::string(status.message()));
}

mets::client::ShareWish ToWish(const mets_share_options& options) {
  const auto text = [](const char* s) { return s == nullptr ? "" : s; };
  return {text(options.name), text(options.checksum), options.bytes};
}

mets_status FromRecording(const absl::Status& status) {
  if (status.ok()) return METS_OK;
  return Fail(
      absl::IsFailedPrecondition(status) ? METS_INVALID_ARGUMENT : METS_FAILED,
      std::string(status.message()));
}

// Before the C++ runtime takes the process apart.
void AtExit() {
  if (!InForkedChild()) session->Stop();
}

absl::Status OpenSession(const mets_open_options* options) {
  std::lock_guard<std::mutex> lock(session_mutex);
  if (session != nullptr) return absl::OkStatus();
  absl::StatusOr<mets::client::Settings> settings =
      mets::client::ReadSettings(options);
  if (!settings.ok()) return settings.status();
  mets::client::WatchForks();
#ifdef NDEBUG
  // Debian builds Abseil so that each lock looks for cycles of locks: a third
  // of what an allocation costs. Counts for all that use the same Abseil.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  absl::StatusOr<std::unique_ptr<Session>> started =
      Session::Start(*std::move(settings));
  if (!started.ok()) return started.status();
  session = started->release();
  atexit(AtExit);
  return absl::OkStatus();
}

// What a caller's struct has of the newest one.
template <typename T>
bool SizeFits(const T* value) {
  return value != nullptr && value->size >= sizeof(T);
}

}  // namespace

extern "C" {

int mets_abi_version(void) { return METS_ABI_VERSION; }

const char* mets_last_error(void) { return last_error.c_str(); }

mets_status mets_open(const mets_open_options* options, mets_client** client) {
  if (InForkedChild()) return Forked();
  if (client == nullptr || (options != nullptr && !SizeFits(options))) {
    return Fail(METS_INVALID_ARGUMENT, "mets_open: bad options");
  }
  const mets_status code = FromStatus(OpenSession(options));
  if (code == METS_OK) *client = reinterpret_cast<mets_client*>(session);
  return code;
}

void mets_close(mets_client*) {}

mets_status mets_device_open(mets_client* client, const char* id,
                             mets_device_mode mode, mets_device** device) {
  if (InForkedChild()) return Forked();
  if (client == nullptr || device == nullptr ||
      (mode != METS_OPS_SEEN && mode != METS_GATED)) {
    return Fail(METS_INVALID_ARGUMENT, "mets_device_open: bad argument");
  }
  absl::StatusOr<Device*> opened =
      reinterpret_cast<Session*>(client)->OpenDevice(id == nullptr ? "" : id,
                                                     mode == METS_OPS_SEEN);
  if (!opened.ok()) return FromStatus(opened.status());
  *device = reinterpret_cast<mets_device*>(*opened);
  return METS_OK;
}

mets_status mets_device_get_info(mets_device* device, mets_device_info* info) {
  if (device == nullptr || !SizeFits(info)) {
    return Fail(METS_INVALID_ARGUMENT, "mets_device_get_info: bad argument");
  }
  const Device* d = ToDevice(device);
  info->id = d->options().id.c_str();
  info->kind = d->options().kind.c_str();
  info->pool_bytes = d->options().pool.count();
  info->limit_bytes = d->limit().count();
  info->slab_threshold_bytes = d->slab_threshold().count();
  return METS_OK;
}

mets_status mets_alloc(mets_device* device, const mets_alloc_options* options,
                       void** address) {
  if (InForkedChild()) return Forked();
  if (device == nullptr || !SizeFits(options) || address == nullptr) {
    return Fail(METS_INVALID_ARGUMENT, "mets_alloc: bad argument");
  }
  return FromStatus(ToDevice(device)->Alloc(*options, address));
}

void mets_free(mets_device* device, void* address, mets_stream stream) {
  if (InForkedChild() || device == nullptr) return;
  ToDevice(device)->Free(address, stream);
}

mets_status mets_find(mets_device* device, const void* address,
                      mets_buffer_info* info) {
  if (InForkedChild()) return Forked();
  if (device == nullptr || !SizeFits(info)) {
    return Fail(METS_INVALID_ARGUMENT, "mets_find: bad argument");
  }
  return FromStatus(ToDevice(device)->FindBuffer(address, info));
}

int mets_owns(mets_device* device, const void* address) {
  return ToDevice(device)->Owns(address) ? 1 : 0;
}

mets_status mets_set_mobility(mets_device* device, void* address,
                              mets_mobility mobility) {
  if (InForkedChild()) return Forked();
  if (device == nullptr || mobility < METS_MOVABLE || mobility > METS_FIXED) {
    return Fail(METS_INVALID_ARGUMENT, "mets_set_mobility: bad argument");
  }
  return FromStatus(ToDevice(device)->SetMobility(
      address, static_cast<mets::client::Mobility>(mobility)));
}

mets_status mets_op_begin(mets_device* device, mets_stream stream,
                          const mets_access* accesses, size_t count,
                          uint64_t expected_bytes, mets_op** op) {
  if (InForkedChild()) return Forked();
  return FromStatus(ToDevice(device)->BeginOp(
      accesses, count, expected_bytes, reinterpret_cast<Op**>(op), stream));
}

void mets_op_end(mets_op* op, mets_stream stream) {
  if (op == nullptr || InForkedChild()) return;
  Op* ended = reinterpret_cast<Op*>(op);
  ended->device->EndOp(ended, stream);
}

void mets_op_allocated(const mets_op* op, uint64_t* bytes, uint64_t* largest,
                       size_t* count) {
  const Op* o = reinterpret_cast<const Op*>(op);
  if (bytes != nullptr) *bytes = o == nullptr ? 0 : o->allocated_bytes;
  if (largest != nullptr) *largest = o == nullptr ? 0 : o->largest_bytes;
  if (count != nullptr) *count = o == nullptr ? 0 : o->allocated_count;
}

void mets_op_detach(mets_op* op) {
  if (op != nullptr) {
    mets::client::RemoveCurrentOp(reinterpret_cast<Op*>(op));
  }
}

void mets_op_name(mets_device*, const char* name) {
  mets::client::SetNextOpName(name);
}

mets_status mets_share_publish(mets_device* device, void* address,
                               const mets_share_options* options) {
  if (InForkedChild()) return Forked();
  if (device == nullptr || address == nullptr || !SizeFits(options)) {
    return Fail(METS_INVALID_ARGUMENT, "mets_share_publish: bad argument");
  }
  return FromShare(ToDevice(device)->Publish(address, ToWish(*options)));
}

mets_status mets_share_attach(mets_device* device,
                              const mets_share_options* options,
                              void** address) {
  if (InForkedChild()) return Forked();
  if (device == nullptr || address == nullptr || !SizeFits(options)) {
    return Fail(METS_INVALID_ARGUMENT, "mets_share_attach: bad argument");
  }
  const absl::StatusOr<void*> attached =
      ToDevice(device)->AttachShare(ToWish(*options));
  if (attached.ok()) *address = *attached;
  return FromShare(attached.status());
}

mets_status mets_share_detach(mets_device* device, void* address) {
  if (InForkedChild()) return Forked();
  if (device == nullptr) {
    return Fail(METS_INVALID_ARGUMENT, "mets_share_detach: bad argument");
  }
  return FromShare(ToDevice(device)->DetachShare(address));
}

int mets_recording(mets_device* device) {
  return ToDevice(device)->recording() ? 1 : 0;
}

mets_status mets_record_start(mets_device* device, const char* path) {
  if (InForkedChild()) return Forked();
  if (device == nullptr || path == nullptr) {
    return Fail(METS_INVALID_ARGUMENT, "mets_record_start: bad argument");
  }
  return FromRecording(ToDevice(device)->StartRecording(path));
}

mets_status mets_record_stop(mets_device* device) {
  if (InForkedChild()) return Forked();
  if (device == nullptr) {
    return Fail(METS_INVALID_ARGUMENT, "mets_record_stop: bad argument");
  }
  return FromRecording(ToDevice(device)->StopRecording());
}

mets_status mets_gate_enter(mets_device* device) {
  if (InForkedChild()) return Forked();
  if (device == nullptr) {
    return Fail(METS_INVALID_ARGUMENT, "mets_gate_enter: bad argument");
  }
  return FromStatus(ToDevice(device)->EnterSection());
}

void mets_gate_leave(mets_device* device) {
  if (device != nullptr && !InForkedChild()) ToDevice(device)->LeaveSection();
}

void mets_step_hint(mets_device* device) {
  if (device != nullptr && !InForkedChild()) ToDevice(device)->StepEnds();
}

mets_status mets_get_stats(mets_device* device, mets_stats_t* stats) {
  if (InForkedChild()) return Forked();
  // The first interface had no more.
  constexpr size_t kLeast = offsetof(mets_stats_t, waited_ns_total);
  if (device == nullptr || stats == nullptr || stats->size < kLeast) {
    return Fail(METS_INVALID_ARGUMENT, "mets_get_stats: bad argument");
  }
  mets_stats_t all = METS_STATS_INIT;
  ToDevice(device)->GetStats(&all);
  all.size = stats->size;
  memcpy(stats, &all, std::min(all.size, sizeof(all)));
  return METS_OK;
}

void mets_reset_peak(mets_device* device) {
  if (!InForkedChild()) ToDevice(device)->ResetPeak();
}

mets_status mets_memory_info(mets_device* device, uint64_t* free,
                             uint64_t* total) {
  if (InForkedChild()) return Forked();
  if (device == nullptr || free == nullptr || total == nullptr) {
    return Fail(METS_INVALID_ARGUMENT, "mets_memory_info: bad argument");
  }
  ToDevice(device)->MemoryInfo(free, total);
  return METS_OK;
}

void mets_set_log(mets_client*, mets_log_function log, void* user) {
  mets::client::SetLog(log, user);
}

}  // extern "C"
