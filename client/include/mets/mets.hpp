// mets.hpp: the C++ interface of libmets, a thin layer on mets.h, which says
// what everything means. Header only, C++17, throws nothing.
//
//     mets::Expected<mets::Client> client = mets::Client::Open({});
//     if (!client) die(client.status().message());
//     mets::Expected<mets::Device> device = client->OpenDevice();
//     mets::Expected<mets::Buffer> a = device->Allocate(64 << 20);
//     {
//       mets::Expected<mets::Op> op = device->Begin({mets::Write(*a)});
//       if (op) fill(a->as<float>());
//     }  // The op ends here...
//     a = mets::Buffer();  // ...and the buffer is freed here.
//
// Ownership. A Client and a Device are handles, to be copied freely: the
// session lasts as long as the process. A Buffer, Op or Section is moved, not
// copied, and frees, ends or leaves when it goes; so is a Share.
//
// Errors. What can fail returns a Status or an Expected, which the caller must
// look at. Taking the value of an Expected that has none ends the program with
// the error's text.
//
// Threads. As in mets.h; one object is used by one thread at a time. A Section
// ends on the thread on which it began.
#ifndef METS_METS_HPP_
#define METS_METS_HPP_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "mets/mets.h"

namespace mets {

// A code of mets.h, and what it says to people.
class [[nodiscard]] Status {
 public:
  Status() = default;  // METS_OK
  Status(mets_status code, std::string message)
      : code_(code), message_(std::move(message)) {}
  // What a function of mets.h has returned to this thread just now.
  static Status Of(mets_status code) {
    return code == METS_OK ? Status() : Status(code, mets_last_error());
  }

  bool ok() const { return code_ == METS_OK; }
  explicit operator bool() const { return ok(); }
  mets_status code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  mets_status code_ = METS_OK;
  std::string message_;
};

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : value_(std::move(value)) {}
  // REQUIRES: !status.ok()
  Expected(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }

  // REQUIRES: ok()
  T& value() & { return *Checked(); }
  const T& value() const& { return *const_cast<Expected*>(this)->Checked(); }
  T value() && { return std::move(*Checked()); }
  T& operator*() & { return *Checked(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*Checked()); }
  T* operator->() { return Checked(); }
  const T* operator->() const { return &value(); }

 private:
  T* Checked() {
    if (!value_.has_value()) {
      std::fprintf(stderr, "METS: %s\n", status_.message().c_str());
      std::abort();
    }
    return &*value_;
  }

  std::optional<T> value_;
  Status status_;
};

namespace internal {

// Move-only: calls Free when the last owner goes. T has an empty state.
template <typename T, void (*Free)(T&)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(T value) : value_(value) {}
  Owned(Owned&& other) noexcept : value_(std::exchange(other.value_, T())) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      Reset();
      value_ = std::exchange(other.value_, T());
    }
    return *this;
  }
  ~Owned() { Reset(); }

  T& get() { return value_; }
  const T& get() const { return value_; }
  void Reset() {
    Free(value_);
    value_ = T();
  }

 private:
  T value_;
};

}  // namespace internal

// An allocation of a device. Empty after it was moved from. While no op uses
// it, its bytes may be in host memory.
class Buffer {
 public:
  Buffer() = default;

  void* data() const { return owned_.get().address; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data());
  }
  uint64_t bytes() const { return owned_.get().bytes; }
  explicit operator bool() const { return data() != nullptr; }

  Status SetMobility(mets_mobility mobility) {
    return Status::Of(mets_set_mobility(owned_.get().device, data(), mobility));
  }
  // Frees it in a stream's order, rather than in host order as the destructor.
  void Free(mets_stream stream) {
    owned_.get().stream = stream;
    owned_.Reset();
  }

 private:
  friend class Device;
  struct Range {
    mets_device* device = nullptr;
    void* address = nullptr;
    uint64_t bytes = 0;
    mets_stream stream = nullptr;
  };
  static void FreeRange(Range& range) {
    if (range.address == nullptr) return;
    mets_free(range.device, range.address, range.stream);
  }
  explicit Buffer(Range range) : owned_(range) {}

  internal::Owned<Range, FreeRange> owned_;
};

