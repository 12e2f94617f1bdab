#include "daemon/core/sessions/buffer_table.h"

namespace mets::core {

Buffer* BufferTable::Find(BufferId id) {
  auto it = buffers_.find(id);
  return it == buffers_.end() ? nullptr : &it->second;
}

const Buffer* BufferTable::Find(BufferId id) const {
  auto it = buffers_.find(id);
  return it == buffers_.end() ? nullptr : &it->second;
}

Buffer& BufferTable::FindOrAdd(BufferId id, Bytes size) {
  auto [it, added] = buffers_.try_emplace(id);
  if (added) {
    it->second.id = id;
    it->second.size = size;
    Count(it->second, 1);
  }
  return it->second;
}

void BufferTable::Erase(BufferId id) {
  auto it = buffers_.find(id);
  if (it == buffers_.end()) return;
  Count(it->second, -1);
  buffers_.erase(it);
}

void BufferTable::Clear() {
  buffers_.clear();
  swapped_ = resident_ = held_ = Bytes();
}

void BufferTable::Set(Buffer& buffer, BufferState state, Mobility mobility) {
  Count(buffer, -1);
  buffer.state = state;
  buffer.mobility = mobility;
  Count(buffer, 1);
}

void BufferTable::Count(const Buffer& buffer, int64_t sign) {
  if (buffer.state == BufferState::kSwapped) {
    swapped_ += buffer.size * sign;
    return;
  }
  resident_ += buffer.size * sign;
  if (buffer.mobility != Mobility::kMovable) held_ += buffer.size * sign;
}

}  // namespace mets::core
