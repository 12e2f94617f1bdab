// Drivers whose calls fail on demand.
#ifndef METS_COMMON_DEVICE_FAULTY_DRIVER_H_
#define METS_COMMON_DEVICE_FAULTY_DRIVER_H_

#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/device/forwarding_map_driver.h"
#include "common/device/pool_driver.h"

namespace mets {

// The calls that can be made to fail.
enum class DriverCall {
  // PoolDriver.
  kCreateChunk,
  kAdoptChunk,
  kReleaseChunk,
  kCreateExtent,
  kAdoptExtent,
  kFreeBytes,
  // MapDriver.
  kImportChunk,
  kRegisterExtent,
  kReserveRange,
  kMap,
  kUnmap,
  kBlockAccess,
  kAllowAccess,
  kCopyOut,
  kCopyIn,
  kCreateStream,
  kRecord,
  kStreamWait,
  // The copy's call succeeds, and its fence has the error (in host order the
  // call fails, as it must).
  kCopyOutOnStream,
  kCopyInOnStream,
};

// Which calls fail. Thread-safe; shared by the drivers it is given to, which
// it must outlive.
class FaultPlan {
 public:
  // The `nth` call of this kind from now on (1: the next one) fails with
  // `error`. Several may be planned.
  void FailNth(DriverCall call, int nth, absl::Status error);
  // Every call of this kind fails from now on; OK ends that.
  void FailAlways(DriverCall call, absl::Status error);
  // Forgets everything planned.
  void Clear();
  // How often a call of this kind has failed because of this plan.
  int failures(DriverCall call) const;

  // The driver's question, at each call: its error, or OK.
  absl::Status Next(DriverCall call);

 private:
  struct Entry {
    int calls = 0;
    int failures = 0;
    std::map<int, absl::Status> nth;
    absl::Status always;
  };

  mutable absl::Mutex mutex_;
  std::map<DriverCall, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

// A PoolDriver that follows a plan. A call that fails does not reach the inner
// driver.
class FaultyPoolDriver : public PoolDriver {
 public:
  FaultyPoolDriver(std::unique_ptr<PoolDriver> inner, FaultPlan& plan)
      : inner_(std::move(inner)), plan_(plan) {}

  PoolDriverInfo info() const override { return inner_->info(); }
  absl::StatusOr<UniqueFd> CreateChunk(Bytes size) override;
  absl::StatusOr<UniqueFd> AdoptChunk(UniqueFd fd, Bytes size) override;
  absl::Status ReleaseChunk(UniqueFd fd) override;
  absl::StatusOr<UniqueFd> CreateExtent(Bytes size) override;
  absl::StatusOr<UniqueFd> AdoptExtent(UniqueFd fd, Bytes size) override;
  absl::StatusOr<Bytes> FreeBytes() const override;

 private:
  const std::unique_ptr<PoolDriver> inner_;
  FaultPlan& plan_;
};

// A MapDriver that follows a plan. A call that fails does not reach the inner
// driver.
class FaultyMapDriver : public ForwardingMapDriver {
 public:
  FaultyMapDriver(std::unique_ptr<MapDriver> inner, FaultPlan& plan)
      : ForwardingMapDriver(std::move(inner)), plan_(plan) {}

  absl::StatusOr<ChunkHandle> ImportChunk(UniqueFd fd, Bytes size) override;
  absl::StatusOr<ExtentHandle> RegisterExtent(UniqueFd fd, Bytes size) override;
  absl::StatusOr<char*> ReserveRange(Bytes size) override;
  absl::Status Map(char* range, absl::Span<const ChunkHandle> chunks) override;
  absl::Status Unmap(char* range,
                     absl::Span<const ChunkHandle> chunks) override;
  absl::Status BlockAccess(char* range,
                           absl::Span<const ChunkHandle> chunks) override;
  absl::Status AllowAccess(char* range,
                           absl::Span<const ChunkHandle> chunks) override;
  absl::StatusOr<Fence> CopyOut(char* range,
                                absl::Span<const ChunkHandle> chunks,
                                absl::Span<const ExtentPiece> slot, Bytes size,
                                StreamHandle stream) override;
  absl::StatusOr<Fence> CopyIn(char* range,
                               absl::Span<const ChunkHandle> chunks,
                               absl::Span<const ExtentPiece> slot, Bytes size,
                               StreamHandle stream) override;
  absl::StatusOr<StreamHandle> CreateStream() override;
  absl::StatusOr<Fence> Record(StreamHandle stream) override;
  absl::StatusOr<bool> Poll(Fence fence) override;
  absl::Status Wait(Fence fence) override;
  absl::Status StreamWait(StreamHandle stream, Fence fence) override;

 private:
  // A fence on `stream` with `error`; in host order the error itself.
  absl::StatusOr<Fence> FailOnStream(StreamHandle stream, absl::Status error);
  // The planned error of a fence, or OK.
  absl::Status ErrorOf(Fence fence);

  FaultPlan& plan_;
  absl::Mutex mutex_;
  std::map<Fence, absl::Status> failed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_FAULTY_DRIVER_H_
