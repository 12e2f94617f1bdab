// Fetch: brings what will probably be touched soon into the caches.
#ifndef METS_DAEMON_CORE_VICTIMS_FETCH_H_
#define METS_DAEMON_CORE_VICTIMS_FETCH_H_

#include <cstddef>

namespace mets::core {

// A decision is short, and most of what it touches lies in no cache: reading
// one thing after the other would be most of its time. Does not wait for the
// memory.
inline void Fetch(const void* at, size_t bytes) {
  constexpr size_t kLine = 64;
  const char* line = static_cast<const char*>(at);
  for (size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(line + i);
  __builtin_prefetch(line + bytes - 1);
}

template <typename T>
void Fetch(const T& object) {
  Fetch(&object, sizeof(T));
}

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIMS_FETCH_H_
