#include "tf_allocator/core/op_scope.h"

namespace mets {

thread_local OpScope* OpScope::current_ = nullptr;

mets_status OpScope::BeginMetsOp(const mets_access* accesses, size_t count,
                                 uint64_t expected, mets_op** op) {
  const MetsApi& api = memory_->api();
  mets_device* device = memory_->device();
  api.op_name(device, state_->type.c_str());
  return api.op_begin(device, memory_->stream(), accesses, count, expected, op);
}

OpScope::BeginResult OpScope::Begin(AccessList* accesses, uint64_t signature,
                                    std::string* error) {
  signature_ = signature;
  Need need;
  uint64_t expected = 0;
  if (state_->needs()->Find(signature, &need)) {
    for (uint32_t i = 0; i < need.count; ++i) {
      accesses->Add(nullptr, METS_NEW, need.sizes[i]);
    }
    expected = need.rest_bytes;
  } else if (accesses->empty()) {
    return BeginResult::kOk;  // Pins nothing: begins when it allocates.
  } else if (tracks_) {
    expected = METS_UNKNOWN;
  }
  const mets_status status =
      BeginMetsOp(accesses->data(), accesses->size(), expected, &op_);
  begun_ = status == METS_OK;
  if (begun_ || status == METS_FORKED) return BeginResult::kOk;
  *error = memory_->api().last_error();
  return status == METS_INVALID_ARGUMENT ? BeginResult::kStale
                                         : BeginResult::kFailed;
}

bool OpScope::BeginForAllocation(std::string* error) {
  if (begun_ || !tracks_) return true;
  const mets_status status = BeginMetsOp(nullptr, 0, METS_UNKNOWN, &op_);
  begun_ = status == METS_OK;
  if (begun_ || status == METS_FORKED) return true;
  failure_ = *error = memory_->api().last_error();
  return false;
}

void OpScope::NoteAllocated(void* address, uint64_t bytes) {
  ++allocations_;
  live_bytes_ += bytes;
  if (HasRoom()) allocated_[allocated_count_++] = {address, bytes, false};
  if (live_bytes_ <= peak_bytes_) return;
  peak_bytes_ = live_bytes_;
  peak_ = Need();
  uint64_t listed = 0;
  for (size_t i = 0; i < allocated_count_; ++i) {
    if (allocated_[i].address == nullptr) continue;
    peak_.Add(allocated_[i].bytes);
    listed += allocated_[i].bytes;
  }
  if (live_bytes_ > listed) peak_.Add(live_bytes_ - listed);
}

void OpScope::NoteFreed(const void* address) {
  for (size_t i = 0; i < allocated_count_; ++i) {
    if (allocated_[i].address != address) continue;
    live_bytes_ -= allocated_[i].bytes;
    allocated_[i].address = nullptr;
    return;
  }
}

bool OpScope::NoteOutput(const void* buffer) {
  for (size_t i = 0; i < allocated_count_; ++i) {
    if (allocated_[i].address != buffer) continue;
    allocated_[i].output = true;
    return true;
  }
  return false;
}

void OpScope::Upgrade(const void* buffer) {
  const mets_access access = {buffer, 0, METS_WRITE};
  mets_op* op = nullptr;
  const mets_status status = BeginMetsOp(&access, 1, 0, &op);
  if (status == METS_OK) memory_->api().op_end(op, memory_->stream());
}

void OpScope::End() {
  if (!failed()) state_->needs()->Learn(signature_, peak_);
  for (size_t i = 0; i < allocated_count_; ++i) {
    const Allocated& a = allocated_[i];
    if (a.address == nullptr || a.output || IsOfLists(state_->kind)) continue;
    memory_->HoldUntilNamed(a.address, {type(), "keeps it, but not as output"});
  }
  if (op_ != nullptr) memory_->api().op_end(op_, memory_->stream());
  op_ = nullptr;
}

}  // namespace mets
