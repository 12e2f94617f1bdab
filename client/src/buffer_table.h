// Finding buffers: by address (AddressTable) and by identifier (BufferPool).
#ifndef METS_CLIENT_SRC_BUFFER_TABLE_H_
#define METS_CLIENT_SRC_BUFFER_TABLE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/src/buffer.h"

namespace mets::client {

// Buffer of each 64 KiB of the driver's region: one load per look-up, no lock.
// The table is reserved whole, and uses memory only where it was written.
// Set and Clear are serialised by the caller.
class AddressTable {
 public:
  static constexpr int kShift = 16;

  static absl::StatusOr<std::unique_ptr<AddressTable>> Create(char* begin,
                                                              char* end);
  ~AddressTable();
  AddressTable(const AddressTable&) = delete;
  AddressTable& operator=(const AddressTable&) = delete;

  bool Owns(const void* address) const {
    return static_cast<uint64_t>(static_cast<const char*>(address) - begin_) <
           region_size_;
  }
  // Null when no range lies there. REQUIRES: Owns(address).
  Buffer* Find(const void* address) const {
    const uint64_t offset = static_cast<const char*>(address) - begin_;
    return entries_[offset >> kShift].load(std::memory_order_acquire);
  }
  void Set(char* base, uint64_t size, Buffer* buffer);

 private:
  AddressTable(char* begin, uint64_t size, std::atomic<Buffer*>* entries)
      : begin_(begin), region_size_(size), entries_(entries) {}
  size_t table_bytes() const {
    return (region_size_ >> kShift) * sizeof(std::atomic<Buffer*>);
  }

  char* const begin_;
  const uint64_t region_size_;
  std::atomic<Buffer*>* const entries_;
};

// Owns all Buffer objects of a device. Not thread-safe. An identifier is
// (generation, index): never 0, never reused.
class BufferPool {
 public:
  // An object for a new range.
  Buffer* Take();
  // The object has no range any more.
  void Put(Buffer* buffer);

  // A new buffer begins in the object.
  static void BeginGeneration(Buffer* buffer) { ++buffer->generation; }
  static uint64_t IdOf(const Buffer& buffer) {
    return buffer.generation << kIndexBits | (buffer.index + 1);
  }
  // Null when that buffer is gone.
  Buffer* Find(uint64_t id);

  std::deque<Buffer>& all() { return buffers_; }

 private:
  static constexpr int kIndexBits = 24;

  std::deque<Buffer> buffers_;
  std::vector<Buffer*> free_;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_BUFFER_TABLE_H_
