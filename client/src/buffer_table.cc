#include "client/src/buffer_table.h"

#include <errno.h>
#include <sys/mman.h>

#include "absl/memory/memory.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"

namespace mets::client {

absl::StatusOr<std::unique_ptr<AddressTable>> AddressTable::Create(char* begin,
                                                                   char* end) {
  const uint64_t size = end - begin;
  const size_t bytes = (size >> kShift) * sizeof(std::atomic<Buffer*>);
  void* entries = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (entries == MAP_FAILED) {
    return ErrnoToStatus(errno, "reserve the table of addresses");
  }
  return absl::WrapUnique(new AddressTable(
      begin, size, static_cast<std::atomic<Buffer*>*>(entries)));
}

AddressTable::~AddressTable() { munmap(entries_, table_bytes()); }

void AddressTable::Set(char* base, uint64_t size, Buffer* buffer) {
  const uint64_t first = static_cast<uint64_t>(base - begin_) >> kShift;
  const uint64_t last = first + (size >> kShift);
  for (uint64_t i = first; i < last; ++i) {
    entries_[i].store(buffer, std::memory_order_release);
  }
}

Buffer* BufferPool::Take() {
  if (free_.empty()) {
    METS_CHECK(buffers_.size() < (size_t{1} << kIndexBits) - 1)
        << buffers_.size() << " buffers";
    buffers_.emplace_back();
    buffers_.back().index = static_cast<uint32_t>(buffers_.size() - 1);
    return &buffers_.back();
  }
  Buffer* buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void BufferPool::Put(Buffer* buffer) {
  buffer->base.store(nullptr, std::memory_order_relaxed);
  buffer->size.store(0, std::memory_order_relaxed);
  buffer->streams.store(0, std::memory_order_relaxed);
  free_.push_back(buffer);
}

Buffer* BufferPool::Find(uint64_t id) {
  const uint64_t index = (id & ((uint64_t{1} << kIndexBits) - 1)) - 1;
  if (index >= buffers_.size()) return nullptr;
  Buffer* buffer = &buffers_[index];
  if (IdOf(*buffer) != id || buffer->word.phase() == Phase::kFree) {
    return nullptr;
  }
  return buffer;
}

}  // namespace mets::client
