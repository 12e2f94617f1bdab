// The malloc family, forwarded to the process's own.
//
// libmets.so is opened with RTLD_DEEPBIND, so it and its dependencies would
// take libc's malloc even where the program runs on another one (tcmalloc,
// jemalloc): memory allocated by one and freed by the other. With these
// definitions, all of them use what the program uses.
//
// dlsym itself allocates: until the real functions are known, memory comes from
// a small static arena and is never given back.
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <atomic>

#include "client/include/mets/mets.h"

extern "C" {
METS_EXPORT void* malloc(size_t size);
METS_EXPORT void free(void* p);
METS_EXPORT void* calloc(size_t n, size_t size);
METS_EXPORT void* realloc(void* p, size_t size);
METS_EXPORT void* memalign(size_t align, size_t size);
METS_EXPORT void* aligned_alloc(size_t align, size_t size);
METS_EXPORT int posix_memalign(void** p, size_t align, size_t size);
METS_EXPORT size_t malloc_usable_size(void* p);
}

namespace {

struct Functions {
  decltype(&::malloc) malloc;
  decltype(&::free) free;
  decltype(&::calloc) calloc;
  decltype(&::realloc) realloc;
  decltype(&::memalign) memalign;
  decltype(&::aligned_alloc) aligned_alloc;
  decltype(&::posix_memalign) posix_memalign;
  decltype(&::malloc_usable_size) malloc_usable_size;
};

enum State { kUnknown, kLooking, kKnown };
std::atomic<int> state{kUnknown};
Functions real;

constexpr size_t kArena = 256 << 10;
alignas(64) char arena[kArena];
std::atomic<size_t> arena_used{0};

bool InArena(const void* p) { return p >= arena && p < arena + kArena; }

// Each block has its size in front of it.
void* FromArena(size_t size, size_t align) {
  if (align < 16) align = 16;
  const size_t need = size + align + 16;
  const size_t start = arena_used.fetch_add(need);
  if (start + need > kArena) return nullptr;
  uintptr_t p = reinterpret_cast<uintptr_t>(arena + start) + 16;
  p = (p + align - 1) / align * align;
  reinterpret_cast<size_t*>(p)[-1] = size;
  return reinterpret_cast<void*>(p);
}

size_t ArenaSize(const void* p) { return static_cast<const size_t*>(p)[-1]; }

template <typename F>
void Find(void* program, const char* name, F own, F* function) {
  *function = reinterpret_cast<F>(dlsym(program, name));
  // Linked instead of opened, this library comes first itself.
  if (*function == own || *function == nullptr) {
    *function = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
  }
}

void Look() {
  void* program = dlopen(nullptr, RTLD_LAZY);
  Find(program, "malloc", &::malloc, &real.malloc);
  Find(program, "free", &::free, &real.free);
  Find(program, "calloc", &::calloc, &real.calloc);
  Find(program, "realloc", &::realloc, &real.realloc);
  Find(program, "memalign", &::memalign, &real.memalign);
  Find(program, "aligned_alloc", &::aligned_alloc, &real.aligned_alloc);
  Find(program, "posix_memalign", &::posix_memalign, &real.posix_memalign);
  Find(program, "malloc_usable_size", &::malloc_usable_size,
       &real.malloc_usable_size);
}

// False while the functions are being looked up.
inline bool Ready() {
  if (__builtin_expect(state.load(std::memory_order_acquire) == kKnown, 1)) {
    return true;
  }
  int expected = kUnknown;
  if (!state.compare_exchange_strong(expected, kLooking)) return false;
  Look();
  state.store(kKnown, std::memory_order_release);
  return true;
}

}  // namespace

extern "C" {

void* malloc(size_t size) {
  return Ready() ? real.malloc(size) : FromArena(size, 16);
}

void free(void* p) {
  if (p == nullptr || InArena(p)) return;
  // Memory that is not the arena's came from the real functions, so that they
  // are known, or from somebody's before this library was there.
  if (Ready()) real.free(p);
}

void* calloc(size_t n, size_t size) {
  if (Ready()) return real.calloc(n, size);
  size_t total;
  if (__builtin_mul_overflow(n, size, &total)) return nullptr;
  return FromArena(total, 16);  // The arena is zero, and used only once.
}

void* realloc(void* p, size_t size) {
  if (p == nullptr) return malloc(size);
  if (!InArena(p)) return Ready() ? real.realloc(p, size) : nullptr;
  void* copy = malloc(size);
  if (copy != nullptr) {
    const size_t old = ArenaSize(p);
    memcpy(copy, p, old < size ? old : size);
  }
  return copy;
}

void* memalign(size_t align, size_t size) {
  return Ready() ? real.memalign(align, size) : FromArena(size, align);
}

void* aligned_alloc(size_t align, size_t size) {
  return Ready() ? real.aligned_alloc(align, size) : FromArena(size, align);
}

int posix_memalign(void** p, size_t align, size_t size) {
  if (Ready()) return real.posix_memalign(p, align, size);
  *p = FromArena(size, align);
  return *p == nullptr ? ENOMEM : 0;
}

size_t malloc_usable_size(void* p) {
  if (p == nullptr) return 0;
  if (InArena(p)) return ArenaSize(p);
  return Ready() ? real.malloc_usable_size(p) : 0;
}

}  // extern "C"
