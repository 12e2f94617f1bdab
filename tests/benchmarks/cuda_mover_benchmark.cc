// How fast two processes hand a GPU's memory over, beside the raw bus.
//
//   cuda_mover_benchmark [GIB [WINDOW [CHUNK_MIB…]]]      JSON on stdout
//
// GIB each way (default 8); A has the copies of at most WINDOW buffers in its
// stream (default 4); chunks of 128, 32 and 2 MiB.
//
// An owner without a context makes the chunks; client A evicts what client B
// restores into the same chunks. Everything is measured in one run, between the
// same processes: plain copies of the NVIDIA driver (raw), then, with chunks of
// 128, 32 and 2 MiB, mapping, eviction and restore each alone, and the
// hand-over: both at once, a buffer of 128 MiB going to B as soon as its bytes
// are out. Every page carries a tag that is checked after each hand-over.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/cuda_context.h"
#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/cuda_map_driver.h"
#include "common/device/cuda/cuda_pool_driver.h"

namespace mets {
namespace {

constexpr Bytes kBuffer = MiB(128);
constexpr Bytes kExtent = GiB(1);
constexpr Bytes kPage = KiB(4);
constexpr int64_t kBuffersPerExtent = kExtent / kBuffer;
constexpr int kRounds = 3;

struct Options {
  Bytes size = GiB(8);
  size_t window = 4;
  std::vector<Bytes> chunk_sizes = {MiB(128), MiB(32), MiB(2)};
};

int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Runs `work(i)` for 0 to count - 1 on 16 threads.
void InParallel(int64_t count, const std::function<void(int64_t)>& work) {
  std::vector<std::thread> threads;
  for (int64_t first = 0; first < 16; ++first) {
    threads.emplace_back([&work, first, count] {
      for (int64_t i = first; i < count; i += 16) work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One end of a socket between two of the processes.
class Link {
 public:
  explicit Link(int fd) : fd_(fd) {}

  void Put(int64_t value, int passed_fd = -1) const {
    iovec data = {&value, sizeof(value)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (passed_fd >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &passed_fd, sizeof(int));
    }
    METS_CHECK(sendmsg(fd_, &message, 0) == sizeof(value)) << "peer is gone";
  }
  int64_t Get(UniqueFd* passed_fd = nullptr) const {
    int64_t value = 0;
    iovec data = {&value, sizeof(value)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    METS_CHECK(recvmsg(fd_, &message, MSG_WAITALL) == sizeof(value))
        << "peer is gone";
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (passed_fd != nullptr && header != nullptr) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
      passed_fd->reset(fd);
    }
    return value;
  }

 private:
  const int fd_;
};

enum Command : int64_t {
  kEnd,
  kRegister,  // As many extents, with descriptors.
  kPinOwn,    // For raw copies: the client's own mappings of the extents.
  kImport,    // As many chunks, then their size, then descriptors.
  kForget,
  kWriteTags,  // On the host.
  kClearTags,
  kWrongTags,
  kMapAll,
  kUnmapAll,
  kRawOut,  // Of what is mapped.
  kRawIn,
  kEvict,  // One way: copy out and unmap.
  kRestore,
  kGive,  // Evict, and tell the other client of each buffer.
  kTake,  // Restore what the other one tells of.
  // Microseconds that the last eviction or restore spent with the first thing
  // it does for each buffer (waits for the copy; waits for the other client)
  // and with the second (unmaps; maps and begins the copy).
  kFirst,
  kSecond,
};

// A client process: does what the owner says, and answers each command with
// the microseconds that it took, unless the command asks for something.
class Client {
 public:
  Client(Link owner, Link other, int64_t tag, size_t window)
      : owner_(owner), other_(other), tag_(tag), window_(window) {
    const absl::StatusOr<const CudaApi*> api = LoadCudaApi();
    METS_CHECK_OK(api);
    api_ = *api;
    device_ = CudaDevices(*api_)->front();
    map_ = *CudaMapDriver::Create(*api_, device_, {});
    context_ = *CudaContext::Retain(*api_, device_);
    const CudaContext::Scope scope(*context_);
    METS_CHECK_OK(api_->cuStreamCreate(&raw_, CU_STREAM_NON_BLOCKING));
    stream_ = *map_->CreateStream();
  }

  void Serve() {
    for (;;) {
      const int64_t command = owner_.Get();
      if (command == kEnd) return;
      if (command == kRegister) Register();
      if (command == kImport) Import();
      const int64_t begin = NowUs();
      const int64_t answer = Do(command);
      owner_.Put(answer >= 0 ? answer : NowUs() - begin);
    }
  }

 private:
  struct Buffer {
    char* range;
    std::vector<ChunkHandle> chunks;
    std::vector<ExtentPiece> slot;
    char* host;
    Fence fence = Fence::kPassed;
  };

  void Register() {
    const int64_t count = owner_.Get();
    for (int64_t i = 0; i < count; ++i) {
      UniqueFd fd;
      owner_.Get(&fd);
      void* host = mmap(nullptr, kExtent.count(), PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd.get(), 0);
      METS_CHECK(host != MAP_FAILED);
      hosts_.push_back(static_cast<char*>(host));
      extent_fds_.push_back(std::move(fd));
    }
  }
  void Import() {
    const int64_t count = owner_.Get();
    chunk_size_ = Bytes(owner_.Get());
    for (int64_t i = 0; i < count; ++i) {
      owner_.Get(&chunk_fds_.emplace_back());
    }
  }

  // An answer, or -1.
  int64_t Do(int64_t command) {
    switch (command) {
      case kRegister:
        for (UniqueFd& fd : extent_fds_) {
          extents_.push_back(*map_->RegisterExtent(std::move(fd), kExtent));
        }
        break;
      case kPinOwn:
        PinOwn();
        break;
      case kImport:
        MakeBuffers();
        break;
      case kForget:
        DropBuffers();
        break;
      case kWriteTags:
      case kClearTags:
        ForEachTag([&](int64_t* place, int64_t tag) {
          *place = command == kWriteTags ? tag : 0;
        });
        break;
      case kWrongTags:
        return WrongTags();
      case kMapAll:
        for (Buffer& b : buffers_) METS_CHECK_OK(map_->Map(b.range, b.chunks));
        break;
      case kUnmapAll:
        for (Buffer& b : buffers_) Unmap(b);
        break;
      case kRawOut:
      case kRawIn:
        CopyRaw(command == kRawOut);
        break;
      case kEvict:
      case kGive:
        Evict(command == kGive);
        break;
      case kRestore:
      case kTake:
        Restore(command == kTake);
        break;
      case kFirst:
        return first_us_;
      case kSecond:
        return second_us_;
    }
    return -1;
  }

  void MakeBuffers() {
    const int64_t per_buffer = kBuffer / chunk_size_;
    for (size_t i = 0; i * per_buffer < chunk_fds_.size(); ++i) {
      Buffer b;
      b.range = *map_->ReserveRange(kBuffer);
      for (int64_t k = 0; k < per_buffer; ++k) {
        b.chunks.push_back(*map_->ImportChunk(
            std::move(chunk_fds_[i * per_buffer + k]), chunk_size_));
      }
      const Bytes offset = kBuffer * (i % kBuffersPerExtent);
      b.slot = {{extents_[i / kBuffersPerExtent], offset, kBuffer}};
      b.host = hosts_[i / kBuffersPerExtent] + offset.count();
      buffers_.push_back(std::move(b));
    }
    chunk_fds_.clear();
  }
  void DropBuffers() {
    for (Buffer& b : buffers_) {
      for (ChunkHandle chunk : b.chunks) map_->ForgetChunk(chunk);
      map_->ReleaseRange(b.range, kBuffer);
    }
    buffers_.clear();
  }

  void ForEachTag(const std::function<void(int64_t*, int64_t)>& visit) {
    InParallel(buffers_.size(), [&](int64_t i) {
      for (int64_t page = 0; page < kBuffer / kPage; ++page) {
        // At another place in each page.
        char* place = buffers_[i].host + page * kPage.count() + page % 512 * 8;
        visit(reinterpret_cast<int64_t*>(place),
              tag_ << 48 | (i + 1) << 24 | page);
      }
    });
  }
  int64_t WrongTags() {
    std::atomic<int64_t> wrong = 0;
    ForEachTag([&wrong](const int64_t* place, int64_t tag) {
      if (*place != tag) ++wrong;
    });
    return wrong;
  }

  void PinOwn() {
    const CudaContext::Scope scope(*context_);
    for (char* host : hosts_) {
      METS_CHECK_OK(api_->cuMemHostRegister(host, kExtent.count(), 0));
    }
  }
  void CopyRaw(bool out) {
    const CudaContext::Scope scope(*context_);
    for (const Buffer& b : buffers_) {
      const auto device = reinterpret_cast<CUdeviceptr>(b.range);
      METS_CHECK_OK(
          out ? api_->cuMemcpyDtoHAsync(b.host, device, kBuffer.count(), raw_)
              : api_->cuMemcpyHtoDAsync(device, b.host, kBuffer.count(), raw_));
    }
    METS_CHECK_OK(api_->cuStreamSynchronize(raw_));
  }

  void Unmap(const Buffer& b) { METS_CHECK_OK(map_->Unmap(b.range, b.chunks)); }

  // Does two things and adds up the time that each takes.
  template <typename First, typename Second>
  void Timed(First first, Second second) {
    const int64_t begin = NowUs();
    first();
    const int64_t middle = NowUs();
    second();
    first_us_ += middle - begin;
    second_us_ += NowUs() - middle;
  }
  void Evict(bool give) {
    first_us_ = second_us_ = 0;
    size_t begun = 0;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      for (; begun < std::min(buffers_.size(), i + window_); ++begun) {
        Buffer& b = buffers_[begun];
        b.fence = *map_->CopyOut(b.range, b.chunks, b.slot, kBuffer, stream_);
      }
      Timed([&] { METS_CHECK_OK(map_->Wait(buffers_[i].fence)); },
            [&] { Unmap(buffers_[i]); });
      if (give) other_.Put(i);
    }
  }
  void Restore(bool take) {
    first_us_ = second_us_ = 0;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      int64_t which = i;
      Timed([&] { which = take ? other_.Get() : i; },
            [&] {
              Buffer& b = buffers_[which];
              b.fence =
                  *map_->CopyIn(b.range, b.chunks, b.slot, kBuffer, stream_);
            });
    }
    for (Buffer& b : buffers_) METS_CHECK_OK(map_->Wait(b.fence));
  }

  const Link owner_;
  const Link other_;
  const int64_t tag_;
  const size_t window_;
  int64_t first_us_ = 0;
  int64_t second_us_ = 0;
  const CudaApi* api_;
  CudaDevice device_;
  std::unique_ptr<CudaMapDriver> map_;
  std::unique_ptr<CudaContext> context_;
  CUstream raw_;
  StreamHandle stream_;
  std::vector<char*> hosts_;
  std::vector<UniqueFd> extent_fds_, chunk_fds_;
  std::vector<ExtentHandle> extents_;
  std::vector<Buffer> buffers_;
  Bytes chunk_size_;
};

// The owner: makes chunks and extents, tells both clients what to do, and
// writes down what it took.
class Owner {
 public:
  Owner(Link a, Link b, const Options& options)
      : a_(a),
        b_(b),
        size_(options.size),
        chunk_sizes_(options.chunk_sizes),
        api_(*LoadCudaApi()),
        device_(CudaDevices(*api_)->front()) {
    CudaPoolOptions pool;
    pool.total = size_;
    pool_ = std::make_unique<CudaPoolDriver>(*api_, device_, pool);
  }

  std::string Run() {
    Add("device", absl::StrCat("\"", device_.name, "\""));
    Add("gib_each_way", size_ / GiB(1));
    MakeExtents();
    for (Bytes chunk_size : chunk_sizes_) Measure(chunk_size);
    a_.Put(kEnd);
    b_.Put(kEnd);
    return absl::StrCat("{\n", json_, "\n}\n");
  }

 private:
  void Add(const std::string& key, const std::string& value) {
    absl::StrAppend(&json_, json_.empty() ? "" : ",\n", "  \"", key,
                    "\": ", value);
  }
  void Add(const std::string& key, double value) {
    Add(key, absl::StrCat(value));
  }

  int64_t Ask(const Link& client, Command command) {
    client.Put(command);
    return client.Get();
  }
  // Both at once; microseconds until the last has answered.
  int64_t AskBoth(Command for_a, Command for_b) {
    const int64_t begin = NowUs();
    a_.Put(for_a);
    b_.Put(for_b);
    a_.Get();
    b_.Get();
    return NowUs() - begin;
  }
  double GBps(Bytes size, int64_t us) const { return size.count() / 1e3 / us; }

  void MakeExtents() {
    const int64_t count = size_ / kExtent;
    std::vector<UniqueFd> fds(2 * count);
    const int64_t begin = NowUs();
    InParallel(2 * count, [&](int64_t i) {
      absl::StatusOr<UniqueFd> fd = pool_->CreateExtent(kExtent);
      METS_CHECK_OK(fd);
      fds[i] = *std::move(fd);
    });
    Add("extents_made_gbps", GBps(size_ * 2, NowUs() - begin));
    for (const Link* client : {&a_, &b_}) {
      client->Put(kRegister);
      client->Put(count);
      for (int64_t i = 0; i < count; ++i) {
        client->Put(0, fds[client == &a_ ? i : count + i].get());
      }
    }
    const int64_t a = a_.Get();
    Add("extent_register_ms", 1e-3 * std::max(a, b_.Get()) / count);
    AskBoth(kPinOwn, kPinOwn);
  }

  void Measure(Bytes chunk_size) {
    const std::string key = absl::StrCat("chunk_", chunk_size / MiB(1), "mib_");
    const int64_t buffers = size_ / kBuffer;
    const int64_t count = size_ / chunk_size;
    std::vector<UniqueFd> chunks;
    int64_t begin = NowUs();
    for (int64_t i = 0; i < count; ++i) {
      absl::StatusOr<UniqueFd> chunk = pool_->CreateChunk(chunk_size);
      METS_CHECK_OK(chunk);
      chunks.push_back(*std::move(chunk));
    }
    Add(key + "create_us", 1. * (NowUs() - begin) / count);
    for (const Link* client : {&a_, &b_}) {
      client->Put(kImport);
      client->Put(count);
      client->Put(chunk_size.count());
      for (const UniqueFd& chunk : chunks) client->Put(0, chunk.get());
      Add(key + (client == &a_ ? "import_us" : "import_again_us"),
          1. * client->Get() / count);
    }
    AskBoth(kWriteTags, kWriteTags);
    AskBoth(kMapAll, kMapAll);  // The first time is not measured.
    const double raw_out = GBps(size_, Ask(a_, kRawOut));
    const double raw_in = GBps(size_, Ask(b_, kRawIn));
    AskBoth(kUnmapAll, kUnmapAll);
    Add(key + "map_buffer_us", 1. * Ask(a_, kMapAll) / buffers);
    Add(key + "unmap_buffer_us", 1. * Ask(a_, kUnmapAll) / buffers);
    MeasureOneWay(key, raw_out, raw_in);
    MeasureHandOver(key);
    AskBoth(kForget, kForget);
    for (UniqueFd& chunk : chunks) {
      METS_CHECK_OK(pool_->ReleaseChunk(std::move(chunk)));
    }
  }

  void MeasureOneWay(const std::string& key, double raw_out, double raw_in) {
    const double ms = 1e-3;
    const double in = GBps(size_, Ask(a_, kRestore));
    Add(key + "restore_maps_ms", ms * Ask(a_, kSecond));
    const double out = GBps(size_, Ask(a_, kEvict));
    Add(key + "evict_unmaps_ms", ms * Ask(a_, kSecond));
    Add(key + "raw_out_gbps", raw_out);
    Add(key + "evict_gbps", out);
    Add(key + "evict_to_raw", out / raw_out);
    Add(key + "raw_in_gbps", raw_in);
    Add(key + "restore_gbps", in);
    Add(key + "restore_to_raw", in / raw_in);
  }

  // Raw and hand-over by turns: the bus is not equally fast all the time.
  void MeasureHandOver(const std::string& key) {
    const double ms = 1e-3;
    std::vector<double> raw, given;
    int64_t wrong = 0;
    for (int i = 0; i < kRounds; ++i) {
      AskBoth(kMapAll, kMapAll);
      raw.push_back(GBps(size_ * 2, AskBoth(kRawOut, kRawIn)));
      AskBoth(kUnmapAll, kUnmapAll);
      Ask(a_, kWriteTags);
      Ask(a_, kRestore);
      Ask(a_, kClearTags);
      given.push_back(GBps(size_ * 2, AskBoth(kGive, kTake)));
      if (i + 1 == kRounds) {
        Add(key + "give_waits_ms", ms * Ask(a_, kFirst));
        Add(key + "give_unmaps_ms", ms * Ask(a_, kSecond));
        Add(key + "take_waits_ms", ms * Ask(b_, kFirst));
        Add(key + "take_maps_ms", ms * Ask(b_, kSecond));
      }
      Ask(b_, kClearTags);
      Ask(b_, kEvict);
      wrong += Ask(a_, kWrongTags) + Ask(b_, kWrongTags);
    }
    Add(key + "raw_both_gbps",
        absl::StrCat("[", absl::StrJoin(raw, ", "), "]"));
    Add(key + "hand_over_gbps",
        absl::StrCat("[", absl::StrJoin(given, ", "), "]"));
    std::sort(raw.begin(), raw.end());
    std::sort(given.begin(), given.end());
    Add(key + "hand_over_to_raw", given[kRounds / 2] / raw[kRounds / 2]);
    Add(key + "wrong_pages", wrong);
  }

  const Link a_;
  const Link b_;
  const Bytes size_;
  const std::vector<Bytes> chunk_sizes_;
  const CudaApi* const api_;
  const CudaDevice device_;
  std::unique_ptr<CudaPoolDriver> pool_;
  std::string json_;
};

int Main(const Options& options) {
  int a[2], b[2], between[2];
  for (int* pair : {a, b, between}) {
    METS_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  }
  // A process that has used CUDA cannot fork: first the processes.
  if (fork() == 0) {
    Client(Link(a[1]), Link(between[0]), 1, options.window).Serve();
    _exit(0);
  }
  if (fork() == 0) {
    Client(Link(b[1]), Link(between[1]), 2, options.window).Serve();
    _exit(0);
  }
  for (int fd : {a[1], b[1], between[0], between[1]}) close(fd);
  std::fputs(Owner(Link(a[0]), Link(b[0]), options).Run().c_str(), stdout);
  int failed = 0;
  for (int status; wait(&status) > 0;) failed += status != 0;
  return failed;
}

}  // namespace
}  // namespace mets

int main(int argc, char** argv) {
  mets::Options options;
  if (argc > 1) options.size = mets::GiB(std::atoi(argv[1]));
  if (argc > 2) options.window = std::atoi(argv[2]);
  if (argc > 3) options.chunk_sizes.clear();
  for (int i = 3; i < argc; ++i) {
    options.chunk_sizes.push_back(mets::MiB(std::atoi(argv[i])));
  }
  return mets::Main(options);
}
