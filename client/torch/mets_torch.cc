#include "client/torch/mets_torch.h"

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>

#include "client/loader/own_folder.h"
#include "client/loader/cuda_device_id.h"
#include "client/torch/torch_memory.h"

namespace mets {
namespace {

// Set once; lives until the process ends.
std::atomic<TorchMemory*> g_memory{nullptr};
std::mutex g_open_mutex;
thread_local std::string t_error;

TorchMemory* Memory() { return g_memory.load(std::memory_order_acquire); }

int Fail(mets_status status, std::string error) {
  t_error = std::move(error);
  return status;
}

int FromMets(const TorchMemory& memory, mets_status status) {
  return status == METS_OK ? METS_OK : Fail(status, memory.last_error());
}

int NotOpen() {
  return Fail(METS_INVALID_ARGUMENT,
              "METS has no device here: call mets.torch.enable() first");
}

int Open(int index) {
  std::lock_guard<std::mutex> lock(g_open_mutex);
  const TorchMemory* known = Memory();
  if (known != nullptr && known->index() == index) return METS_OK;
  if (known != nullptr) {
    return Fail(METS_INVALID_ARGUMENT,
                "METS has attached cuda:" + std::to_string(known->index()) +
                    " here: a process has one device");
  }
  MetsApi api;
  std::string id, error;
  if (!CudaDeviceId(kCudaDriver, index, &id, &error) ||
      !LoadMetsApi(LibmetsPath(OwnFolder()), &api, &error)) {
    return Fail(METS_FAILED, error);
  }
  mets_status status = METS_OK;
  std::unique_ptr<TorchMemory> memory =
      TorchMemory::Open(api, index, id, &status, &error);
  if (memory == nullptr) return Fail(status, error);
  g_memory.store(memory.release(), std::memory_order_release);
  return METS_OK;
}

}  // namespace
}  // namespace mets

using mets::FromMets;
using mets::Memory;
using mets::NotOpen;
using mets::TorchMemory;

int mets_torch_open(int device) { return mets::Open(device); }

const char* mets_torch_last_error(void) { return mets::t_error.c_str(); }

int mets_torch_enter(void) {
  TorchMemory* memory = Memory();
  return memory == nullptr ? NotOpen() : FromMets(*memory, memory->EnterGate());
}

void mets_torch_leave(void) {
  if (TorchMemory* memory = Memory()) memory->LeaveGate();
}

void mets_torch_hint(void) {
  if (TorchMemory* memory = Memory()) memory->StepHint();
}

int mets_torch_stats(mets_stats_t* stats) {
  TorchMemory* memory = Memory();
  return memory == nullptr ? NotOpen()
                           : FromMets(*memory, memory->Stats(stats));
}

// The one place where METS throws. PyTorch takes whatever address it is given
// for memory, NULL too, so that returning NULL ends in an illegal access in
// some later kernel. Its own allocator throws from the same call, so all
// callers stand that, also autograd's threads, which carry the exception to the
// thread that waits; PyTorch makes a Python RuntimeError with this text of a
// std::runtime_error. (Its OutOfMemoryError's class is in a library that this
// one does not link; mets.torch.step() makes it one.) Needs the process' own
// libstdc++, never a static one.
void* mets_torch_alloc(size_t bytes, int device, void* stream) {
  TorchMemory* memory = Memory();
  void* address = nullptr;
  std::string error = "METS has no device here: call mets.torch.enable()";
  if (memory == nullptr ||
      !memory->Allocate(bytes, device, stream, &address, &error)) {
    throw std::runtime_error(error);
  }
  return address;
}

void mets_torch_free(void* address, size_t, int, void* stream) {
  if (TorchMemory* memory = Memory()) memory->Free(address, stream);
}

void mets_torch_record_stream(void* address, void* stream) {
  if (TorchMemory* memory = Memory()) memory->RecordStream(address, stream);
}

void mets_torch_begin_pool(void) {
  throw std::runtime_error(
      "METS: CUDA graphs and memory pools are not possible with "
      "mets.torch.enable(): a graph uses memory after it was freed");
}
