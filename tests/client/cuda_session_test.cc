// libmets with a real metsd that shares a GPU. Skipped where there is none.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/src/session.h"
#include "tests/client/device_stats.h"
#include "tests/client/metsd_process.h"
#include "tests/contract/cuda_backends.h"

namespace mets::client {
namespace {

// A job of this process on the GPU; several may be open at once.
class GpuJob {
 public:
  GpuJob(const MetsdProcess& metsd, const Backend& gpu, const std::string& name)
      : gpu_(gpu) {
    Settings settings;
    settings.run_dir = metsd.run_dir();
    settings.job = name;
    settings.wait = absl::Seconds(30);
    auto session = Session::Start(std::move(settings));
    METS_CHECK_OK(session);
    session_ = *std::move(session);
    auto device = session_->OpenDevice("", true);
    METS_CHECK_OK(device);
    device_ = *device;
  }

  Device& device() { return *device_; }

  // Allocates in an op of known need, and fills.
  char* Make(const std::string& bytes) {
    const mets_access access = {nullptr, bytes.size(), METS_NEW};
    Op* op = nullptr;
    METS_CHECK_OK(device_->BeginOp(&access, 1, 0, &op));
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = bytes.size();
    options.align = 256;
    void* address = nullptr;
    METS_CHECK_OK(device_->Alloc(options, &address));
    gpu_.write(static_cast<char*>(address), bytes);
    if (op != nullptr) device_->EndOp(op);
    return static_cast<char*>(address);
  }
  // Does something in an op that touches one buffer.
  template <typename F>
  auto InOp(char* address, mets_access_kind kind, F work) {
    const mets_access access = {address, 0, kind};
    Op* op = nullptr;
    METS_CHECK_OK(device_->BeginOp(&access, 1, 0, &op));
    auto result = work();
    if (op != nullptr) device_->EndOp(op);
    return result;
  }

  std::string Read(char* address, size_t size) {
    return InOp(address, METS_READ, [&] { return gpu_.read(address, size); });
  }
  void Write(char* address, const std::string& bytes) {
    InOp(address, METS_WRITE, [&] {
      gpu_.write(address, bytes);
      return 0;
    });
  }
  mets_stats_t Stats() { return StatsOf(*device_); }

 private:
  const Backend& gpu_;
  std::unique_ptr<Session> session_;
  Device* device_ = nullptr;
};

class CudaSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    gpu_ = CudaBackend();
    if (!gpu_.missing.empty()) GTEST_SKIP() << gpu_.missing;
    metsd_ = std::make_unique<MetsdProcess>("cuda:0:512MiB", "4GiB");
  }

  Backend gpu_;
  std::unique_ptr<MetsdProcess> metsd_;
};

TEST_F(CudaSessionTest, BuffersBeyondThePoolKeepEveryByte) {
  GpuJob job(*metsd_, gpu_, "large");
  EXPECT_EQ(job.device().options().kind, "cuda");
  EXPECT_EQ(job.device().options().pool, MiB(512));
  EXPECT_EQ(job.device().slab_threshold(), MiB(8));
  std::mt19937 random(7);
  std::vector<std::pair<char*, std::string>> buffers;
  for (int i = 0; i < 24; ++i) {
    // Small ones share slabs; odd sizes end within a chunk.
    const size_t size = i % 3 == 0 ? 1 + random() % (6 << 20)
                                   : (8 << 20) + random() % (64 << 20);
    std::string bytes = Pattern(size, i);
    buffers.emplace_back(job.Make(bytes), std::move(bytes));
  }
  for (int i = 0; i < 100; ++i) {
    auto& [address, bytes] = buffers[random() % buffers.size()];
    if (random() % 3 == 0) {
      bytes = Pattern(bytes.size(), random());
      job.Write(address, bytes);
    } else {
      EXPECT_TRUE(job.Read(address, bytes.size()) == bytes) << "step " << i;
    }
  }
  for (auto& [address, bytes] : buffers) {
    EXPECT_TRUE(job.Read(address, bytes.size()) == bytes);
  }
  EXPECT_GT(job.Stats().evicted_bytes_total, 0u);
  EXPECT_GT(job.Stats().clean_evictions_total, 0u);
  for (auto& [address, bytes] : buffers) job.device().Free(address);
}

TEST_F(CudaSessionTest, TwoJobsTakeTheMemoryFromEachOther) {
  GpuJob first(*metsd_, gpu_, "first");
  GpuJob second(*metsd_, gpu_, "second");
  const size_t size = 300 << 20;
  std::string bytes[] = {Pattern(size, 1), Pattern(size, 2)};
  GpuJob* const jobs[] = {&first, &second};
  char* addresses[] = {first.Make(bytes[0]), second.Make(bytes[1])};
  for (int i = 0; i < 6; ++i) {
    const int who = i % 2;
    EXPECT_TRUE(jobs[who]->Read(addresses[who], size) == bytes[who]);
    bytes[who] = Pattern(size, i + 3);
    jobs[who]->Write(addresses[who], bytes[who]);
  }
  EXPECT_GE(first.Stats().evicted_bytes_total, 3 * size);
  EXPECT_GE(second.Stats().evicted_bytes_total, 2 * size);
}

TEST_F(CudaSessionTest, AShareIsReadWhereItIs) {
  GpuJob publisher(*metsd_, gpu_, "publisher");
  GpuJob reader(*metsd_, gpu_, "reader");
  const std::string bytes = Pattern(100 << 20, 5);
  char* published = publisher.Make(bytes);
  ASSERT_TRUE(publisher.device().Publish(published, {"weights", "c", 0}).ok());
  const auto attached =
      reader.device().AttachShare({"weights", "c", bytes.size()});
  ASSERT_TRUE(attached.ok()) << attached.status();
  char* there = static_cast<char*>(*attached);
  EXPECT_TRUE(gpu_.read(there, bytes.size()) == bytes);
  // More than what is left beside it: it stays.
  const std::string more = Pattern(300 << 20, 6);
  char* rival = reader.Make(more);
  publisher.Make(Pattern(200 << 20, 7));
  EXPECT_TRUE(reader.Read(rival, more.size()) == more);
  publisher.device().Free(published);
  EXPECT_TRUE(gpu_.read(there, bytes.size()) == bytes);
  ASSERT_TRUE(reader.device().DetachShare(there).ok());
  EXPECT_TRUE(absl::IsNotFound(
      reader.device().AttachShare({"weights", "", 0}).status()));
}

// By design: docs/sharing_memory.md names the alternative.
TEST_F(CudaSessionTest, TheDriverRefusesLegacyIpcHandlesOfBuffers) {
  GpuJob job(*metsd_, gpu_, "legacy");
  char* buffer = job.Make(Pattern(16 << 20, 1));
  struct Handle {
    char reserved[64];
  } handle;
  using Get = int (*)(Handle*, unsigned long long);
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto get = reinterpret_cast<Get>(dlsym(driver, "cuIpcGetMemHandle"));
  ASSERT_NE(get, nullptr);
  const int code = get(&handle, reinterpret_cast<uintptr_t>(buffer));
  RecordProperty("cuIpcGetMemHandle", code);
  EXPECT_NE(code, 0);
}

TEST_F(CudaSessionTest, MoreThanThePoolIsRefused) {
  GpuJob job(*metsd_, gpu_, "greedy");
  mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
  options.bytes = 600 << 20;
  void* address = nullptr;
  const absl::Status status = job.device().Alloc(options, &address);
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
}

}  // namespace
}  // namespace mets::client