// A share that the process has: read-only memory, its own or another's.
// Detached when it goes. Empty after it was moved from.
class Share {
 public:
  Share() = default;

  const void* data() const { return owned_.get().address; }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data());
  }
  uint64_t bytes() const { return owned_.get().bytes; }
  explicit operator bool() const { return data() != nullptr; }

 private:
  friend class Device;
  struct Range {
    mets_device* device = nullptr;
    void* address = nullptr;
    uint64_t bytes = 0;
  };
  static void Detach(Range& range) {
    if (range.address == nullptr) return;
    (void)mets_share_detach(range.device, range.address);
  }
  explicit Share(Range range) : owned_(range) {}

  internal::Owned<Range, Detach> owned_;
};

// What an op does with a buffer, or with any address in it.
inline mets_access Read(const void* address) { return {address, 0, METS_READ}; }
inline mets_access Read(const Buffer& buffer) { return Read(buffer.data()); }
inline mets_access Write(const void* address) {
  return {address, 0, METS_WRITE};
}
inline mets_access Write(const Buffer& buffer) { return Write(buffer.data()); }
// It allocates so much, in one piece.
inline mets_access New(uint64_t bytes) { return {nullptr, bytes, METS_NEW}; }

// An op that runs: its buffers are resident and stay. Ends when it goes.
class Op {
 public:
  Op() = default;

  // Its work is on `stream`; without a call, in host order, done.
  void End(mets_stream stream) {
    mets_op_end(std::exchange(owned_.get(), nullptr), stream);
  }
  // The calling thread leaves it, without ending it.
  void Detach() { mets_op_detach(owned_.get()); }

 private:
  friend class Device;
  static void EndInHostOrder(mets_op*& op) { mets_op_end(op, nullptr); }
  explicit Op(mets_op* op) : owned_(op) {}

  internal::Owned<mets_op*, EndInHostOrder> owned_;
};

// A part of a METS_GATED program that computes. Left when it goes.
class Section {
 public:
  Section() = default;

 private:
  friend class Device;
  static void Leave(mets_device*& device) {
    if (device != nullptr) mets_gate_leave(device);
  }
  explicit Section(mets_device* device) : owned_(device) {}

  internal::Owned<mets_device*, Leave> owned_;
};

// What a share is to be, or must be; see mets_share_options.
struct ShareOptions {
  std::string name;
  std::string checksum;  // "": none, or any.
  uint64_t bytes = 0;    // Attach: 0: any.
};

struct AllocateOptions {
  uint64_t align = 0;  // A power of two up to 64 KiB; 0: 64.
  mets_stream stream = nullptr;
  mets_mobility mobility = METS_MOVABLE;
  int64_t deadline_ms = -1;  // -1: METS_WAIT
};

// An attached device.
class Device {
 public:
  // Waits for memory as mets_alloc does.
  Expected<Buffer> Allocate(uint64_t bytes, const AllocateOptions& how = {}) {
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = bytes;
    options.align = how.align;
    options.stream = how.stream;
    options.mobility = how.mobility;
    options.deadline_ms = how.deadline_ms;
    void* address = nullptr;
    const Status status = Status::Of(mets_alloc(device_, &options, &address));
    if (!status) return status;
    return Buffer(Buffer::Range{device_, address, bytes, nullptr});
  }

  // Makes a buffer a share, and takes it over; an error leaves it as it was.
  Expected<Share> Publish(Buffer& buffer, const ShareOptions& how) {
    const mets_share_options options = ToC(how);
    const Status status =
        Status::Of(mets_share_publish(device_, buffer.data(), &options));
    if (!status) return status;
    const Buffer::Range range =
        std::exchange(buffer.owned_.get(), Buffer::Range());
    return Share(Share::Range{device_, range.address, range.bytes});
  }
  // Maps what another process has published. METS_NOT_FOUND: nobody has yet.
  Expected<Share> Attach(const ShareOptions& how) {
    const mets_share_options options = ToC(how);
    void* address = nullptr;
    Status status = Status::Of(mets_share_attach(device_, &options, &address));
    if (!status) return status;
    mets_buffer_info info = METS_BUFFER_INFO_INIT;
    status = Status::Of(mets_find(device_, address, &info));
    Share share(Share::Range{device_, address, info.bytes});
    if (!status) return status;
    return share;
  }

