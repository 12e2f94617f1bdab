#include "client/torch/torch_memory.h"

#include <algorithm>

namespace mets {
namespace {

// As PyTorch's own allocator aligns: kernels are chosen by it.
constexpr uint64_t kAlign = 512;

// NULL is host order in METS, and the legacy default stream in CUDA, which also
// calls it 1 (CU_STREAM_LEGACY).
mets_stream ToMets(void* stream) {
  return stream != nullptr ? stream : reinterpret_cast<mets_stream>(1);
}

}  // namespace

std::unique_ptr<TorchMemory> TorchMemory::Open(const MetsApi& api, int index,
                                               const std::string& id,
                                               mets_status* status,
                                               std::string* error) {
  mets_open_options options = METS_OPEN_OPTIONS_INIT;
  mets_client* client = nullptr;
  mets_device* device = nullptr;
  *status = api.open(&options, &client);
  if (*status == METS_OK) {
    *status = api.device_open(client, id.c_str(), METS_GATED, &device);
  }
  if (*status != METS_OK) {
    *error = api.last_error();
    return nullptr;
  }
  return std::unique_ptr<TorchMemory>(new TorchMemory(api, index, device));
}

bool TorchMemory::Allocate(size_t bytes, int index, void* stream,
                           void** address, std::string* error) {
  *address = nullptr;
  if (bytes == 0) return true;
  if (index != index_) {
    *error = "METS has attached cuda:" + std::to_string(index_) +
             ", so that this process cannot use cuda:" + std::to_string(index) +
             "; name the device in mets.torch.enable(device)";
    return false;
  }
  mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
  options.bytes = bytes;
  options.align = kAlign;
  options.stream = ToMets(stream);
  options.mobility = METS_HELD;
  const mets_status status = api_.alloc(device_, &options, address);
  if (status == METS_OK) return true;
  // Programs know by these first words that a smaller batch may help.
  *error =
      status == METS_OUT_OF_MEMORY ? "CUDA out of memory. METS: " : "METS: ";
  *error += api_.last_error();
  return false;
}

void TorchMemory::Free(void* address, void* stream) {
  if (address == nullptr) return;
  for (void* other : TakeRecorded(address)) {
    if (other != stream) SayUsed(address, other);
  }
  api_.free(device_, address, ToMets(stream));
}

void TorchMemory::RecordStream(void* address, void* stream) {
  if (address == nullptr || api_.owns(device_, address) == 0) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<void*>& streams = recorded_[address];
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
  }
  SayUsed(address, stream);
}

// An op that fails could not bring the buffer back: it has moved, and so its
// streams had drained.
void TorchMemory::SayUsed(void* address, void* stream) {
  const mets_access use = {address, 0, METS_READ};
  mets_op* op = nullptr;
  if (api_.op_begin(device_, ToMets(stream), &use, 1, 0, &op) == METS_OK) {
    api_.op_end(op, ToMets(stream));
  }
}

std::vector<void*> TorchMemory::TakeRecorded(void* address) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (recorded_.empty()) return {};
  auto it = recorded_.find(address);
  if (it == recorded_.end()) return {};
  std::vector<void*> streams = std::move(it->second);
  recorded_.erase(it);
  return streams;
}

}  // namespace mets
