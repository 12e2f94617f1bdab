// ForwardingMapDriver: base class of drivers that change another one.
#ifndef METS_COMMON_DEVICE_FORWARDING_MAP_DRIVER_H_
#define METS_COMMON_DEVICE_FORWARDING_MAP_DRIVER_H_

#include <memory>
#include <utility>

#include "common/device/map_driver.h"

namespace mets {

// Hands every call on to the driver that it owns. As thread-safe as that.
class ForwardingMapDriver : public MapDriver {
 public:
  explicit ForwardingMapDriver(std::unique_ptr<MapDriver> inner)
      : inner_(std::move(inner)) {}

  MapDriverInfo info() const override { return inner_->info(); }
  char* region_begin() const override { return inner_->region_begin(); }
  char* region_end() const override { return inner_->region_end(); }

  absl::StatusOr<ChunkHandle> ImportChunk(UniqueFd fd, Bytes size) override {
    return inner_->ImportChunk(std::move(fd), size);
  }
  void ForgetChunk(ChunkHandle chunk) override { inner_->ForgetChunk(chunk); }
  absl::StatusOr<ExtentHandle> RegisterExtent(UniqueFd fd,
                                              Bytes size) override {
    return inner_->RegisterExtent(std::move(fd), size);
  }
  void ForgetExtent(ExtentHandle extent) override {
    inner_->ForgetExtent(extent);
  }

  absl::StatusOr<char*> ReserveRange(Bytes size) override {
    return inner_->ReserveRange(size);
  }
  absl::StatusOr<char*> ReserveRangeFor(absl::Span<const ChunkHandle> chunks,
                                        Bytes size) override {
    return inner_->ReserveRangeFor(chunks, size);
  }
  void ReleaseRange(char* range, Bytes size) override {
    inner_->ReleaseRange(range, size);
  }
  absl::Status Map(char* range, absl::Span<const ChunkHandle> chunks) override {
    return inner_->Map(range, chunks);
  }
  absl::Status Unmap(char* range,
                     absl::Span<const ChunkHandle> chunks) override {
    return inner_->Unmap(range, chunks);
  }
  absl::Status UnmapAfter(absl::Span<const Fence> after, char* range,
                          absl::Span<const ChunkHandle> chunks) override {
    return inner_->UnmapAfter(after, range, chunks);
  }
  absl::Status BlockAccess(char* range,
                           absl::Span<const ChunkHandle> chunks) override {
    return inner_->BlockAccess(range, chunks);
  }
  absl::Status AllowAccess(char* range,
                           absl::Span<const ChunkHandle> chunks) override {
    return inner_->AllowAccess(range, chunks);
  }
  absl::Status SetReadOnly(char* range, absl::Span<const ChunkHandle> chunks,
                           bool read_only) override {
    return inner_->SetReadOnly(range, chunks, read_only);
  }

  absl::StatusOr<Fence> CopyOut(char* range,
                                absl::Span<const ChunkHandle> chunks,
                                absl::Span<const ExtentPiece> slot, Bytes size,
                                StreamHandle stream) override {
    return inner_->CopyOut(range, chunks, slot, size, stream);
  }
  absl::StatusOr<Fence> CopyIn(char* range,
                               absl::Span<const ChunkHandle> chunks,
                               absl::Span<const ExtentPiece> slot, Bytes size,
                               StreamHandle stream) override {
    return inner_->CopyIn(range, chunks, slot, size, stream);
  }

  absl::StatusOr<StreamHandle> CreateStream() override {
    return inner_->CreateStream();
  }
  absl::StatusOr<StreamHandle> AdoptStream(void* stream) override {
    return inner_->AdoptStream(stream);
  }
  void DestroyStream(StreamHandle stream) override {
    inner_->DestroyStream(stream);
  }
  absl::StatusOr<Fence> Record(StreamHandle stream) override {
    return inner_->Record(stream);
  }
  absl::StatusOr<bool> IsIdle(StreamHandle stream) override {
    return inner_->IsIdle(stream);
  }
  absl::StatusOr<bool> Poll(Fence fence) override {
    return inner_->Poll(fence);
  }
  absl::Status Wait(Fence fence) override { return inner_->Wait(fence); }
  absl::Status StreamWait(StreamHandle stream, Fence fence) override {
    return inner_->StreamWait(stream, fence);
  }

 protected:
  MapDriver& inner() { return *inner_; }

 private:
  const std::unique_ptr<MapDriver> inner_;
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_FORWARDING_MAP_DRIVER_H_
