// A device of the fake CUDA driver, with two streams of the program.
#ifndef METS_TESTS_CLIENT_DEVICE_STREAMS_FIXTURE_H_
#define METS_TESTS_CLIENT_DEVICE_STREAMS_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "client/src/device.h"
#include "common/device/cuda/cuda_context.h"
#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/cuda_map_driver.h"
#include "tests/client/fake_uplink.h"
#include "tests/common/device/cuda/fake_cuda.h"

namespace mets::client {

// Work on a stream is pending from fake_cuda::Occupy until fake_cuda::Release.
// Nothing may be on a stream when a test ends.
class DeviceStreamsTest : public testing::Test {
 protected:
  static constexpr Bytes kSize = MiB(8);  // Whole chunks of the fake uplink.

  DeviceStreamsTest()
      : context_(*CudaContext::Retain(fake_cuda::Api(),
                                      CudaDevices(fake_cuda::Api())->front())),
        scope_(std::make_unique<CudaContext::Scope>(*context_)) {
    fake_cuda::Reset();
    for (CUstream* stream : {&s_, &t_}) {
      METS_CHECK_OK(
          fake_cuda::Api().cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
    }
    auto driver = CudaMapDriver::Create(
        fake_cuda::Api(), CudaDevices(fake_cuda::Api())->front(), {GiB(8)});
    METS_CHECK_OK(driver);
    auto device =
        Device::Create(uplink_, *std::move(driver),
                       {"gpu", "cuda", MiB(256), Bytes(), absl::Seconds(10)});
    METS_CHECK_OK(device);
    device_ = *std::move(device);
  }
  void TearDown() override {
    device_.reset();
    for (CUstream stream : {s_, t_}) {
      METS_CHECK_OK(fake_cuda::Api().cuStreamDestroy(stream));
    }
    scope_.reset();
    context_.reset();
    EXPECT_EQ(fake_cuda::Left(), "");
  }

  char* Alloc(mets_stream stream, Bytes bytes = kSize) {
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = bytes.count();
    options.stream = stream;
    void* address = nullptr;
    const absl::Status status = device_->Alloc(options, &address);
    EXPECT_TRUE(status.ok()) << status;
    return static_cast<char*>(address);
  }
  // An op on `stream` whose work writes `value` when the stream is released.
  void Write(char* address, Bytes bytes, char value, CUstream stream) {
    const mets_access access = {address, 0, METS_WRITE};
    Op* op = nullptr;
    METS_CHECK_OK(device_->BeginOp(&access, 1, 0, &op, stream));
    fake_cuda::Occupy(stream,
                      [=] { std::memset(address, value, bytes.count()); });
    device_->EndOp(op, stream);
  }
  // Reads in host order, after everything.
  bool Holds(char* address, Bytes bytes, char value) {
    const mets_access access = {address, 0, METS_READ};
    Op* op = nullptr;
    METS_CHECK_OK(device_->BeginOp(&access, 1, 0, &op));
    const bool holds =
        address[0] == value &&
        std::memcmp(address, address + 1, bytes.count() - 1) == 0;
    device_->EndOp(op);
    return holds;
  }
  v1::BufferOutcome Evict(char* address, const v1::Slot& slot) {
    mets_buffer_info info = METS_BUFFER_INFO_INIT;
    METS_CHECK_OK(device_->FindBuffer(address, &info));
    v1::OrderDone done;
    v1::BufferResult* result = done.add_results();
    result->set_buffer_id(info.buffer_id);
    result->set_outcome(device_->Evict(info.buffer_id, slot, 1).outcome);
    result->set_slot_id(slot.slot_id());
    const v1::BufferOutcome outcome = result->outcome();
    device_->AnswerEvictions(std::move(done));
    return outcome;
  }

  // Whether work that comes on `stream` now is held up by what is on others.
  bool HeldUp(CUstream stream) {
    bool ran = false;
    CUevent event;
    METS_CHECK_OK(fake_cuda::Api().cuEventCreate(&event, 0));
    METS_CHECK_OK(fake_cuda::Api().cuEventRecord(event, stream));
    ran = fake_cuda::Api().cuEventQuery.call(event) == CUDA_SUCCESS;
    METS_CHECK_OK(fake_cuda::Api().cuEventDestroy(event));
    return !ran;
  }

  // Calls `function`, which has to wait until `stream` is released: true when
  // it had not returned after many looks at the stream.
  bool WaitsFor(CUstream stream, const std::function<void()>& function) {
    std::atomic<bool> returned{false};
    const int looks = fake_cuda::Calls("cuEventQuery");
    std::thread caller([&] {
      function();
      returned = true;
    });
    while (!returned && fake_cuda::Calls("cuEventQuery") < looks + 150) {
      std::this_thread::yield();
    }
    const bool waits = !returned;
    fake_cuda::Release(stream);
    caller.join();
    return waits;
  }

  FakeUplink uplink_{MiB(256)};
  std::unique_ptr<CudaContext> context_;
  std::unique_ptr<CudaContext::Scope> scope_;
  CUstream s_, t_;
  std::unique_ptr<Device> device_;
};

}  // namespace mets::client

#endif  // METS_TESTS_CLIENT_DEVICE_STREAMS_FIXTURE_H_
