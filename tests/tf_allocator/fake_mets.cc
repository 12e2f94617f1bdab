// A libmets for tests: the C interface in one process, without a daemon.
//
// Buffers lie in a region that is mapped twice, once for the program and once
// for the fake itself. What no running op has pinned can be evicted after every
// op: its bytes are copied aside, its memory is given back and the program's
// mapping is closed, so that every access that was not announced faults. Such
// a fault is served, counted and makes the buffer held, as libmets does it.
//
// A buffer that was only read since it came back leaves without a copy. The
// fake checks then that its bytes are what the copy has; when not, somebody
// wrote without saying so, and it ends the process.
//
// FAKE_METS_EVICT=1: evict after every op. FAKE_METS_THRESHOLD: bytes of the
// smallest large allocation. FAKE_METS_POOL: bytes that may be live and
// resident; beyond, allocations fail. FAKE_METS_KIND: the device's kind.
// FAKE_METS_OPEN: an error text; opening fails with it. FAKE_METS_REPORT=1: a
// line with counts on stderr at exit. FAKE_METS_CALLS=1: see fake_calls.h.
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/include/mets/mets.h"
#include "tests/tf_allocator/fake_calls.h"

namespace {

constexpr uint64_t kRegion = uint64_t{64} << 30;
constexpr uint64_t kPage = 4096;

uint64_t Number(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

uint64_t PageCeil(uint64_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }

struct Buffer {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t id = 0;
  mets_mobility mobility = METS_MOVABLE;
  int pins = 0;
  bool resident = true;
  bool clean = false;
  std::unique_ptr<char[]> copy;
};

struct Pin {
  uint64_t offset;
  uint64_t id;
};

}  // namespace

struct mets_client {
  int uses = 0;
};
struct mets_device {
  int unused = 0;
};
struct mets_op {
  std::vector<Pin> pins;
  uint64_t wanted = 0;
  uint64_t bytes = 0;
  uint64_t largest = 0;
  size_t count = 0;
  mets_op* outer = nullptr;
};

namespace {

thread_local std::string t_error;
thread_local mets_op* t_op = nullptr;

struct Fake {
  std::mutex mutex;
  char* user = nullptr;   // the program's mapping
  char* alias = nullptr;  // the fake's
  int fd = -1;
  uint64_t top = 0;
  std::map<uint64_t, Buffer> buffers;             // by offset
  std::multimap<uint64_t, uint64_t> free_ranges;  // by size
  mets_stats_t stats = {};
  uint64_t next_id = 0;
  uint64_t ops = 0;
  uint64_t unknown_ops = 0;
  uint64_t outgrown = 0;
  bool evict = Number("FAKE_METS_EVICT", 0) != 0;
  uint64_t threshold = Number("FAKE_METS_THRESHOLD", 1 << 20);
  uint64_t pool = Number("FAKE_METS_POOL", kRegion);
  std::string kind = "host";
  struct sigaction previous = {};
};

mets_client g_client;
mets_device g_device;
Fake* g_fake = nullptr;

Buffer* FindLocked(const void* address) {
  const char* a = static_cast<const char*>(address);
  if (a < g_fake->user || a >= g_fake->user + kRegion) return nullptr;
  const uint64_t offset = a - g_fake->user;
  auto it = g_fake->buffers.upper_bound(offset);
  if (it == g_fake->buffers.begin()) return nullptr;
  Buffer& b = (--it)->second;
  return offset < b.offset + PageCeil(b.bytes) ? &b : nullptr;
}

void RestoreLocked(Buffer* b) {
  if (b->resident) return;
  std::memcpy(g_fake->alias + b->offset, b->copy.get(), b->bytes);
  mprotect(g_fake->user + b->offset, PageCeil(b->bytes),
           PROT_READ | PROT_WRITE);
  b->resident = true;
  b->clean = true;
  g_fake->stats.restored_bytes_total += b->bytes;
  g_fake->stats.resident_bytes += b->bytes;
  g_fake->stats.swapped_bytes -= b->bytes;
}

void EvictLocked(Buffer* b) {
  char* user = g_fake->user + b->offset;
  char* alias = g_fake->alias + b->offset;
  const uint64_t size = PageCeil(b->bytes);
  mprotect(user, size, PROT_READ);
  if (b->clean) {
    if (std::memcmp(b->copy.get(), alias, b->bytes) != 0) {
      std::fprintf(stderr,
                   "fake_mets: a buffer of %llu bytes was written by nobody\n",
                   static_cast<unsigned long long>(b->bytes));
      _exit(77);
    }
    ++g_fake->stats.clean_evictions_total;
  } else {
    if (b->copy == nullptr) b->copy.reset(new char[b->bytes]);
    std::memcpy(b->copy.get(), alias, b->bytes);
    g_fake->stats.evicted_bytes_total += b->bytes;
  }
  mprotect(user, size, PROT_NONE);
  fallocate(g_fake->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(b->offset), static_cast<off_t>(size));
  b->resident = false;
  g_fake->stats.resident_bytes -= b->bytes;
  g_fake->stats.swapped_bytes += b->bytes;
}

void EvictAllLocked() {
  for (auto& entry : g_fake->buffers) {
    Buffer& b = entry.second;
    if (b.resident && b.pins == 0 && b.mobility == METS_MOVABLE) {
      EvictLocked(&b);
    }
  }
}

// With FAKE_METS_TRACE=1: where the access came from.
void Trace() {
  if (Number("FAKE_METS_TRACE", 0) == 0) return;
  void* frames[24];
  backtrace_symbols_fd(frames, backtrace(frames, 24), STDERR_FILENO);
  std::fprintf(stderr, "--\n");
}

void OnFault(int signal, siginfo_t* info, void* context) {
  {
    std::lock_guard<std::mutex> lock(g_fake->mutex);
    Buffer* b = FindLocked(info->si_addr);
    if (b != nullptr) {
      if (!b->resident) {
        RestoreLocked(b);
        b->clean = false;
        b->mobility = METS_HELD;
        ++g_fake->stats.unobserved_accesses_total;
        Trace();
      }
      return;
    }
  }
  const struct sigaction& previous = g_fake->previous;
  if ((previous.sa_flags & SA_SIGINFO) != 0 &&
      previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
    return;
  }
  ::signal(signal, SIG_DFL);
}

void Report() {
  const mets_stats_t& s = g_fake->stats;
  std::fprintf(
      stderr,
      "fake_mets: ops %llu unknown %llu outgrown %llu allocations %llu peak "
      "%llu evicted %llu restored %llu clean %llu unobserved %llu\n",
      static_cast<unsigned long long>(g_fake->ops),
      static_cast<unsigned long long>(g_fake->unknown_ops),
      static_cast<unsigned long long>(g_fake->outgrown),
      static_cast<unsigned long long>(s.allocations_total),
      static_cast<unsigned long long>(s.peak_live_bytes),
      static_cast<unsigned long long>(s.evicted_bytes_total),
      static_cast<unsigned long long>(s.restored_bytes_total),
      static_cast<unsigned long long>(s.clean_evictions_total),
      static_cast<unsigned long long>(s.unobserved_accesses_total));
}

mets_status Fail(mets_status status, std::string text) {
  t_error = std::move(text);
  return status;
}

Fake* MakeFake() {
  auto* fake = new Fake;
  fake->fd = memfd_create("fake_mets", MFD_CLOEXEC);
  if (fake->fd < 0 || ftruncate(fake->fd, kRegion) != 0) return nullptr;
  void* user = mmap(nullptr, kRegion, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, fake->fd, 0);
  void* alias = mmap(nullptr, kRegion, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_NORESERVE, fake->fd, 0);
  if (user == MAP_FAILED || alias == MAP_FAILED) return nullptr;
  fake->user = static_cast<char*>(user);
  fake->alias = static_cast<char*>(alias);
  const char* kind = std::getenv("FAKE_METS_KIND");
  if (kind != nullptr) fake->kind = kind;
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &fake->previous);
  if (Number("FAKE_METS_REPORT", 0) != 0) std::atexit(Report);
  return fake;
}

uint64_t TakeRangeLocked(uint64_t size) {
  auto it = g_fake->free_ranges.lower_bound(size);
  if (it != g_fake->free_ranges.end() && it->first == size) {
    const uint64_t offset = it->second;
    g_fake->free_ranges.erase(it);
    return offset;
  }
  const uint64_t offset = g_fake->top;
  g_fake->top += size;
  return offset;
}

}  // namespace