  // Waits until everything named is resident; see mets_op_begin. `name`, as
  // "MatMul", is for people and for finding the step.
  Expected<Op> Begin(const mets_access* accesses, size_t count,
                     mets_stream stream = nullptr, uint64_t expected_bytes = 0,
                     const char* name = nullptr) {
    if (name != nullptr) mets_op_name(device_, name);
    mets_op* op = nullptr;
    const Status status = Status::Of(
        mets_op_begin(device_, stream, accesses, count, expected_bytes, &op));
    if (!status) return status;
    return Op(op);
  }
  Expected<Op> Begin(std::initializer_list<mets_access> accesses,
                     mets_stream stream = nullptr, uint64_t expected_bytes = 0,
                     const char* name = nullptr) {
    return Begin(accesses.begin(), accesses.size(), stream, expected_bytes,
                 name);
  }

  // Waits for the job's turn; see mets_gate_enter.
  Expected<Section> Enter() {
    const Status status = Status::Of(mets_gate_enter(device_));
    if (!status) return status;
    return Section(device_);
  }
  void StepBegins() { mets_step_hint(device_); }

  Expected<mets_device_info> Info() const {
    mets_device_info info = METS_DEVICE_INFO_INIT;
    const Status status = Status::Of(mets_device_get_info(device_, &info));
    if (!status) return status;
    return info;
  }
  Expected<mets_stats_t> Stats() const {
    mets_stats_t stats = METS_STATS_INIT;
    const Status status = Status::Of(mets_get_stats(device_, &stats));
    if (!status) return status;
    return stats;
  }

  mets_device* get() const { return device_; }

 private:
  static mets_share_options ToC(const ShareOptions& how) {
    mets_share_options options = METS_SHARE_OPTIONS_INIT;
    options.name = how.name.c_str();
    if (!how.checksum.empty()) options.checksum = how.checksum.c_str();
    options.bytes = how.bytes;
    return options;
  }

  friend class Client;
  explicit Device(mets_device* device) : device_(device) {}

  mets_device* device_;
};

struct OpenOptions {
  std::string run_dir;           // "": METS_RUN_DIR, and so on as in mets.h
  std::string job;               // "": METS_JOB
  uint64_t limit_bytes = 0;      // 0: METS_LIMIT
  uint64_t guarantee_bytes = 0;  // 0: METS_GUARANTEE
  int32_t priority = 0;          // 0: METS_PRIORITY
};

// The process's session with metsd.
class Client {
 public:
  // Connects, for at most 10 s. A process has one session: what a later call
  // asks for does not count. METS_FAILED: libmets is of another version.
  static Expected<Client> Open(const OpenOptions& how) {
    if (mets_abi_version() != METS_ABI_VERSION) {
      return Status(METS_FAILED,
                    "libmets has version " +
                        std::to_string(mets_abi_version()) +
                        " of its interface, this program was built for " +
                        std::to_string(METS_ABI_VERSION));
    }
    mets_open_options options = METS_OPEN_OPTIONS_INIT;
    if (!how.run_dir.empty()) options.run_dir = how.run_dir.c_str();
    if (!how.job.empty()) options.job = how.job.c_str();
    options.limit_bytes = how.limit_bytes;
    options.guarantee_bytes = how.guarantee_bytes;
    options.priority = how.priority;
    mets_client* client = nullptr;
    const Status status = Status::Of(mets_open(&options, &client));
    if (!status) return status;
    return Client(client);
  }

  // `id` "": the daemon's first device.
  Expected<Device> OpenDevice(const std::string& id = "",
                              mets_device_mode mode = METS_OPS_SEEN) {
    mets_device* device = nullptr;
    const Status status = Status::Of(mets_device_open(
        client_, id.empty() ? nullptr : id.c_str(), mode, &device));
    if (!status) return status;
    return Device(device);
  }

  mets_client* get() const { return client_; }

 private:
  explicit Client(mets_client* client) : client_(client) {}

  mets_client* client_;
};

}  // namespace mets

#endif  // METS_METS_HPP_