extern "C" {

int mets_abi_version(void) {
  return static_cast<int>(Number("FAKE_METS_ABI", METS_ABI_VERSION));
}

const char* mets_last_error(void) { return t_error.c_str(); }

mets_status mets_open(const mets_open_options*, mets_client** client) {
  const char* error = std::getenv("FAKE_METS_OPEN");
  if (error != nullptr) return Fail(METS_UNAVAILABLE, error);
  if (g_fake == nullptr) g_fake = MakeFake();
  if (g_fake == nullptr) return Fail(METS_FAILED, "cannot map the region");
  ++g_client.uses;
  *client = &g_client;
  return METS_OK;
}

void mets_close(mets_client* client) { --client->uses; }

mets_status mets_device_open(mets_client*, const char* id,
                             mets_device_mode mode, mets_device** device) {
  NoteCall(std::string("device ") + (id == nullptr ? "-" : id) +
           (mode == METS_GATED ? " gated" : ""));
  *device = &g_device;
  return METS_OK;
}

mets_status mets_device_get_info(mets_device*, mets_device_info* info) {
  info->id = "host0";
  info->kind = g_fake->kind.c_str();
  info->pool_bytes = g_fake->pool;
  info->limit_bytes = 0;
  info->slab_threshold_bytes = g_fake->threshold;
  return METS_OK;
}

mets_status mets_alloc(mets_device*, const mets_alloc_options* options,
                       void** address) {
  std::lock_guard<std::mutex> lock(g_fake->mutex);
  mets_stats_t& stats = g_fake->stats;
  if (stats.resident_bytes + options->bytes > g_fake->pool) EvictAllLocked();
  if (stats.resident_bytes + options->bytes > g_fake->pool) {
    return Fail(METS_OUT_OF_MEMORY,
                "fake pool full: asked for " + std::to_string(options->bytes) +
                    " bytes of " + std::to_string(g_fake->pool));
  }
  NoteCall("alloc " + std::to_string(options->bytes) +
               (options->mobility == METS_HELD ? " held" : ""),
           options->stream);
  Buffer b;
  b.bytes = options->bytes;
  b.offset = TakeRangeLocked(PageCeil(b.bytes));
  b.id = ++g_fake->next_id;
  b.mobility = options->mobility;
  mprotect(g_fake->user + b.offset, PageCeil(b.bytes), PROT_READ | PROT_WRITE);
  std::memset(g_fake->alias + b.offset, 0xCD, b.bytes);
  if (t_op != nullptr) {
    b.pins = 1;
    t_op->pins.push_back({b.offset, b.id});
    t_op->bytes += b.bytes;
    ++t_op->count;
    if (b.bytes > t_op->largest) t_op->largest = b.bytes;
  }
  ++stats.allocations_total;
  stats.live_bytes += b.bytes;
  stats.resident_bytes += b.bytes;
  if (stats.live_bytes > stats.peak_live_bytes) {
    stats.peak_live_bytes = stats.live_bytes;
  }
  *address = g_fake->user + b.offset;
  g_fake->buffers.emplace(b.offset, std::move(b));
  return METS_OK;
}

void mets_free(mets_device*, void* address, mets_stream stream) {
  if (address == nullptr) return;
  NoteCall("free", stream);
  std::lock_guard<std::mutex> lock(g_fake->mutex);
  Buffer* b = FindLocked(address);
  if (b == nullptr || g_fake->user + b->offset != address) std::abort();
  const uint64_t offset = b->offset;
  const uint64_t size = PageCeil(b->bytes);
  g_fake->stats.live_bytes -= b->bytes;
  (b->resident ? g_fake->stats.resident_bytes : g_fake->stats.swapped_bytes) -=
      b->bytes;
  g_fake->buffers.erase(offset);
  // What is freed must not be touched any more.
  mprotect(g_fake->user + offset, size, PROT_NONE);
  fallocate(g_fake->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(offset), static_cast<off_t>(size));
  g_fake->free_ranges.emplace(size, offset);
}

mets_status mets_find(mets_device*, const void* address,
                      mets_buffer_info* info) {
  std::lock_guard<std::mutex> lock(g_fake->mutex);
  Buffer* b = FindLocked(address);
  if (b == nullptr) return Fail(METS_INVALID_ARGUMENT, "not a buffer");
  info->address = g_fake->user + b->offset;
  info->bytes = b->bytes;
  info->buffer_id = b->id;
  info->mobility = b->mobility;
  info->resident = b->resident ? 1 : 0;
  return METS_OK;
}

int mets_owns(mets_device*, const void* address) {
  const char* a = static_cast<const char*>(address);
  return a >= g_fake->user && a < g_fake->user + kRegion ? 1 : 0;
}

mets_status mets_set_mobility(mets_device*, void* address,
                              mets_mobility mobility) {
  std::lock_guard<std::mutex> lock(g_fake->mutex);
  Buffer* b = FindLocked(address);
  if (b == nullptr) return Fail(METS_INVALID_ARGUMENT, "not a buffer");
  if (mobility != METS_MOVABLE) {
    RestoreLocked(b);
    b->clean = false;
  }
  b->mobility = mobility;
  return METS_OK;
}

mets_status mets_op_begin(mets_device*, mets_stream,
                          const mets_access* accesses, size_t count,
                          uint64_t expected_bytes, mets_op** op) {
  auto fresh = std::make_unique<mets_op>();
  std::lock_guard<std::mutex> lock(g_fake->mutex);
  uint64_t wanted = expected_bytes == METS_UNKNOWN ? 0 : expected_bytes;
  for (size_t i = 0; i < count; ++i) {
    if (accesses[i].kind == METS_NEW) wanted += accesses[i].bytes;
  }
  if (wanted > g_fake->pool) {
    return Fail(METS_OUT_OF_MEMORY, "fake pool smaller than the op's need");
  }
  for (size_t i = 0; i < count; ++i) {
    Buffer* b = FindLocked(accesses[i].address);
    if (accesses[i].kind == METS_NEW || b == nullptr) continue;
    RestoreLocked(b);
    if (accesses[i].kind == METS_WRITE) b->clean = false;
    ++b->pins;
    fresh->pins.push_back({b->offset, b->id});
  }
  ++g_fake->ops;
  if (expected_bytes == METS_UNKNOWN) ++g_fake->unknown_ops;
  fresh->wanted = expected_bytes == METS_UNKNOWN ? kRegion : wanted;
  fresh->outer = t_op;
  *op = t_op = fresh.release();
  return METS_OK;
}

void mets_op_end(mets_op* op, mets_stream stream) {
  if (op == nullptr) return;
  NoteCall("op", stream);
  if (t_op == op) t_op = op->outer;
  std::lock_guard<std::mutex> lock(g_fake->mutex);
  if (op->bytes > op->wanted) ++g_fake->outgrown;
  for (const Pin& pin : op->pins) {
    auto it = g_fake->buffers.find(pin.offset);
    if (it != g_fake->buffers.end() && it->second.id == pin.id) {
      --it->second.pins;
    }
  }
  if (g_fake->evict) EvictAllLocked();
  delete op;
}

void mets_op_allocated(const mets_op* op, uint64_t* bytes, uint64_t* largest,
                       size_t* count) {
  *bytes = op->bytes;
  *largest = op->largest;
  *count = op->count;
}

void mets_op_detach(mets_op* op) {
  if (t_op == op) t_op = op->outer;
}

void mets_op_name(mets_device*, const char*) {}

mets_status mets_get_stats(mets_device*, mets_stats_t* stats) {
  std::lock_guard<std::mutex> lock(g_fake->mutex);
  const size_t size = stats->size;
  *stats = g_fake->stats;
  stats->size = size;
  stats->held_bytes = stats->pinned_bytes = 0;
  for (const auto& entry : g_fake->buffers) {
    const Buffer& b = entry.second;
    if (b.mobility != METS_MOVABLE) stats->held_bytes += b.bytes;
    if (b.pins > 0) stats->pinned_bytes += b.bytes;
  }
  return METS_OK;
}

void mets_reset_peak(mets_device*) {
  std::lock_guard<std::mutex> lock(g_fake->mutex);
  g_fake->stats.peak_live_bytes = g_fake->stats.live_bytes;
}

mets_status mets_memory_info(mets_device*, uint64_t* free, uint64_t* total) {
  std::lock_guard<std::mutex> lock(g_fake->mutex);
  *total = g_fake->pool;
  *free = g_fake->pool - g_fake->stats.resident_bytes;
  return METS_OK;
}

void mets_set_log(mets_client*, mets_log_function, void*) {}

}  // extern "C"
